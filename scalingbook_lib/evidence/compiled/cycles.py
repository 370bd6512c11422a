"""The TPU compiler's cycle estimates for matmuls, compared with the roofline.

Each is the estimate of one fusion, X[M, D] · W[D, D] with D = 8,192, made without running it. Seconds follow
from the chip's clock. Chapter: Profiling.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from scalingbook_lib import roofline, rules, units
from scalingbook_lib.evidence import resources
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.roofline import Roofline
from scalingbook_lib.units import BF16, FP32, INT8, DType, Result, si

WIDTH = 8192
ROWS = (8, 16, 32, 64, 128, 192, 256, 320, 384, 512, 640, 768, 1024, 1536, 2048, 4096)
TARGETS: dict[str, Chip] = {
    "v5e:1x1": chips.V5E,
    "v5p:1x1x1": chips.V5P,
    "v6e:1x1": chips.V6E,
    "tpu7x:1x1x1": chips.HALF_TPU7X,
}
_ARRAYS_PER_UNIT = {"TPU v6e": 2, "half a TPU7x": 2}  # as `systolic.peak` says, which has the reason


@dataclass(frozen=True, slots=True)
class Estimates(Result):
    """The compiler's cycle estimates for X[M, D] · W[D, D] on one chip, by M."""

    chip: Chip
    dtype: DType
    cycles: Mapping[int, int]

    @property
    def clock_hz(self) -> float:
        """The documented clock in Hz, or the one at which the matrix units reach their documented peak."""
        if self.chip.clock_hz:
            return self.chip.clock_hz
        arrays = (self.chip.matrix_units or 0) * _ARRAYS_PER_UNIT.get(self.chip.name, 1)
        flops = 2 * arrays * (self.chip.matrix_side or 0) ** 2
        return self.chip.flops_per_s(BF16) / flops

    def seconds(self, M: int) -> float:
        """The estimate in seconds at `clock_hz`."""
        return self.cycles[M] / self.clock_hz

    def bound(self, M: float) -> Roofline:
        """The roofline at documented peaks; int8 accumulates and stores 32-bit results."""
        out = FP32 if self.dtype == INT8 else self.dtype
        return roofline.matmul(M, WIDTH, WIDTH, self.chip, self.dtype, out=out)  # type: ignore[arg-type]

    def ratio_to_roofline(self, M: int) -> float:
        """The estimate over the roofline."""
        return self.seconds(M) / self.bound(M).lower_s

    @property
    def bytes_per_s(self) -> float:
        """The HBM bandwidth that the estimate for the fewest rows implies."""
        few = min(self.cycles)
        return self.bound(few).bytes / self.seconds(few)

    @property
    def prefetched(self) -> bool:
        """Whether W is copied to VMEM before the kernel starts, which its estimate does not include."""
        return self.ratio_to_roofline(min(self.cycles)) < 1

    @property
    def knee(self) -> float:
        """The rows at which the estimate for few rows meets the slope of many; needs no clock."""
        few, many = min(self.cycles), max(self.cycles)
        return self.cycles[few] / (self.cycles[many] / many)

    @property
    def critical_batch(self) -> float:
        """The critical batch of a very wide layer by the roofline, in rows."""
        return rules.critical_batch(self.chip, weights=self.dtype, compute=self.dtype).tokens

    def __str__(self) -> str:
        few, many = min(self.cycles), max(self.cycles)
        return (
            f"{self.chip.name}, {self.dtype}: {self.cycles[few]:,} cycles for {few} rows, "
            f"{self.cycles[many]:,} for {many:,}; knee at {self.knee:.0f} rows, "
            f"at {si(self.clock_hz, 'Hz')} few rows read {si(self.bytes_per_s, 'B/s')}"
        )


ESTIMATES: dict[str, Estimates]
"""Estimates by chip and dtype."""


def _estimates() -> dict[str, Estimates]:
    found = {}
    for row in resources.record("compiled_cycles"):
        chip, kind = TARGETS[row["topology"]], units.dtype(row["dtype"])
        cycles = {int(M): many for M, many in row["cycles"].items()}
        found[f"{chip.name}, {kind.name}"] = Estimates(chip, kind, cycles)
    return found


__getattr__ = resources.lazy_attributes(__name__, {"ESTIMATES": _estimates})
