"""What is found of one row: measured, predicted, within which band; or why it is refused."""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple


class Interval(NamedTuple):
    """From the least to the most that something may be."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """As many times the least as the most is of it; of a count the count itself."""
        return self.low if self.low == self.high else sqrt(self.low * self.high)

    def over(self, value: float) -> "Interval":
        """`value` divided by it: times become rates, and rates times."""
        return Interval(value / self.high, value / self.low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Of one row: its class in `kind`; `measured` and `predicted`, in one unit, as far as they are open.

    `factor` is how far, up or down, a prediction may be off besides. `assumed` says what the row left open.
    """

    kind: str
    chip: str
    measured: Interval
    predicted: Interval
    factor: float
    stack: str = ""
    params: float = 0.0
    assumed: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted.middle / self.measured.middle - 1

    @property
    def band(self) -> Interval:
        """In which what is measured shall lie: as wide as both leave open, and `factor` more on each side."""
        wider = self.factor * self.measured.middle / self.measured.low
        return Interval(self.predicted.low / wider, self.predicted.high * wider)

    @property
    def in_band(self) -> bool:
        """Whether what was measured lies in the band."""
        return self.band.low <= self.measured.middle <= self.band.high


class Scored(NamedTuple):
    """A row by its id: what was found, or the reason in `refused`."""

    id: str
    found: Found | None
    refused: str = ""
