"""Ages of the numbers in the catalog that change without notice: prices and announced chips.

A shipping chip's peak rates do not change; a price or an announcement may. Every number carries the day on
which its source was read or published, and its age is counted up to a given day. Chapter: Comparing
accelerators.

>>> from datetime import date
>>> from scalingbook_lib.machines import chips
>>> [one.chip.name for one in stale_candidates([chips.H100, chips.RUBIN], date(2026, 11, 26))]
['H100', 'Rubin']
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from scalingbook_lib.machines.chip import Chip, Source
from scalingbook_lib.units import Result

HALF_A_YEAR = 182  # days
PRICE = "usd_per_hour"


@dataclass(frozen=True, slots=True)
class AgedFigure(Result):
    """A number that may have changed since its source was read.

    It is a price, or the oldest number of an announced chip.
    """

    chip: Chip
    what: str
    source: Source
    days: int

    @property
    def stale(self) -> bool:
        """Whether the number is older than half a year (182 days)."""
        return self.days > HALF_A_YEAR

    def __str__(self) -> str:
        return f"{self.chip.name}, {self.what}: {self.days} days old; {self.source}"


@dataclass(frozen=True, slots=True)
class ChipPrice(Result):
    """The price of one chip-hour in USD and the day of its source.

    The price is None if it is unknown, the day is None if the caller gave the price.
    """

    usd_per_hour: float | None
    as_of: str | None

    def __str__(self) -> str:
        if self.usd_per_hour is None:
            return "no published price"
        return f"{self.usd_per_hour:g} USD per chip-hour" + (f" ({self.as_of})" if self.as_of else "")


def price_of(chip: Chip, given: float | None = None) -> ChipPrice:
    """The price per chip-hour: `given` if there is one, else the catalog's with the day of its source."""
    if given is not None or chip.usd_per_hour is None:
        return ChipPrice(given, None)
    return ChipPrice(chip.usd_per_hour, chip.sources[PRICE].as_of)


def stale_candidates(known: Iterable[Chip], today: date) -> tuple[AgedFigure, ...]:
    """The price and the announcement of each of these chips, with its age in days on `today`."""
    found: list[AgedFigure] = []
    for chip in known:
        if PRICE in chip.figures():
            found.append(_dated(chip, "price", chip.sources[PRICE], today))
        if chip.status == "announced":
            oldest = min((chip.sources[name] for name in chip.figures()), key=lambda source: source.as_of)
            found.append(_dated(chip, "announced", oldest, today))
    return tuple(found)


def _dated(chip: Chip, what: str, source: Source, today: date) -> AgedFigure:
    return AgedFigure(chip, what, source, (today - date.fromisoformat(source.as_of)).days)
