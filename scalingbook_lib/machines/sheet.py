"""What does a figure that a data sheet prints mean for one chip, dense, one way?

And what does a model take whose weights stay in the memories of many chips? Chapter: Other machines.

>>> printed(40.3e15, sparse=True), printed(260e12, both_ways=True, pieces=72)
(2.015e+16, 1805555555555.5557)
"""

from dataclasses import dataclass

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.units import Result, require_min, si


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
