"""How old is what the catalogue says of prices, and of chips that are only announced?

Both change without a word to their readers, where a shipping chip's peaks stay. Every figure has the day on
which its source was read or published; ages are counted to a day that is given. Chapter: Other machines.

>>> from datetime import date
>>> from scalingbook_lib.machines import chips
>>> [one.chip.name for one in changing([chips.H100, chips.RUBIN], date(2026, 11, 26))]
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
class Dated(Result):
    """What may have changed since: a price, or the oldest figure of an announcement."""

    chip: Chip
    what: str
    source: Source
    days: int

    @property
    def stale(self) -> bool:
        """Older than half a year."""
        return self.days > HALF_A_YEAR

    def __str__(self) -> str:
        return f"{self.chip.name}, {self.what}: {self.days} days old; {self.source}"


@dataclass(frozen=True, slots=True)
class Paid(Result):
    """What an hour of one chip costs, and on which day: none where the reader gave it, or nobody knows it."""

    usd_per_hour: float | None
    as_of: str | None

    def __str__(self) -> str:
        if self.usd_per_hour is None:
            return "no price published"
        return f"{self.usd_per_hour:g} USD an hour" + (f" ({self.as_of})" if self.as_of else "")


def paid(chip: Chip, given: float | None = None) -> Paid:
    """The price that is given, or the catalogue's with the day of its source."""
    if given is not None or chip.usd_per_hour is None:
        return Paid(given, None)
    return Paid(chip.usd_per_hour, chip.sources[PRICE].as_of)


def changing(known: Iterable[Chip], today: date) -> tuple[Dated, ...]:
    """Every price and every announcement among these chips, with its age on that day."""
    found: list[Dated] = []
    for chip in known:
        if PRICE in chip.figures():
            found.append(_dated(chip, "price", chip.sources[PRICE], today))
        if chip.status == "announced":
            oldest = min((chip.sources[name] for name in chip.figures()), key=lambda source: source.as_of)
            found.append(_dated(chip, "announced", oldest, today))
    return tuple(found)


def _dated(chip: Chip, what: str, source: Source, today: date) -> Dated:
    return Dated(chip, what, source, (today - date.fromisoformat(source.as_of)).days)
