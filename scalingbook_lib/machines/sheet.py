"""What do six numbers of a data sheet say about any machine, and what has to be undone before they do?

C by type, bytes and bytes/s of the memory, the way out of a chip into its domain (one way), the chips there,
the network, watts. Divided by one another they are the limits of this book. Chapter: Other machines.

>>> from scalingbook_lib.machines import chips
>>> from scalingbook_lib.units import FP8
>>> sheet = Sheet(chips.GB300, FP8)
>>> round(sheet.ridge), round(sheet.balance), round(sheet.expert_width)
(625, 5556, 2778)
>>> printed(40.3e15, sparse=True), printed(260e12, both_ways=True, pieces=72)
(2.015e+16, 1805555555555.5557)
"""

from dataclasses import dataclass

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.units import DType, Result, count, require_min, si


@dataclass(frozen=True, slots=True)
class Sheet(Result):
    """One chip, products in one type."""

    chip: Chip
    dtype: DType

    @property
    def flops_per_s(self) -> float:
        """C, dense."""
        return self.chip.flops_per_s(self.dtype)

    @property
    def reach_bytes_per_s(self) -> float:
        """W, one way out of a chip into its domain: all links together."""
        return self.chip.links * self.chip.link_bytes_per_s

    @property
    def ridge(self) -> float:
        """FLOPs for each byte of memory."""
        return self.flops_per_s / self.chip.hbm_bytes_per_s

    @property
    def sweep_s(self) -> float:
        """To read the memory once: the floor of a step of decoding that fills it."""
        return self.chip.hbm_bytes / self.chip.hbm_bytes_per_s

    @property
    def balance(self) -> float:
        """FLOPs for each byte on the way out of the chip."""
        return self.flops_per_s / self.reach_bytes_per_s

    @property
    def expert_width(self) -> float:
        """The F of an expert from which on 6 D F FLOPs hide 3 D bytes: fp8 out, bf16 back, gated. C/2W."""
        return self.balance / 2

    def __str__(self) -> str:
        return (
            f"{self.chip.name} in {self.dtype}: {count(self.ridge)} FLOPs for a byte of {self.chip.memory}, "
            f"{count(self.balance)} for a byte into the domain; the memory is read in {si(self.sweep_s, 's')}"
        )


def printed(
    value: float, *, sparse: bool = False, both_ways: bool = False, pieces: int = 1, binary: int = 0
) -> float:
    """What a printed figure means for one chip, dense, one way.

    `sparse`: half of the multiplications are by zeros that are left out. `both_ways`: sent and received
    together. `pieces`: chips of the rack or pod that it is of. `binary`: the power of 1,024 that a prefix
    meant (3 for a GB that is a GiB).
    """
    require_min(1, pieces=pieces)
    return value / (1 + sparse) / (1 + both_ways) / pieces * 1.024**binary


@dataclass(frozen=True, slots=True)
class Pinned(Result):
    """A model whose weights stay in the memories of many chips, one token at a time."""

    chips: int
    read_s: float
    hops_s: float

    @property
    def token_s(self) -> float:
        """Weights are read by all chips at once; activations cross them one after the other."""
        return self.read_s + self.hops_s

    def __str__(self) -> str:
        return (
            f"{self.chips:,} chips: {si(self.read_s, 's')} to read all weights, {si(self.hops_s, 's')} of "
            f"hops, {1 / self.token_s:,.0f} tokens/s"
        )


def pinned(nbytes: float, chip: Chip, *, steps: int, hop_s: float, chips: int = 0) -> Pinned:
    """`nbytes` of weights over the fewest chips (or `chips`), with `steps` times `hop_s` of hops a token."""
    fewest = -int(-nbytes // chip.hbm_bytes)
    if chips and chips < fewest:
        raise ValueError(f"{chips} {chip.name} do not hold {si(nbytes, 'B')}; take {fewest} or more")
    many = chips or fewest
    return Pinned(many, nbytes / (many * chip.hbm_bytes_per_s), steps * hop_s)
