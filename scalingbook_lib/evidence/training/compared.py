"""Which of two plans that a source compares is faster, and do predictions say so? Chapter: Conclusions."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from scalingbook_lib.evidence.measured.training_runs import TrainingRun, runs
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Score
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.evidence.training.scores import scores
from scalingbook_lib.units import Result

ASYNC = ("async TP", "compiled")  # what torchtitan compares, within one release and one recipe of scales


@dataclass(frozen=True, slots=True)
class Order(Result):
    """Two plans of one source for the same model on the same chips: the time of the first over the second."""

    first: TrainingRun
    second: TrainingRun
    published: float
    predicted: float

    @property
    def right(self) -> bool:
        """Whether the faster one is predicted to be faster."""
        return (self.published < 1) == (self.predicted < 1)

    def __str__(self) -> str:
        verb = "as" if self.right else "not as"
        return (
            f"{self.first.id} takes {self.published:.2f} times as long as {self.second.id}, "
            f"{verb} predicted ({self.predicted:.2f})"
        )


def orders(least: float = 0.01) -> tuple[Order, ...]:
    """Every pair of plans that a source compares, and that differ by more than `least` in time.

    Between two releases of a source, software differs too: such pairs are no comparison of plans. Nor are
    rows that were collected later: what they compare is one optimization after the other.
    """
    groups = grouped(scores()[: len(runs())], lambda s: _compared(s.run))
    return tuple(pair for group in groups.values() for pair in _pairs(group, least))


def _compared(run: TrainingRun) -> tuple[object, ...]:
    words = tuple(word for word in run.variant.split(",") if word not in ASYNC)
    return run.family, run.model.name, run.chip.name, run.chips, run.precision, run.T, run.batch, words


def _pairs(group: list[Score[TrainingRun]], least: float) -> Iterator[Order]:
    for a, b in combinations(group, 2):
        published = a.run.step_s / b.run.step_s
        if planned(a.run).plan != planned(b.run).plan and abs(published - 1) > least:
            yield Order(a.run, b.run, published, a.predicted / b.predicted)
