"""Are runs that differ in chips, sequence or batch alone predicted in the right ratio, and what goes with it?

Chapter: Training.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log, log2
from statistics import mean

from scalingbook_lib.evidence.measured.training_runs import TrainingRun, by_series
from scalingbook_lib.evidence.scores import signed
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.evidence.training.scores import scores
from scalingbook_lib.training.memory import memory
from scalingbook_lib.units import Told


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
    for group in _alike():
        middle = mean(log2(run.chips) for run in group)
        moved += sum((log2(run.chips) - middle) ** 2 for run in group)
        products += sum((log2(run.chips) - middle) * error[run.id] for run in group)
    return exp(-products / moved) - 1


def _alike() -> list[list[TrainingRun]]:
    groups: dict[tuple[str, int], list[TrainingRun]] = {}
    for name, group in by_series().items():
        for run in group:
            groups.setdefault((name, run.T), []).append(run)
    return list(groups.values())


def crowded(share: float = 0.9) -> tuple[Ratio, ...]:
    """Those of `ratios` that are predicted to hold more than that share of a chip's memory."""
    return tuple(one for one in ratios() if _held(one.run) > share * one.run.chip.hbm_bytes)


def _held(run: TrainingRun) -> float:
    p = planned(run)
    return memory(p.model, p.plan, batch=run.batch, T=run.T).total
