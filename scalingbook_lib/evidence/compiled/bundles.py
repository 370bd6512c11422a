"""The utilization of a TPU core's units within one kernel, from the slots of its VLIW bundles.

A bundle holds what the core starts in one cycle, with slots for each unit. The record sums used slots over
strips of equally many bundles in program order; the bundles of a loop count once. Chapter: Profiling.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from scalingbook_lib.evidence import resources
from scalingbook_lib.units import Result, percent

STRIPS = 48

UNITS = {
    "MATMUL": "rows through the MXUs",
    "MATPUSH": "weights into the MXUs",
    "XLU": "work across lanes",
    "VALU": "vector arithmetic",
    "VPOP": "results taken over",
    "EUP": "exp, tanh, 1/x",
    "VLOAD": "VMEM to registers",
    "VLOAD:FILL": "back from a spill",
    "VSTORE": "registers to VMEM",
    "VSTORE:SPILL": "registers spilled",
    "SALU": "scalar arithmetic",
}
"""The slots of a bundle and what they do, in the compiler's order."""


@dataclass(frozen=True, slots=True)
class Kernel(Result):
    """A kernel: its bundles, the slots per bundle of each unit, and the used slots in every strip."""

    title: str
    bundles: int
    capacity: Mapping[str, int]
    used: Mapping[str, tuple[int, ...]] = field(repr=False)

    def size(self, strip: int) -> int:
        """The number of bundles in one strip."""
        return (strip + 1) * self.bundles // STRIPS - strip * self.bundles // STRIPS

    def strip_utilization(self, unit: str, strip: int) -> float:
        """The share of a unit's slots that are used in one strip."""
        return self.used[unit][strip] / (self.size(strip) * self.capacity[unit])

    def utilization(self, unit: str) -> float:
        """The share of a unit's slots that are used in the whole kernel."""
        return sum(self.used[unit]) / (self.bundles * self.capacity[unit])

    @property
    def busiest(self) -> str:
        """The unit with the highest utilization."""
        return max(self.used, key=self.utilization)

    def __str__(self) -> str:
        unit = self.busiest
        used = percent(self.utilization(unit))
        return f"{self.title}: {self.bundles:,} bundles, {used} of {unit}'s slots used"


KERNELS: dict[str, Kernel]
"""Kernels compiled for v5e, by program."""


def _kernels() -> dict[str, Kernel]:
    """The recorded kernels; a row stores its used slots as a text of numbers."""
    found = {}
    for row in resources.record("compiled_bundles"):
        used = {unit: tuple(map(int, many.split())) for unit, many in row["used"].items()}
        found[row["title"]] = Kernel(**row | {"used": used})
    return found


__getattr__ = resources.lazy_attributes(__name__, {"KERNELS": _kernels})
