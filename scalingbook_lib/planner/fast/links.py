"""What does a byte cost on each axis of a mesh? The same networks are looked up once in a search.

Chapter: Training LLaMA 3.
"""

from functools import cache, partial
from typing import NamedTuple

from scalingbook_lib.collectives import Collective
from scalingbook_lib.machines import ClusterError, Machine, Slice
from scalingbook_lib.steps.placement import Networks, Rate, between_pods, exchange_rate, groups, place, rate
from scalingbook_lib.training import TrainingEfficiency


class AxisRates:
    """The rates of the collectives over one axis, found when first asked for.

    Compared by identity, as part of the keys of many sums: to hash its networks takes longer.
    """

    def __init__(self, networks: Networks, efficiency: TrainingEfficiency) -> None:
        self.networks, self.efficiency = networks, efficiency
        self._found: dict[Collective, Rate] = {}

    def __getitem__(self, call: Collective) -> Rate:
        if call is Collective.REDUCE_SCATTER:
            call = Collective.ALL_GATHER  # played backwards, as long
        if call not in self._found:
            self._found[call] = rate(call, self.networks, self.efficiency)
        return self._found[call]


class MeshRates(NamedTuple):
    """The axes of one mesh: tensor, context, the chips that share weights, stages, copies."""

    Y: AxisRates
    C: AxisRates
    X: AxisRates
    P: AxisRates
    R: AxisRates


class MeshLinks:
    """All meshes of one machine."""

    def __init__(self, machine: Machine, pods: int, efficiency: TrainingEfficiency) -> None:
        self.machine, self.efficiency = machine, efficiency
        # the 13,000 levels of the meshes of 16,384 chips have 120 networks: without `_found` the first search
        # takes 1.4 times as long, without `mesh` a later one 1.1 times
        # `_axis` makes axes comparable by identity
        self._found = cache(self._level)
        self._axis = cache(partial(AxisRates, efficiency=efficiency))
        self.mesh = cache(self._mesh)
        self.pods = self._axis(between_pods(machine.chip, pods))
        self.none = self._axis(())

    def _mesh(self, tp: int, cp: int, fsdp: int, pp: int, dp: int) -> MeshRates:
        """The rates; a ClusterError where the switches' groups would be cut."""
        if isinstance(self.machine, Slice):
            where = place(self.machine, (tp, cp, 1, fsdp, pp, dp))
            Y, C, X, P, R = (self._axis(where.over(letters)) for letters in ("Y", "C", "CX", "P", "R"))
            return MeshRates(Y=Y, C=C, X=X, P=P, R=R)
        level, inside = self.level, tp * cp * fsdp
        level(tp * cp, fsdp)  # refused, unless fsdp lies on whole groups
        return MeshRates(
            X=level(tp, cp * fsdp),
            P=level(inside, pp),
            R=level(inside * pp, dp),
            Y=level(1, tp),
            C=level(tp, cp),
        )

    def level(self, inside: int, size: int) -> AxisRates:
        """On a cluster, what joins `size` groups of `inside` neighbors; a ClusterError where nothing does."""
        found = self._found(inside, size)
        if isinstance(found, ClusterError):
            raise found
        return found

    def exchange(self, inside: int, ep: int, k: int, most_domains: int | None) -> dict[Collective, Rate]:
        """On a cluster, the rate of tokens to their k experts and back."""
        found = exchange_rate(groups(self.machine, inside, ep), k, self.efficiency, most_domains)
        return {Collective.ALL_TO_ALL: found}

    def _level(self, inside: int, size: int) -> AxisRates | ClusterError:
        try:
            return self._axis(groups(self.machine, inside, size))
        except ClusterError as refused:  # found again as often as a mesh is asked for
            return refused
