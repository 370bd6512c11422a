"""Predictions for the rows of a table, and the summary of their errors by class or other groups.

Chapters: Training; Inference.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import sqrt
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

from scalingbook_lib.evidence.predictions import UNIT as PREDICTED_UNIT
from scalingbook_lib.evidence.reading.cells import Cells
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Summary
from scalingbook_lib.units import Result, percent

FASTER = "faster than the roofline"
NO_ROOM = "fits no chip by the count of memory"
"""Findings: no efficiency explains the measured time, or no plan that the row allows fits."""
UNITS = {
    "parameters": "parameters",
    "chip-hours": "h",
    "dated prediction, training": PREDICTED_UNIT,
    "dated prediction, serving": PREDICTED_UNIT,
}
"""The units of classes that are neither seconds nor tokens/s."""


class Interval(NamedTuple):
    """The least and the largest value that is possible."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The geometric mean of both ends."""
        return self.low if self.low == self.high else sqrt(self.low * self.high)

    def over(self, value: float) -> "Interval":
        """`value` divided by the interval, which turns times into rates and rates into times."""
        return Interval(value / self.high, value / self.low)


class PeakMemory(NamedTuple):
    """The peak memory of a chip in bytes: as printed, and as predicted for the plans near the best one."""

    measured: float
    predicted: Interval

    @property
    def error(self) -> float:
        """Predicted over measured, minus 1."""
        return self.predicted.middle / self.measured - 1


class Ideal(NamedTuple):
    """What simple rules say of a row: its dtype, and two times as shares of the measured one.

    `roofline` is that of the bare roofline, `share_of` that of which a constant is a share.
    """

    type: str
    roofline: float
    share_of: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPrediction:
    """The prediction for a row of class `kind`; `measured` and `predicted` are intervals in one unit.

    `factor`, up or down, is the prediction's own uncertainty. `assumed` lists what the row left open, and
    `findings` why the row cannot be right as it was read; such a row is scored like any other. `ideal` is for
    `baselines`, which computes it for runs itself. `peak_memory` is known for training runs that print it.
    """

    kind: str
    chip: str
    measured: Interval
    predicted: Interval
    factor: float
    stack: str = ""
    params: float = 0.0
    assumed: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    ideal: Ideal | None = None
    peak_memory: PeakMemory | None = None

    @property
    def unit(self) -> str:
        """The unit of the predicted and the measured value."""
        if self.kind in UNITS:
            return UNITS[self.kind]
        return "tokens/s" if self.kind.startswith("serving saturated") else "s"

    @property
    def error(self) -> float:
        """Predicted over measured, minus 1."""
        return self.predicted.middle / self.measured.middle - 1

    @property
    def interval(self) -> Interval:
        """The prediction interval: as wide as what both leave open, times `factor` on each side."""
        wider = self.factor * self.measured.middle / self.measured.low
        return Interval(self.predicted.low / wider, self.predicted.high * wider)

    @property
    def in_interval(self) -> bool:
        """Whether the measured value lies in the prediction interval."""
        return self.interval.low <= self.measured.middle <= self.interval.high


class Scored(NamedTuple):
    """A row with its id, and its prediction or the reason in `refused`."""

    id: str
    found: RowPrediction | None
    refused: str = ""
    row: Cells = MappingProxyType({})


class RowGroup(NamedTuple):
    """Rows of one group: their errors, median interval factor, and share within their intervals."""

    errors: Summary
    factor: float
    in_interval: float


@dataclass(frozen=True, slots=True)
class ScoreReport(Result):
    """All rows of a table."""

    table: str
    rows: tuple[Scored, ...]

    @property
    def found(self) -> list[RowPrediction]:
        """The predictions of the rows that were predicted."""
        return [row.found for row in self.rows if row.found]

    @property
    def findings(self) -> dict[str, list[str]]:
        """The ids of the rows with each finding."""
        told = [(name, row.id) for row in self.rows if row.found for name in row.found.findings]
        groups = grouped(told, lambda pair: pair[0])
        return {name: [id for _, id in group] for name, group in groups.items()}

    @property
    def refused(self) -> dict[str, list[str]]:
        """The ids of the refused rows, by reason."""
        groups = grouped((row for row in self.rows if not row.found), lambda row: row.refused)
        return {reason: [row.id for row in group] for reason, group in groups.items()}

    def by(self, names: Callable[[RowPrediction], Iterable[str]]) -> tuple[RowGroup, ...]:
        """The rows grouped by class and by the names that `names` gives; a row may have several names."""
        named = [
            (f"{one.kind}, {name}" if name else one.kind, one) for one in self.found for name in names(one)
        ]
        groups = sorted(grouped(named, lambda pair: pair[0]).items())
        return tuple(_group(name, [one for _, one in group]) for name, group in groups)

    @property
    def classes(self) -> tuple[RowGroup, ...]:
        """The rows grouped by class."""
        return self.by(lambda _: [""])

    @property
    def with_memory(self) -> list[Scored]:
        """The rows whose peak memory is printed and predicted."""
        return [row for row in self.rows if row.found and row.found.peak_memory]

    @property
    def values(self) -> dict[str, object]:
        """The report as a dictionary, for JSON; errors are shares."""
        summary = [group.errors.values | {"in_band": group.in_interval} for group in self.classes]
        return {"summary": summary, "rows": list(map(_row, self.rows))}

    def __str__(self) -> str:
        told = f"{len(self.rows)} rows of {self.table}: {len(self.found)} predicted"
        lines = [f"{group.errors}; {percent(group.in_interval)} in band" for group in self.classes]
        return "\n".join([f"{told}, {len(self.rows) - len(self.found)} refused", *lines])


def _group(name: str, found: list[RowPrediction]) -> RowGroup:
    factor = median(sqrt(one.interval.high / one.interval.low) for one in found)
    inside = sum(one.in_interval for one in found) / len(found)
    return RowGroup(Summary.of(name, [one.error for one in found]), factor, inside)


_FIGURES = ("predicted", "measured", "error", "low", "high", "unit")
_MEMORY = ("predicted_peak_bytes", "measured_peak_bytes", "peak_error")
_ABOUT = ("class", "chip", "software", "cause", "findings", "factor", "in_band")


def _row(row: Scored) -> dict[str, object]:
    found = row.found
    if found is None:
        return {"id": row.id, **dict.fromkeys((*_FIGURES, *_MEMORY, *_ABOUT)), "refused": row.refused}
    figures = (found.predicted.middle, found.measured.middle, found.error, *found.interval, found.unit)
    lists = list(found.assumed), list(found.findings)
    about = (found.kind, found.chip, found.stack, *lists, found.factor, found.in_interval)
    peak = found.peak_memory
    memory = (peak.predicted.middle, peak.measured, peak.error) if peak else (None, None, None)
    named = zip((*_FIGURES, *_MEMORY, *_ABOUT), (*figures, *memory, *about), strict=True)
    return {"id": row.id, **dict(named), "refused": None}
