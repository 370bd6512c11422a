"""The common parts of torus slices and switched clusters: totals over chips, and mesh axes over links.

A `Slice` and a `Cluster` are each a `ChipGroup`; `SliceMesh` and `ClusterMesh` lay mesh axes over them.
Chapters: Sharding; GPUs.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.notation import axis_names
from scalingbook_lib.units import BF16, DType, Result, si


class ChipGroup(Result):
    """N identical chips."""

    chip: Chip
    chips: int

    @property
    def hosts(self) -> int:
        """The number of hosts that hold the chips; fewer chips than one host holds count as one host."""
        return math.ceil(self.chips / self.chip.chips_per_host)

    @property
    def hbm_bytes(self) -> float:
        """The HBM of all chips together, in bytes."""
        return self.chips * self.chip.hbm_bytes  # nothing is shared between chips

    def flops_per_s(self, dtype: DType = BF16) -> float:
        """The peak rate of all chips together, in dense FLOPs/s."""
        return self.chips * self.chip.flops_per_s(dtype)  # documented, dense


@dataclass(frozen=True)
class MachineMesh[Link](Result, ABC):
    """Mesh axes laid over a machine: the links, and therefore the bandwidth, that each axis has."""

    machine: Any  # a Slice or a Cluster, which are defined later
    named: tuple[tuple[str, int], ...]  # in the order given: on a cluster, the innermost first
    _laid: dict[str, tuple[Link, ...]] = field(init=False, repr=False, compare=False)
    refused: ClassVar[type[ValueError]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_laid", self._lay())

    @abstractmethod
    def _lay(self) -> dict[str, tuple[Link, ...]]:
        """The links under each mesh axis. Raises the machine's error if the axes do not fit."""

    @abstractmethod
    def bytes_per_s(self, names: str) -> float:
        """The bandwidth of these mesh axes together, in bytes/s per chip."""

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each mesh axis, in order."""
        return dict(self.named)

    @property
    def chip(self) -> Chip:
        """The chip that the machine consists of."""
        return self.machine.chip

    def size(self, names: str) -> int:
        """The number of chips along these mesh axes: `size("XY")` is X · Y."""
        return math.prod(self.sizes[name] for name in self._known(names))

    def _known(self, names: Iterable[str]) -> tuple[str, ...]:
        found = axis_names(names)
        if set(found) - set(self.sizes) or len(set(found)) < len(found):
            known = ", ".join(self.sizes)
            raise self.refused(
                f"{names!r} is not a set of axes of this mesh; name each of {known} at most once"
            )
        return found

    def _wanted(self) -> str:
        return ", ".join(f"{name}={size}" for name, size in self.named) or "no axes"

    def __str__(self) -> str:
        laid = ", ".join(f"{name}{size} at {si(self.bytes_per_s(name), 'B/s')}" for name, size in self.named)
        return f"{self.machine.name} as {laid}"
