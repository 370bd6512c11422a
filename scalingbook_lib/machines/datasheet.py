"""Vendor numbers normalized to one chip, dense and unidirectional, and weights that stay in SRAM.

Chapter: Comparing accelerators.

>>> per_chip_figure(40.3e15, sparse=True), per_chip_figure(260e12, bidirectional=True, pieces=72)
(2.015e+16, 1805555555555.5557)
"""

from dataclasses import dataclass

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.units import Result, require_min, si


def per_chip_figure(
    value: float, *, sparse: bool = False, bidirectional: bool = False, pieces: int = 1, binary: int = 0
) -> float:
    """A vendor's number as the dense, unidirectional number of one chip.

    `sparse`: it counts multiplications by structured zeros, twice the dense rate. `bidirectional`: it adds
    both directions. `pieces`: the number of chips it covers, at least 1. `binary`: the power of 1,024 that
    its prefix means (3 for a GB that is a GiB).
    """
    require_min(1, pieces=pieces)
    return value / (1 + sparse) / (1 + bidirectional) / pieces * 1.024**binary


@dataclass(frozen=True, slots=True)
class WeightsResident(Result):
    """A model whose weights stay in the on-chip memories of many chips, decoding one token at a time."""

    chips: int
    read_s: float
    hops_s: float
    line = "read_s", "hops_s", "token_s"

    @property
    def token_s(self) -> float:
        """The seconds per token: reading the weights on all chips at once, then the hops in sequence."""
        return self.read_s + self.hops_s

    @property
    def heading(self) -> str:
        """The number of chips."""
        return f"{self.chips:,} chips"


def weights_resident(
    nbytes: float, chip: Chip, *, steps: int, hop_s: float, chips: int = 0
) -> WeightsResident:
    """`nbytes` of weights on the fewest chips that hold them, with `steps` hops of `hop_s` per token.

    `chips` overrides the number of chips. Raises a ValueError if they are too few.
    """
    fewest = -int(-nbytes // chip.hbm_bytes)
    if chips and chips < fewest:
        raise ValueError(f"{chips} {chip.name} do not hold {si(nbytes, 'B')}; write {fewest} or more")
    many = chips or fewest
    return WeightsResident(many, nbytes / (many * chip.hbm_bytes_per_s), steps * hop_s)
