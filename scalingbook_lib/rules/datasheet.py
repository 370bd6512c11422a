"""Ratios of the numbers in a datasheet, which give the limits of any chip from six numbers.

The six are C by data type, bytes and bytes/s of the memory, unidirectional scale-up bandwidth, the size of
the scale-up domain, network bandwidth, and watts. Chapter: Comparing accelerators.

>>> from scalingbook_lib.machines import chips
>>> from scalingbook_lib.units import FP8
>>> of = ChipRatios(chips.GB300, FP8)
>>> round(of.ridge), round(of.balance), round(of.expert_width)
(625, 5556, 2778)
"""

from dataclasses import dataclass

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.rules import decoding
from scalingbook_lib.rules.parallelism import expert_parallel_width
from scalingbook_lib.rules.ratios import network_ridge, ridge
from scalingbook_lib.units import FP8, DType, Result, count, si


@dataclass(frozen=True, slots=True)
class ChipRatios(Result):
    """Ratios of the numbers in one chip's datasheet, with matmuls in one data type."""

    chip: Chip
    dtype: DType

    @property
    def flops_per_s(self) -> float:
        """C in FLOPs/s, dense."""
        return self.chip.flops_per_s(self.dtype)

    @property
    def scale_up_bytes_per_s(self) -> float:
        """W, the unidirectional scale-up bandwidth of a chip over all links, in bytes/s."""
        return self.chip.links * self.chip.link_bytes_per_s

    @property
    def ridge(self) -> float:
        """R = C / W_hbm in FLOPs per byte of memory traffic."""
        return ridge(self.chip, self.dtype)

    @property
    def hbm_read_time_s(self) -> float:
        """The seconds to read the whole memory once: the minimum of a decode step that fills the memory."""
        return decoding.hbm_read_time_s(self.chip)

    @property
    def balance(self) -> float:
        """C / W in FLOPs per byte of scale-up traffic."""
        return network_ridge(self.chip, self.dtype, bytes_per_s=self.scale_up_bytes_per_s)

    @property
    def expert_width(self) -> float:
        """C / 2W, the F of a gated expert above which 6 D F FLOPs hide 3 D bytes: fp8 out, bf16 back."""
        return expert_parallel_width(
            self.chip, dispatch=FP8, dtype=self.dtype, bytes_per_s=self.scale_up_bytes_per_s
        )

    def __str__(self) -> str:
        return (
            f"{self.chip.name} in {self.dtype}: {count(self.ridge)} FLOPs per byte of {self.chip.memory}, "
            f"{count(self.balance)} FLOPs per byte of scale-up traffic, memory read time "
            f"{si(self.hbm_read_time_s, 's')}"
        )
