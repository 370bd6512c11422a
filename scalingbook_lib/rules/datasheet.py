"""The ratios of a data sheet's figures: the limits of any chip from six numbers.

C by type, bytes and bytes/s of the memory, the way out of a chip into its domain (one way), the chips there,
the network, watts. Chapter: Comparing accelerators.

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
    """The figures of one chip's data sheet, divided by one another; products in one type."""

    chip: Chip
    dtype: DType

    @property
    def flops_per_s(self) -> float:
        """C, FLOPs/s, dense."""
        return self.chip.flops_per_s(self.dtype)

    @property
    def scale_up_bytes_per_s(self) -> float:
        """W, bytes/s, one way out of a chip into its domain: all links together."""
        return self.chip.links * self.chip.link_bytes_per_s

    @property
    def ridge(self) -> float:
        """R = C / W_hbm, FLOPs for each byte of memory."""
        return ridge(self.chip, self.dtype)

    @property
    def hbm_read_time_s(self) -> float:
        """Seconds to read the memory once: the floor of a decode step that fills it."""
        return decoding.hbm_read_time_s(self.chip)

    @property
    def balance(self) -> float:
        """C / W, FLOPs for each byte on the way out of the chip."""
        return network_ridge(self.chip, self.dtype, bytes_per_s=self.scale_up_bytes_per_s)

    @property
    def expert_width(self) -> float:
        """C / 2W, the F of a gated expert from which 6 D F FLOPs hide 3 D bytes: fp8 out, bf16 back."""
        return expert_parallel_width(
            self.chip, dispatch=FP8, dtype=self.dtype, bytes_per_s=self.scale_up_bytes_per_s
        )

    def __str__(self) -> str:
        return (
            f"{self.chip.name} in {self.dtype}: {count(self.ridge)} FLOPs for a byte of {self.chip.memory}, "
            f"{count(self.balance)} for a byte into the domain; the memory is read in "
            f"{si(self.hbm_read_time_s, 's')}"
        )
