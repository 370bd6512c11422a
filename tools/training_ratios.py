"""What goes with the errors of ratios within a series of published steps: the chips, or a full memory?"""

from math import exp, log2
from statistics import mean

from scalingbook_lib.evidence import training as published
from scalingbook_lib.evidence.measured.training_runs import TrainingRun, by_series
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.training.compared import logarithms
from scalingbook_lib.training.memory import memory


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


def crowded(share: float = 0.75) -> list[published.Ratio]:
    """Runs of a series that are predicted to hold more than that share of a chip's memory."""
    return [one for one in published.ratios() if _held_bytes(one.run) > share * one.run.chip.hbm_bytes]


def _held_bytes(run: TrainingRun) -> float:
    p = published.planned(run)
    return memory(p.model, p.plan, batch=run.batch, T=run.T).total
