"""What does a byte cost on each axis of a mesh? Looked up once for all plans that share the links.

Chapter: Training LLaMA 3.
"""

from functools import lru_cache
from typing import NamedTuple

from scalingbook_lib.collectives import Collective
from scalingbook_lib.machines import Machine
from scalingbook_lib.machines.clusters import ClusterError
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.steps.placement import Networks, Rate, between_pods, exchange_rate, place, rate
from scalingbook_lib.training import Efficiency


class Axis:
    """The rates of the collectives over one axis, found when first asked for."""

    __slots__ = ("_efficiency", "_found", "_networks")

    def __init__(self, networks: Networks, efficiency: Efficiency) -> None:
        self._networks, self._efficiency = networks, efficiency
        self._found: dict[Collective, Rate] = {}

    def __getitem__(self, call: Collective) -> Rate:
        if call is Collective.REDUCE_SCATTER:
            call = Collective.ALL_GATHER  # played backwards, as long
        found = self._found.get(call)
        if found is None:
            found = self._found[call] = rate(call, self._networks, self._efficiency)
        return found


class Mesh(NamedTuple):
    """The axes of one mesh: tensor, context, the chips that share weights, stages, copies."""

    Y: Axis
    C: Axis
    X: Axis
    P: Axis
    R: Axis


class Links:
    """All meshes of one machine. Axes are compared by identity: the hash of their networks takes longer."""

    def __init__(self, machine: Machine, pods: int, efficiency: Efficiency) -> None:
        self.machine, self.efficiency = machine, efficiency
        self._axes: dict[Networks, Axis] = {}
        self._levels: dict[tuple[int, int], Axis | ClusterError] = {}
        self._meshes: dict[tuple[int, ...], Mesh] = {}
        self.pods = self._axis(between_pods(machine.chip, pods))
        self.none = self._axis(())

    def mesh(self, tp: int, cp: int, fsdp: int, pp: int, dp: int) -> Mesh:
        """The rates; a ClusterError where the switches' groups would be cut."""
        sizes = tp, cp, fsdp, pp, dp
        found = self._meshes.get(sizes)
        if found is None:
            make = self._torus if isinstance(self.machine, Slice) else self._switched
            found = self._meshes[sizes] = make(*sizes)
        return found

    def _switched(self, tp: int, cp: int, fsdp: int, pp: int, dp: int) -> Mesh:
        level, inside = self.level, tp * cp * fsdp
        level(tp * cp, fsdp)  # refused, unless fsdp lies on whole groups
        return Mesh(
            X=level(tp, cp * fsdp),
            P=level(inside, pp),
            R=level(inside * pp, dp),
            Y=level(1, tp),
            C=level(tp, cp),
        )

    def level(self, inside: int, size: int) -> Axis:
        """On a cluster, what joins `size` groups of `inside` neighbors; a ClusterError where nothing does."""
        found = self._levels.get((inside, size))
        if found is None:
            try:
                found = self._axis(self._inside(inside, size))
            except ClusterError as refused:
                found = refused
            self._levels[inside, size] = found
        if isinstance(found, ClusterError):
            raise found
        return found

    def exchange(self, inside: int, ep: int, k: int, most_domains: int | None) -> dict[Collective, Rate]:
        """On a cluster, the rate of tokens to their k experts and back."""
        found = exchange_rate(self._inside(inside, ep), k, self.efficiency, most_domains)
        return {Collective.ALL_TO_ALL: found}

    def _inside(self, inside: int, size: int) -> Networks:
        outside = self.machine.chips // (inside * size)
        return place(self.machine, (inside, size, 1, 1, 1, outside)).over("C")

    def _torus(self, tp: int, cp: int, fsdp: int, pp: int, dp: int) -> Mesh:
        where = place(self.machine, (tp, cp, 1, fsdp, pp, dp))
        Y, C, X, P, R = (self._axis(where.over(letters)) for letters in ("Y", "C", "CX", "P", "R"))
        return Mesh(Y=Y, C=C, X=X, P=P, R=R)

    def _axis(self, networks: Networks) -> Axis:
        if networks not in self._axes:
            self._axes[networks] = Axis(networks, self.efficiency)
        return self._axes[networks]


@lru_cache(maxsize=16)
def links(machine: Machine, pods: int, efficiency: Efficiency) -> Links:
    """The same links again for the next search."""
    return Links(machine, pods, efficiency)
