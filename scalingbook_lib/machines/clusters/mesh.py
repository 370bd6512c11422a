"""Which levels of a cluster does a mesh axis span, and so what can it carry?

The first axis named is the innermost. Chapter: GPUs.
"""

import math
from typing import TYPE_CHECKING

from scalingbook_lib.machines.clusters.level import ClusterError, Level, joined
from scalingbook_lib.machines.machine import MachineMesh

if TYPE_CHECKING:
    from scalingbook_lib.machines.clusters.cluster import Cluster


class ClusterMesh(MachineMesh[Level]):
    """Mesh axes laid over a cluster, the first innermost: which levels each has."""

    machine: "Cluster"
    refused = ClusterError

    def _lay(self) -> dict[str, tuple[Level, ...]]:
        """Give out the levels from the inside; an axis takes whole levels or a factor of one."""
        sizes = [size for _, size in self.named]
        if not sizes or min(sizes) < 1 or math.prod(sizes) != self.machine.chips:
            raise ClusterError(
                f"a mesh of {self._wanted()} does not use the {self.machine.chips:,} chips of this cluster: "
                "the product of the axes must be the number of chips, as in mesh(X=8, Y=128) for 1,024"
            )
        left, laid = [(level, level.size) for level in self.machine.levels], {}
        for name, size in self.named:
            parts = []
            while size > 1:
                level, room = left.pop(0)
                took = math.gcd(size, room)
                if took < min(size, room):
                    raise ClusterError(
                        f"a mesh of {self._wanted()} does not fit {self.machine.name}: {name} would take a "
                        f"part of a group of {room} ({level.name}); from the inside, levels have "
                        f"{', '.join(f'{v.size} ({v.name})' for v in self.machine.levels)}"
                    )
                parts.append(level.part(took))
                size //= took
                if room > took:
                    left.insert(0, (level, room // took))
            laid[name] = tuple(parts)
        return laid

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
