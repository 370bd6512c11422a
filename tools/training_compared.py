"""What is right besides the time of a step: ratios within a series, and memory?

Chapter: Training.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log, log2
from statistics import mean

from scalingbook_lib.evidence.measured.training_runs import TrainingRun, by_series, runs
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Predicted, signed
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.evidence.training.scores import scores
from scalingbook_lib.training import TrainingCase, TrainingMemory
from scalingbook_lib.training.memory import compiled, moments
from scalingbook_lib.units import Result, binary


class Held(Predicted[TrainingRun]):
    """The most memory of a chip, in bytes."""

    def __str__(self) -> str:
        return (
            f"{self.run.id}: {binary(self.published)} published, {binary(self.predicted)} predicted "
            f"({signed(self.error)})"
        )


def held() -> tuple[Held, ...]:
    """Every run whose source prints the most memory that a chip held.

    That is what PyTorch's allocator had reserved: of every part the most there ever is, as it returns no
    block before it has to. What must fit is less: one moment's.
    """
    found = []
    for run in runs():
        if run.memory_bytes:
            each = _moments(run)
            reserved = sum(max(getattr(moment, part) for moment in each) for part in TrainingMemory.parts)
            found.append(Held(run=run, published=run.memory_bytes, predicted=reserved))
    return tuple(found)


def _moments(run: TrainingRun) -> tuple[TrainingMemory, TrainingMemory, TrainingMemory]:
    p = planned(run)
    s = TrainingCase(p.model, p.machine, batch=run.batch, T=run.T).shape(p.plan)
    return moments(s, compiled(p.machine))


@dataclass(frozen=True, slots=True)
class Ratio(Result):
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
