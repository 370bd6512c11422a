"""Where do a TPU's units idle within one kernel? The slots of its bundles, as the compiler filled them.

A bundle is what the chip starts in one cycle, and has slots for each of its units. The record sums the used
slots over strips of equally many bundles, as they stand in the program: a loop's bundles once, however often
they run. Chapter: Profiling.
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
"""The slots of a bundle and what uses them, in the compiler's order."""


@dataclass(frozen=True, slots=True)
class Kernel(Result):
    """A kernel of `bundles` bundles: the slots that each has by unit, and those used in every strip."""

    title: str
    bundles: int
    capacity: Mapping[str, int]
    used: Mapping[str, tuple[int, ...]] = field(repr=False)

    def size(self, strip: int) -> int:
        """The bundles of one strip."""
        return (strip + 1) * self.bundles // STRIPS - strip * self.bundles // STRIPS

    def share(self, unit: str, strip: int) -> float:
        """How many of a unit's slots are used in one strip."""
        return self.used[unit][strip] / (self.size(strip) * self.capacity[unit])

    def filled(self, unit: str) -> float:
        """How many of a unit's slots are used in the whole kernel."""
        return sum(self.used[unit]) / (self.bundles * self.capacity[unit])

    @property
    def busiest(self) -> str:
        """The unit with the largest share of its slots in use."""
        return max(self.used, key=self.filled)

    def __str__(self) -> str:
        unit = self.busiest
        return f"{self.title}: {self.bundles:,} bundles, {percent(self.filled(unit))} of {unit}'s slots used"


KERNELS: dict[str, Kernel]
"""By the program that they are of, compiled for v5e."""


def _kernels() -> dict[str, Kernel]:
    """Each row has its slots as one text of numbers."""
    found = {}
    for row in resources.record("compiled_bundles"):
        used = {unit: tuple(map(int, many.split())) for unit, many in row["used"].items()}
        found[row["title"]] = Kernel(**row | {"used": used})
    return found


__getattr__ = resources.lazily(__name__, {"KERNELS": _kernels})
