"""What do the errors of many rows come to? By class, chip, stack, size and what the rows left open.

Chapters: Training, Inference.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Summary
from scalingbook_lib.evidence.scoring.row import Found, Scored
from scalingbook_lib.units import Told, percent

SIZES = (10e9, "below 10 G"), (100e9, "10 to 100 G"), (float("inf"), "from 100 G")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(Told):
    """Rows that have something in common: their errors, and the share of them within their bands."""

    errors: Summary
    in_band: float

    @property
    def values(self) -> dict[str, object]:
        """For programs."""
        e = self.errors
        figures: dict[str, object] = {
            "n": e.runs,
            "mean": e.mean,
            "median": e.median,
            "p90": e.p90,
            "bias": e.bias,
        }
        return {"class": e.name} | figures | {"bias": e.bias, "in_band": self.in_band}

    def __str__(self) -> str:
        return f"{self.errors}; {percent(self.in_band)} in their bands"


@dataclass(frozen=True)
class Report(Told):
    """All rows of a table."""

    table: str
    rows: tuple[Scored, ...]

    @cached_property
    def found(self) -> tuple[Scored, ...]:
        """Those that were predicted."""
        return tuple(row for row in self.rows if row.found)

    @property
    def refused(self) -> dict[str, list[str]]:
        """The ids of the others, by the reason."""
        groups = grouped((row for row in self.rows if row.refused), lambda row: row.refused)
        return {reason: [row.id for row in group] for reason, group in groups.items()}

    @property
    def classes(self) -> tuple[Group, ...]:
        """By class."""
        return self.by(lambda found: [found.kind])

    def by(self, names: Callable[[Found], Iterable[str]]) -> tuple[Group, ...]:
        """Of all rows that have a name, for each, sorted; a row may have several."""
        groups: dict[str, list[Scored]] = {}
        for row in self.found:
            for name in names(row.found) if row.found else ():
                groups.setdefault(name, []).append(row)
        return tuple(_group(name, rows) for name, rows in sorted(groups.items()))

    @property
    def parts(self) -> Mapping[str, tuple[Group, ...]]:
        """By everything that explains an error, within the classes."""
        return {
            "class": self.classes,
            "chip": self.by(lambda f: [f"{f.kind}, {f.chip}"] if f.chip else []),
            "stack": self.by(lambda f: [f"{f.kind}, {f.stack}"] if f.stack else []),
            "size": self.by(lambda f: [f"{f.kind}, {_size(f.params)}"] if f.params else []),
            "cause": self.by(lambda f: [f"{f.kind}, {cause}" for cause in f.assumed]),
        }

    @property
    def values(self) -> dict[str, object]:
        """For programs: errors are shares."""
        return {
            "summary": [group.values for group in self.classes],
            "rows": [_values(row) for row in self.rows],
        }

    def __str__(self) -> str:
        refused = len(self.rows) - len(self.found)
        told = [f"{len(self.rows)} rows of {self.table}: {len(self.found)} predicted, {refused} refused"]
        return "\n".join([*told, *map(str, self.classes)])


def _size(params: float) -> str:
    return next(name for most, name in SIZES if params < most)


def _group(name: str, rows: list[Scored]) -> Group:
    errors = Summary.of(name, [row.error or 0.0 for row in rows])
    return Group(errors=errors, in_band=sum(row.in_band for row in rows) / len(rows))


def _values(row: Scored) -> dict[str, object]:
    low, high = row.band or (None, None)
    figures: dict[str, object] = {"predicted": row.predicted, "measured": row.measured, "error": row.error}
    return {"id": row.id} | figures | {"low": low, "high": high, "refused": row.refused or None}
