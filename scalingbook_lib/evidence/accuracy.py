"""The accuracy of predictions by class of published run, over the runs that the recorded fits have seen.

Every page that quotes such errors takes them from here. Rows that are predicted but that no fit has used are
not counted. Chapter: Conclusions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import mean

from scalingbook_lib.calibrated.factors import record
from scalingbook_lib.evidence import scoring
from scalingbook_lib.evidence.scoring import baselines
from scalingbook_lib.evidence.scoring.report import Scored
from scalingbook_lib.units import Result, percent

CLASSES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "training step, dense": ("training_runs", ("training, dense",)),
    "training step, experts": ("training_runs", ("training, experts",)),
    "saturated server, dense": ("inference_runs", ("serving saturated, dense",)),
    "saturated server, experts": ("inference_runs", ("serving saturated, experts",)),
    "prefill or decode of one batch": ("inference_runs", ("serving prefill", "serving decode")),
}
"""The classes of runs: their table, and how the classes of `evidence.score` begin."""
_USED = "", "held-out"  # rows that are not excluded by their table


@dataclass(frozen=True, kw_only=True)
class ClassAccuracy(Result):
    """Mean absolute errors of one class: of the recorded fit, without each run's source, of the roofline.

    `ids` are the runs that are counted. Errors are those of times, for saturated servers those of rates.
    """

    name: str
    ids: tuple[str, ...]
    known: float
    new_source: float
    roofline: float

    @property
    def runs(self) -> int:
        """The number of runs that are counted."""
        return len(self.ids)

    def __str__(self) -> str:
        return (
            f"{self.name}, {self.runs} runs: mean error {percent(self.known)}, without their source "
            f"{percent(self.new_source)}; roofline {percent(self.roofline)}"
        )


@cache
def classes() -> tuple[ClassAccuracy, ...]:
    """The accuracy of every class of `CLASSES`."""
    return tuple(_class(name, table, kinds) for name, (table, kinds) in CLASSES.items())


def of(name: str) -> ClassAccuracy:
    """The accuracy of the class with that name."""
    return next(one for one in classes() if one.name == name)


@cache
def not_fitted() -> tuple[Scored, ...]:
    """The published runs that are predicted although no fit has used them."""
    return tuple(
        row
        for table in sorted({table for table, _ in CLASSES.values()})
        for row in _predicted(table)
        if row.id not in _leave_one_out(table)
    )


@cache
def _predicted(table: str) -> tuple[Scored, ...]:
    rows = [row for row in baselines.own_rows(table) if row.get("use", "") in _USED]
    return tuple(row for row in scoring.score(rows).rows if row.found)


def _leave_one_out(table: str) -> Mapping[str, float]:
    """Predicted over published without a run's source, by run id."""
    return record(table.removesuffix("_runs")).leave_one_out["source"]


def _class(name: str, table: str, kinds: tuple[str, ...]) -> ClassAccuracy:
    ratios = _leave_one_out(table)
    found = [
        (row.id, row.found, baselines.roofline_baseline(row))
        for row in _predicted(table)
        if row.found and row.found.kind.startswith(kinds) and row.id in ratios
    ]
    rates = table == "inference_runs" and not kinds[0].startswith("serving saturated")  # recorded, not shown
    return ClassAccuracy(
        name=name,
        ids=tuple(id for id, *_ in found),
        known=mean(abs(row.error) for _, row, _ in found),
        new_source=mean(abs((1 / ratios[id] if rates else ratios[id]) - 1) for id, *_ in found),
        roofline=mean(abs(ideal.roofline_error) for *_, ideal in found if ideal),
    )
