"""Machine balance: the limits that follow from the ratios of a datasheet's figures, once these are
normalized.

The figures are FLOPs/s by type, bytes and bytes/s of the memory, the bandwidth out of a chip into its
scale-up domain (one way), the chips there, the network and watts. Chapter: Other machines.

>>> from scalingbook_lib.machines import chips
>>> from scalingbook_lib.units import FP8
>>> ratios = ChipRatios(chips.GB300, FP8)
>>> round(ratios.ridge), round(ratios.balance), round(ratios.expert_width)
(625, 5556, 2778)
>>> per_chip_figure(40.3e15, sparse=True), per_chip_figure(260e12, both_ways=True, pieces=72)
(2.015e+16, 1805555555555.5557)
"""

from dataclasses import dataclass

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.units import DType, Result, count, require_min, si


@dataclass(frozen=True, slots=True)
class ChipRatios(Result):
    """The ratios of one chip's figures, for matmuls in one data type."""

    chip: Chip
    dtype: DType

    @property
    def flops_per_s(self) -> float:
        """C: the dense peak rate, in FLOPs/s."""
        return self.chip.flops_per_s(self.dtype)

    @property
    def scale_up_bytes_per_s(self) -> float:
        """W: the bandwidth of all links out of a chip into its scale-up domain, in bytes/s one way."""
        return self.chip.links * self.chip.link_bytes_per_s

    @property
    def ridge(self) -> float:
        """The ridge point: FLOPs per byte of HBM traffic."""
        return self.flops_per_s / self.chip.hbm_bytes_per_s

    @property
    def hbm_read_time_s(self) -> float:
        """Seconds to read the whole HBM once: a lower bound on a decode step that fills it."""
        return self.chip.hbm_bytes / self.chip.hbm_bytes_per_s

    @property
    def balance(self) -> float:
        """FLOPs per byte sent into the scale-up domain: C/W."""
        return self.flops_per_s / self.scale_up_bytes_per_s

    @property
    def expert_width(self) -> float:
        """The expert width F above which 6·D·F FLOPs take longer than 3·D bytes of dispatch (fp8) and combine
        (bf16): C/2W.
        """
        return self.balance / 2

    def __str__(self) -> str:
        return (
            f"{self.chip.name} in {self.dtype}: {count(self.ridge)} FLOPs for a byte of {self.chip.memory}, "
            f"{count(self.balance)} for a byte into the domain; "
            f"the memory is read in {si(self.hbm_read_time_s, 's')}"
        )


def per_chip_figure(
    value: float, *, sparse: bool = False, both_ways: bool = False, pieces: int = 1, binary: int = 0
) -> float:
    """A vendor's figure as the dense, one-way figure of one chip.

    `sparse`: it counts multiplications by structured zeros, twice the dense rate. `both_ways`: it adds both
    directions. `pieces`: the number of chips it covers, at least 1. `binary`: the power of 1,024 that its
    prefix stands for (3 for a GB that is a GiB).
    """
    require_min(1, pieces=pieces)
    return value / (1 + sparse) / (1 + both_ways) / pieces * 1.024**binary


@dataclass(frozen=True, slots=True)
class WeightsResident(Result):
    """A model whose weights stay in the on-chip memories of many chips, decoding one token at a time."""

    chips: int
    read_s: float
    hops_s: float

    @property
    def token_s(self) -> float:
        """Seconds per token: all chips read their weights at once, then activations pass through the hops in
        sequence.
        """
        return self.read_s + self.hops_s

    def __str__(self) -> str:
        return (
            f"{self.chips:,} chips: {si(self.read_s, 's')} to read all weights, {si(self.hops_s, 's')} of "
            f"hops, {1 / self.token_s:,.0f} tokens/s"
        )


def weights_resident(
    nbytes: float, chip: Chip, *, steps: int, hop_s: float, chips: int = 0
) -> WeightsResident:
    """`nbytes` of weights on the fewest chips that hold them (or on `chips`), with `steps` hops of `hop_s`
    per token.

    ValueError where `chips` are too few.
    """
    fewest = -int(-nbytes // chip.hbm_bytes)
    if chips and chips < fewest:
        raise ValueError(f"{chips} {chip.name} do not hold {si(nbytes, 'B')}; take {fewest} or more")
    many = chips or fewest
    return WeightsResident(many, nbytes / (many * chip.hbm_bytes_per_s), steps * hop_s)
