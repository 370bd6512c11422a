"""Are plans predicted in the right order, and is memory right?

Chapter: Training.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.evidence.measured.training_runs.read import runs
from scalingbook_lib.evidence.scores import Score, signed
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.evidence.training.scores import scores
from scalingbook_lib.training.memory import memory
from scalingbook_lib.units import Told, binary

ASYNC = ("async TP", "compiled")  # what torchtitan compares, within one release and one recipe of scales


@dataclass(frozen=True, slots=True)
class Order(Told):
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


@dataclass(frozen=True, slots=True)
class Held(Told):
    """The most memory of a chip, published and predicted."""

    run: TrainingRun
    published: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted over published, less 1."""
        return self.predicted / self.published - 1

    def __str__(self) -> str:
        return (
            f"{self.run.id}: {binary(self.published)} published, {binary(self.predicted)} predicted "
            f"({signed(self.error)})"
        )


def orders(least: float = 0.01) -> tuple[Order, ...]:
    """Every pair of plans that a source compares, and that differ by more than `least` in time.

    Between two releases of a source, software differs too: such pairs are no comparison of plans.
    """
    groups: dict[tuple[object, ...], list[Score[TrainingRun]]] = {}
    for s in scores():
        groups.setdefault(_compared(s.run), []).append(s)
    return tuple(pair for group in groups.values() for pair in _pairs(group, least))


def _compared(run: TrainingRun) -> tuple[object, ...]:
    words = tuple(word for word in run.variant.split(",") if word not in ASYNC)
    return run.family, run.model.name, run.chip.name, run.chips, run.precision, run.T, run.batch, words


def _pairs(group: list[Score[TrainingRun]], least: float) -> Iterator[Order]:
    for a, b in combinations(group, 2):
        published = a.run.step_s / b.run.step_s
        if planned(a.run).plan != planned(b.run).plan and abs(published - 1) > least:
            yield Order(a.run, b.run, published, a.predicted / b.predicted)


def kendall(pairs: tuple[Order, ...]) -> float:
    """Right pairs less wrong ones, over all: 1 is the published order, -1 the opposite."""
    return sum(1 if pair.right else -1 for pair in pairs) / len(pairs)


def held() -> tuple[Held, ...]:
    """Every run whose source prints the most memory that a chip held.

    That is what PyTorch's allocator had reserved: blocks for the logits and for a layer, as it returns none
    before it has to. What must fit is less, with the larger of the two.
    """
    found = []
    for run in runs():
        if run.memory_bytes:
            p = planned(run)
            most = memory(p.model, p.plan, batch=run.batch, T=run.T)
            found.append(Held(run, run.memory_bytes, most.total + most.other))
    return tuple(found)
