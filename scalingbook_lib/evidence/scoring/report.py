"""What is found of rows, and what do the errors of many come to? By class, or by whatever else they share.

Chapters: Training, Inference.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import sqrt
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

from scalingbook_lib.evidence.reading.cells import Cells
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Summary
from scalingbook_lib.units import Result, percent


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


class Ideal(NamedTuple):
    """What simple rules say of a row: its type, and two times over the measured one.

    That of a bare roofline, and that of which a constant is a share.
    """

    type: str
    roofline: float
    share_of: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Of one row: its class in `kind`; `measured` and `predicted`, in one unit, as far as they are open.

    `factor` is how far, up or down, a prediction may be off besides. `assumed` says what the row left open;
    `ideal` is for `baselines`, which finds it by itself for runs.
    """

    kind: str
    chip: str
    measured: Interval
    predicted: Interval
    factor: float
    stack: str = ""
    params: float = 0.0
    assumed: tuple[str, ...] = ()
    ideal: Ideal | None = None

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
    """A row, `row`, by its id: what was found, or the reason in `refused`."""

    id: str
    found: Found | None
    refused: str = ""
    row: Cells = MappingProxyType({})


class Group(NamedTuple):
    """Rows that have something in common: their errors, the median band, and the share within their bands."""

    errors: Summary
    factor: float  # up or down
    in_band: float


@dataclass(frozen=True, slots=True)
class Report(Result):
    """All rows of a table."""

    table: str
    rows: tuple[Scored, ...]

    @property
    def found(self) -> list[Found]:
        """What was found of the rows that were predicted."""
        return [row.found for row in self.rows if row.found]

    @property
    def refused(self) -> dict[str, list[str]]:
        """The ids of the others, by the reason."""
        groups = grouped((row for row in self.rows if not row.found), lambda row: row.refused)
        return {reason: [row.id for row in group] for reason, group in groups.items()}

    def by(self, names: Callable[[Found], Iterable[str]]) -> tuple[Group, ...]:
        """The rows of each class apart, by what they have in common; sorted. A row may have several names."""
        named = [
            (f"{one.kind}, {name}" if name else one.kind, one) for one in self.found for name in names(one)
        ]
        groups = sorted(grouped(named, lambda pair: pair[0]).items())
        return tuple(_group(name, [one for _, one in group]) for name, group in groups)

    @property
    def classes(self) -> tuple[Group, ...]:
        """By class alone."""
        return self.by(lambda _: [""])

    @property
    def values(self) -> dict[str, object]:
        """For programs: errors are shares."""
        summary = [group.errors.values | {"in_band": group.in_band} for group in self.classes]
        return {"summary": summary, "rows": list(map(_row, self.rows))}

    def __str__(self) -> str:
        told = f"{len(self.rows)} rows of {self.table}: {len(self.found)} predicted"
        lines = [f"{group.errors}; {percent(group.in_band)} in their bands" for group in self.classes]
        return "\n".join([f"{told}, {len(self.rows) - len(self.found)} refused", *lines])


def _group(name: str, found: list[Found]) -> Group:
    factor = median(sqrt(one.band.high / one.band.low) for one in found)
    inside = sum(one.in_band for one in found) / len(found)
    return Group(Summary.of(name, [one.error for one in found]), factor, inside)


def _row(row: Scored) -> dict[str, object]:
    names, found = ("predicted", "measured", "error", "low", "high"), row.found
    if found is None:
        return {"id": row.id, **dict.fromkeys(names), "refused": row.refused}
    figures = (found.predicted.middle, found.measured.middle, found.error, *found.band)
    return {"id": row.id, **dict(zip(names, figures, strict=True)), "refused": None}
