"""Pairs of plans that a source compares, and whether predictions rank them alike. Chapter: Conclusions."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from scalingbook_lib.evidence.measured.training_runs import TrainingRun, runs
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Score
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.evidence.training.scores import scores
from scalingbook_lib.units import Result

ASYNC = ("async TP", "compiled")  # torchtitan's variants within one release and scaling recipe


@dataclass(frozen=True, slots=True)
class PlanPair(Result):
    """Two plans of one source for the same model and chips: the first's step time over the second's."""

    first: TrainingRun
    second: TrainingRun
    published: float
    predicted: float

    @property
    def agrees(self) -> bool:
        """Whether the faster plan is predicted to be faster."""
        return (self.published < 1) == (self.predicted < 1)

    def __str__(self) -> str:
        verb = "as" if self.agrees else "not as"
        return (
            f"{self.first.id} takes {self.published:.2f} times as long as {self.second.id}, "
            f"{verb} predicted ({self.predicted:.2f})"
        )


def plan_pairs(least: float = 0.01) -> tuple[PlanPair, ...]:
    """Every pair of plans that a source compares and whose step times differ by more than `least`.

    Pairs of different releases are left out, because their software differs too, and so are rows that were
    collected later, which compare optimizations rather than plans.
    """
    groups = grouped(scores()[: len(runs())], lambda s: _comparison_key(s.run))
    return tuple(pair for group in groups.values() for pair in _pairs(group, least))


def _comparison_key(run: TrainingRun) -> tuple[object, ...]:
    words = tuple(word for word in run.variant.split(",") if word not in ASYNC)
    return run.family, run.model.name, run.chip.name, run.chips, run.precision, run.T, run.batch, words


def _pairs(group: list[Score[TrainingRun]], least: float) -> Iterator[PlanPair]:
    for a, b in combinations(group, 2):
        published = a.run.step_s / b.run.step_s
        if planned(a.run).plan != planned(b.run).plan and abs(published - 1) > least:
            yield PlanPair(a.run, b.run, published, a.predicted / b.predicted)
