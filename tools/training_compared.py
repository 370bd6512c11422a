"""Accuracy of training predictions beyond the step time: ratios within series, and memory.

Chapter: Training.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, log, log2
from statistics import mean

from scalingbook_lib.evidence.measured.training_runs import TrainingRun, by_series, runs
from scalingbook_lib.evidence.memory import fullest_moments, peak_bytes
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Predicted, Score, signed
from scalingbook_lib.evidence.training.scores import scores
from scalingbook_lib.units import Result, binary


class Held(Predicted[TrainingRun]):
    """The peak memory of a chip in bytes, published and predicted."""

    def __str__(self) -> str:
        return (
            f"{self.run.id}: {binary(self.published)} published, {binary(self.predicted)} predicted "
            f"({signed(self.error)})"
        )


def held() -> tuple[Held, ...]:
    """Return every run whose source prints the peak memory of a chip.

    That is the memory reserved by PyTorch's allocator: the maximum of every part over time, because it
    returns blocks only when it must. What has to fit is less: the sum at one moment.
    """
    return tuple(
        Held(run=run, published=run.memory_bytes, predicted=peak_bytes(run))
        for run in runs()
        if run.memory_bytes
    )


@dataclass(frozen=True, slots=True)
class Ratio(Result):
    """A run of a series; `error` compares its ratio to the series' mean with the published ratio."""

    run: TrainingRun
    error: float

    def __str__(self) -> str:
        return f"{self.run}: {signed(self.error)} against its series"


def ratios(errors: Mapping[str, float] | None = None) -> tuple[Ratio, ...]:
    """Return every run of a series relative to the mean of the series.

    `errors`: ln(predicted / published) by run id, by default from the recorded fit.
    """
    error = errors or logarithms()
    found = []
    for group in by_series().values():
        middle = mean(error[run.id] for run in group)
        found += [Ratio(run, exp(error[run.id] - middle) - 1) for run in group]
    return tuple(found)


def logarithms() -> dict[str, float]:
    """ln(predicted / published) of every run, from the recorded fit."""
    return {s.run.id: log(1 + s.error) for s in scores()}


def per_doubling() -> float:
    """Return how much steps lengthen beyond the prediction with each doubling of the chips.

    The slope is fitted by least squares to the runs of a series with the same sequences and different chip
    counts.
    """
    error, moved, products = logarithms(), 0.0, 0.0
    alike = grouped((run for group in by_series().values() for run in group), lambda run: (run.series, run.T))
    for group in alike.values():
        middle = mean(log2(run.chips) for run in group)
        moved += sum((log2(run.chips) - middle) ** 2 for run in group)
        products += sum((log2(run.chips) - middle) * error[run.id] for run in group)
    return exp(-products / moved) - 1


def crowded(share: float = 0.75) -> list[Ratio]:
    """Runs of a series that are predicted to use more than that share of a chip's memory."""
    return [one for one in ratios() if _held_bytes(one.run) > share * one.run.chip.hbm_bytes]


def _held_bytes(run: TrainingRun) -> float:
    return max(moment.total for moment in fullest_moments(run))


def size(found: Iterable[Ratio | Held | Score]) -> float:
    """Return the mean absolute error."""
    return mean(abs(one.error) for one in found)
