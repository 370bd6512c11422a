"""What do chips have in common that a torus joins, and those that switches join? Sums, and mesh axes.

A `Slice` and a `Cluster` are `Joined`; `SliceMesh` and `ClusterMesh` say how mesh axes are laid over them.
Chapters: Sharding, GPUs.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.notation import axis_names
from scalingbook_lib.units import BF16, DType, Result, si


class Joined(Result):
    """So many chips of one kind."""

    chip: Chip
    chips: int

    @property
    def hosts(self) -> int:
        """How many hosts (machines) hold the chips; fewer chips than a host has count as one."""
        return math.ceil(self.chips / self.chip.chips_per_host)

    @property
    def hbm_bytes(self) -> float:
        """The HBM of all chips together."""
        return self.chips * self.chip.hbm_bytes  # nothing is shared between chips

    def flops_per_s(self, dtype: DType = BF16) -> float:
        """The peak rate of all chips together."""
        return self.chips * self.chip.flops_per_s(dtype)  # documented, dense


@dataclass(frozen=True)
class MachineMesh[Link](Result, ABC):
    """Mesh axes laid over a machine: which of its links, and so which bandwidth, each of them has."""

    machine: Any  # a Slice or a Cluster, which come after
    named: tuple[tuple[str, int], ...]  # in the order given: on a cluster, the innermost first
    _laid: dict[str, tuple[Link, ...]] = field(init=False, repr=False, compare=False)
    refused: ClassVar[type[ValueError]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_laid", self._lay())

    @abstractmethod
    def _lay(self) -> dict[str, tuple[Link, ...]]:
        """The links under each axis."""

    @abstractmethod
    def bytes_per_s(self, names: str) -> float:
        """The bandwidth of these mesh axes."""

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each mesh axis, in order."""
        return dict(self.named)

    @property
    def chip(self) -> Chip:
        """The chip that the mesh is made of."""
        return self.machine.chip

    def size(self, names: str) -> int:
        """How many chips share these mesh axes: `size("XY")` is X · Y."""
        return math.prod(self.sizes[name] for name in self._known(names))

    def _known(self, names: Iterable[str]) -> tuple[str, ...]:
        found = axis_names(names)
        if set(found) - set(self.sizes) or len(set(found)) < len(found):
            known = ", ".join(self.sizes)
            raise self.refused(f"{names!r} is no set of axes of this mesh; name each of {known} at most once")
        return found

    def _wanted(self) -> str:
        return ", ".join(f"{name}={size}" for name, size in self.named) or "no axes"

    def __str__(self) -> str:
        laid = ", ".join(f"{name}{size} at {si(self.bytes_per_s(name), 'B/s')}" for name, size in self.named)
        return f"{self.machine.name} as {laid}"
