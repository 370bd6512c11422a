"""What does a byte cost on each axis of a mesh? Looked up once for all plans that share the links.

Chapter: Training LLaMA 3.
"""

from collections.abc import Callable
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


class _Levels(dict[tuple[int, int], Axis]):
    """On a cluster, what joins `size` groups of `inside` neighbors; found when first asked for."""

    def __init__(self, machine: Machine, axis: Callable[[Networks], Axis]) -> None:
        self._machine, self._axis = machine, axis
        self._refused: dict[tuple[int, int], ClusterError] = {}

    def __missing__(self, key: tuple[int, int]) -> Axis:
        if key in self._refused:
            raise self._refused[key]
        (inside, size), chips = key, self._machine.chips
        try:
            networks = place(self._machine, (inside, size, 1, 1, 1, chips // (inside * size))).over("C")
        except ClusterError as refused:
            self._refused[key] = refused
            raise
        found = self[key] = self._axis(networks)
        return found


class Links:
    """All meshes of one machine."""

    def __init__(self, machine: Machine, pods: int, efficiency: Efficiency) -> None:
        self.machine, self.efficiency = machine, efficiency
        self._axes: dict[Networks, Axis] = {}
        self._levels = _Levels(machine, self._axis)
        self._meshes: dict[tuple[int, ...], Mesh] = {}
        over = between_pods(machine.chip, pods) if pods > 1 else ()
        self.pods = Axis(over, efficiency)

    def mesh(self, tp: int, cp: int, fsdp: int, pp: int, dp: int) -> Mesh:
        """The rates; a ClusterError where the switches' groups would be cut."""
        sizes = tp, cp, fsdp, pp, dp
        found = self._meshes.get(sizes)
        if found is None:
            make = self._torus if isinstance(self.machine, Slice) else self._switched
            found = self._meshes[sizes] = make(*sizes)
        return found

    def _switched(self, tp: int, cp: int, fsdp: int, pp: int, dp: int) -> Mesh:
        level, inside = self._levels, tp * cp * fsdp
        _ = level[tp * cp, fsdp]  # refused, unless fsdp lies on whole groups
        X, P, R = level[tp, cp * fsdp], level[inside, pp], level[inside * pp, dp]
        return Mesh(level[1, tp], level[tp, cp], X, P, R)

    def level(self, inside: int, size: int) -> Axis:
        """On a cluster, what joins `size` groups of `inside` neighbors."""
        return self._levels[inside, size]

    def exchange(self, inside: int, ep: int, k: int, most_domains: int | None) -> dict[Collective, Rate]:
        """On a cluster, the rate of tokens to their k experts and back."""
        sizes = (inside, ep, 1, 1, 1, self.machine.chips // (inside * ep))
        networks = place(self.machine, sizes).over("C")
        return {Collective.ALL_TO_ALL: exchange_rate(networks, k, self.efficiency, most_domains)}

    def _torus(self, tp: int, cp: int, fsdp: int, pp: int, dp: int) -> Mesh:
        where = place(self.machine, (tp, cp, 1, fsdp, pp, dp))
        return Mesh(*(self._axis(where.over(letters)) for letters in ("Y", "C", "CX", "P", "R")))

    def _axis(self, networks: Networks) -> Axis:
        if networks not in self._axes:
            self._axes[networks] = Axis(networks, self.efficiency)
        return self._axes[networks]


@lru_cache(maxsize=16)
def links(machine: Machine, pods: int, efficiency: Efficiency) -> Links:
    """The same links again for the next search."""
    return Links(machine, pods, efficiency)
