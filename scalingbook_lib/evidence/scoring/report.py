"""What do the errors of many rows come to? By class, or by whatever else the rows have in common.

Chapters: Training, Inference.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Summary
from scalingbook_lib.evidence.scoring.row import Found, Scored
from scalingbook_lib.units import Told, percent


class Group(NamedTuple):
    """Rows that have something in common: their errors, and the share of them within their bands."""

    errors: Summary
    in_band: float


@dataclass(frozen=True, slots=True)
class Report(Told):
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
        return {"summary": list(map(_summed, self.classes)), "rows": list(map(_row, self.rows))}

    def __str__(self) -> str:
        told = f"{len(self.rows)} rows of {self.table}: {len(self.found)} predicted"
        lines = [f"{group.errors}; {percent(group.in_band)} in their bands" for group in self.classes]
        return "\n".join([f"{told}, {len(self.rows) - len(self.found)} refused", *lines])


def _group(name: str, found: list[Found]) -> Group:
    return Group(
        Summary.of(name, [one.error for one in found]), sum(one.in_band for one in found) / len(found)
    )


def _summed(group: Group) -> dict[str, object]:
    e = group.errors
    figures: dict[str, object] = {"class": e.name, "n": e.runs, "mean": e.mean, "median": e.median}
    return figures | {"p90": e.p90, "bias": e.bias, "in_band": group.in_band}


def _row(row: Scored) -> dict[str, object]:
    names, found = ("predicted", "measured", "error", "low", "high"), row.found
    if found is None:
        return {"id": row.id, **dict.fromkeys(names), "refused": row.refused}
    figures = (found.predicted.middle, found.measured.middle, found.error, *found.band)
    return {"id": row.id, **dict(zip(names, figures, strict=True)), "refused": None}
