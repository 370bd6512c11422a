"""Which levels of a cluster does a mesh axis span, and so what can it carry?

The first axis named is the innermost. Chapter: GPUs.
"""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.machines.clusters.level import ClusterError, Level, joined
from scalingbook_lib.units import Told, si

if TYPE_CHECKING:
    from scalingbook_lib.machines.clusters.cluster import Cluster


@dataclass(frozen=True)
class ClusterMesh(Told):
    """Mesh axes laid over a cluster, the first innermost: which levels, and so which bandwidth, each has."""

    cluster: "Cluster"
    named: tuple[tuple[str, int], ...]
    _laid: dict[str, tuple[Level, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sizes = [size for _, size in self.named]
        if not sizes or min(sizes) < 1 or math.prod(sizes) != self.cluster.chips:
            raise ClusterError(
                f"a mesh of {self._wanted()} does not use the {self.cluster.chips:,} chips of this cluster: "
                "the product of the axes must be the number of chips, as in mesh(X=8, Y=128) for 1,024"
            )
        object.__setattr__(self, "_laid", self._lay())

    def _wanted(self) -> str:
        return ", ".join(f"{name}={size}" for name, size in self.named) or "no axes"

    def _lay(self) -> dict[str, tuple[Level, ...]]:
        """Give out the levels from the inside; an axis takes whole levels or a factor of one."""
        left, laid = [(level, level.size) for level in self.cluster.levels], {}
        for name, size in self.named:
            parts = []
            while size > 1:
                level, room = left.pop(0)
                took = math.gcd(size, room)
                if took < min(size, room):
                    raise ClusterError(
                        f"a mesh of {self._wanted()} does not fit {self.cluster.name}: {name} would take a "
                        f"part of a group of {room} ({level.name}); from the inside, levels have "
                        f"{', '.join(f'{v.size} ({v.name})' for v in self.cluster.levels)}"
                    )
                parts.append(level.part(took))
                size //= took
                if room > took:
                    left.insert(0, (level, room // took))
            laid[name] = tuple(parts)
        return laid

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each mesh axis, the innermost first."""
        return dict(self.named)

    @property
    def chip(self) -> Chip:
        """The chip that the mesh is made of."""
        return self.cluster.chip

    def size(self, names: str) -> int:
        """How many chips share these mesh axes: `size("XY")` is X · Y."""
        return math.prod(self.sizes[name] for name in self._known(names))

    def axes(self, names: str) -> tuple[Level, ...]:
        """The levels under these mesh axes, from the inside out: what `collectives` take."""
        known = self._known(names)
        return joined(level for name in self.sizes if name in known for level in self._laid[name])

    def bytes_per_s(self, names: str) -> float:
        """The bandwidth of these mesh axes: array bytes a second that a hierarchical all-gather nears.

        All chips below a level fetch different parts, so a level counts as often as there are such chips.
        """
        rates, below = [], 1
        for level in self.axes(names):
            rates.append(below * level.bytes_per_s)
            below *= level.size
        return min(rates, default=math.inf)

    def _known(self, names: str) -> str:
        unknown = [name for name in names if name not in self.sizes]
        if unknown or len(set(names)) < len(names):
            known = ", ".join(self.sizes)
            raise ClusterError(f"{names!r} is no set of axes of this mesh; name each of {known} at most once")
        return names

    def __str__(self) -> str:
        laid = ", ".join(f"{name}{size} at {si(self.bytes_per_s(name), 'B/s')}" for name, size in self.named)
        return f"{self.cluster.name} as {laid}"
