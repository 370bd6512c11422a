"""What is found of one row: measured, predicted, within which band; or why it is refused."""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple


class Interval(NamedTuple):
    """From the least to the most that something may be; its middle is geometric."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """As many times the least as the most is of it."""
        return self.low if self.low == self.high else sqrt(self.low * self.high)  # counts stay exact

    @property
    def spread(self) -> float:
        """The factor from the middle to either end."""
        return sqrt(self.high / self.low)

    def over(self, value: float) -> "Interval":
        """`value` divided by it: times become rates."""
        return Interval(value / self.high, value / self.low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Of one row: its class in `kind`; `measured` and `predicted`, in one unit, as far as they are open.

    `factor` is how far, up or down, a prediction may be off besides. `assumed` says what the row left open.
    """

    kind: str
    chip: str
    stack: str = ""
    params: float = 0.0
    measured: Interval
    predicted: Interval
    factor: float = 1.0
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A row by its id: what was found, or the reason in `refused`."""

    id: str
    found: Found | None = None
    refused: str = ""

    @property
    def predicted(self) -> float | None:
        """The middle of what it may be."""
        return self.found.predicted.middle if self.found else None

    @property
    def measured(self) -> float | None:
        """As published, in the unit of the prediction."""
        return self.found.measured.middle if self.found else None

    @property
    def error(self) -> float | None:
        """Predicted over measured, less 1."""
        return self.found.predicted.middle / self.found.measured.middle - 1 if self.found else None

    @property
    def band(self) -> Interval | None:
        """In which what is measured shall lie: as wide as both leave open, and `factor` more on each side."""
        if self.found is None:
            return None
        wider = self.found.factor * self.found.measured.spread
        return Interval(self.found.predicted.low / wider, self.found.predicted.high * wider)

    @property
    def in_band(self) -> bool:
        """Whether what was measured lies in the band."""
        band = self.band
        return band is not None and band.low <= (self.measured or 0.0) <= band.high
