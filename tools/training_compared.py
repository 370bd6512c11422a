"""What is right besides the time of a step: ratios within a series, the order of plans, and memory?

Chapter: Training.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import exp, log, log2
from statistics import mean

from scalingbook_lib.evidence.measured.training_runs import TrainingRun, by_series, runs
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Predicted, Score, signed
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.evidence.training.scores import scores
from scalingbook_lib.training import Case, Memory
from scalingbook_lib.training.memory import PARTS, compiled, moments
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


class Held(Predicted[TrainingRun]):
    """The most memory of a chip, in bytes."""

    def __str__(self) -> str:
        return (
            f"{self.run.id}: {binary(self.published)} published, {binary(self.predicted)} predicted "
            f"({signed(self.error)})"
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


def held() -> tuple[Held, ...]:
    """Every run whose source prints the most memory that a chip held.

    That is what PyTorch's allocator had reserved: of every part the most there ever is, as it returns no
    block before it has to. What must fit is less: one moment's.
    """
    found = []
    for run in runs():
        if run.memory_bytes:
            each = _moments(run)
            reserved = sum(max(moment[part] for moment in each) for part in PARTS)
            found.append(Held(run=run, published=run.memory_bytes, predicted=reserved))
    return tuple(found)


def _moments(run: TrainingRun) -> tuple[Memory, Memory, Memory]:
    p = planned(run)
    s = Case(p.model, p.machine, batch=run.batch, T=run.T).shape(p.plan)
    return moments(s, compiled(p.machine))


@dataclass(frozen=True, slots=True)
class Ratio(Told):
    """A run of a series; `error` is how far its ratio to the series' mean is from the published ratio."""

    run: TrainingRun
    error: float

    def __str__(self) -> str:
        return f"{self.run}: {signed(self.error)} against its series"


def ratios(errors: Mapping[str, float] | None = None) -> tuple[Ratio, ...]:
    """Every run of a series, which differ in chips, sequence or batch alone, against the series' mean.

    `errors`: ln(predicted / published) by the run's id, of the frozen table where none are given.
    """
    error = errors or logarithms()
    found = []
    for group in by_series().values():
        middle = mean(error[run.id] for run in group)
        found += [Ratio(run, exp(error[run.id] - middle) - 1) for run in group]
    return tuple(found)


def logarithms() -> dict[str, float]:
    """ln(predicted / published) of every run, by the frozen table."""
    return {s.run.id: log(1 + s.error) for s in scores()}


def per_doubling() -> float:
    """How much longer than predicted a step becomes with each doubling of the chips.

    By least squares, over the runs of a series that have the same sequences on other numbers of chips.
    """
    error, moved, products = logarithms(), 0.0, 0.0
    alike = grouped((run for group in by_series().values() for run in group), lambda run: (run.series, run.T))
    for group in alike.values():
        middle = mean(log2(run.chips) for run in group)
        moved += sum((log2(run.chips) - middle) ** 2 for run in group)
        products += sum((log2(run.chips) - middle) * error[run.id] for run in group)
    return exp(-products / moved) - 1


def crowded(share: float = 0.75) -> list[Ratio]:
    """Runs of a series that are predicted to hold more than that share of a chip's memory."""
    return [one for one in ratios() if _held_bytes(one.run) > share * one.run.chip.hbm_bytes]


def _held_bytes(run: TrainingRun) -> float:
    return max(moment.total for moment in _moments(run))
