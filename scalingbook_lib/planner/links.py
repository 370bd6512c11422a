"""What does a byte cost on each axis of a mesh? Looked up once for all plans that share the links.

Chapter: Training LLaMA 3.
"""

from typing import NamedTuple

from scalingbook_lib.clusters import ClusterError
from scalingbook_lib.limits import Machine
from scalingbook_lib.slices import Slice
from scalingbook_lib.training import Efficiency
from scalingbook_lib.training.placement import Networks, Rate, between_pods, place, rate


class Axis(dict[str, Rate]):
    """The rates of the collectives over one axis, found when first asked for."""

    __slots__ = ("_efficiency", "_networks")

    def __init__(self, networks: Networks, efficiency: Efficiency) -> None:
        self._networks, self._efficiency = networks, efficiency

    def __missing__(self, call: str) -> Rate:
        found = self[call] = rate(call, self._networks, self._efficiency)
        return found


class Mesh(NamedTuple):
    """The axes of one mesh: tensor, context, the chips that share weights, stages, copies."""

    Y: Axis
    C: Axis
    X: Axis
    P: Axis
    R: Axis


class Links:
    """All meshes of one machine."""

    def __init__(self, machine: Machine, pods: int, efficiency: Efficiency) -> None:
        self.machine, self.efficiency = machine, efficiency
        self._axes: dict[object, Axis] = {}
        self._refused: dict[tuple[int, int], ClusterError] = {}
        over = between_pods(machine.chip, pods) if pods > 1 else ()
        self.pods = Axis(over, efficiency)

    def mesh(self, tp: int, cp: int, fsdp: int, pp: int, dp: int) -> Mesh:
        """The rates; a ClusterError where the switches' groups would be cut."""
        if isinstance(self.machine, Slice):
            return self._torus((tp, cp, 1, fsdp, pp, dp))
        inside = tp * cp * fsdp
        self._level(tp * cp, fsdp)  # refused where it is not whole groups
        return Mesh(self._level(1, tp), self._level(tp, cp), self._level(tp, cp * fsdp),
                    self._level(inside, pp), self._level(inside * pp, dp))  # fmt: skip

    def _torus(self, sizes: tuple[int, ...]) -> Mesh:
        where = place(self.machine, sizes)
        return Mesh(*(self._axis(where.over(letters)) for letters in ("Y", "C", "CX", "P", "R")))

    def _axis(self, networks: Networks) -> Axis:
        if networks not in self._axes:
            self._axes[networks] = Axis(networks, self.efficiency)
        return self._axes[networks]

    def _level(self, inside: int, size: int) -> Axis:
        key = inside, size
        found = self._axes.get(key)
        if found is None:
            if key in self._refused:
                raise self._refused[key]
            sizes = (inside, size, 1, 1, 1, self.machine.chips // (inside * size))
            try:
                found = self._axes[key] = self._axis(place(self.machine, sizes).over("C"))
            except ClusterError as refused:
                self._refused[key] = refused
                raise
        return found
