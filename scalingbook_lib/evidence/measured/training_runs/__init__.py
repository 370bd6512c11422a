"""How long did a step of real training take? Published runs, each with its model, chips and split.

`RUNS` are the usable rows of `evidence/data/training_runs.csv`, `HELD_OUT` those that no efficiency may be
fitted to, `REFUSED` the others by the reason. Each source counts FLOPs in its own way: `TrainingRun.counted`
follows it, and `step_s`, `flops` and `mfu` are one convention for all. Chapter: Training.
"""

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.measured.training_runs.counting import CONVENTIONS, counted
from scalingbook_lib.evidence.measured.training_runs.read import runs
from scalingbook_lib.evidence.measured.training_runs.run import TrainingRun

RUNS: tuple[TrainingRun, ...]
"""Every usable run."""
HELD_OUT: tuple[TrainingRun, ...]
"""Usable runs that no efficiency is fitted to, so that predicting them proves something."""
REFUSED: dict[str, tuple[str, ...]]
"""The ids of the rows that are left out, by the reason.

A run is usable where the source names the model and its shapes, the batch, the sequence and how it was split,
and prints a time, or a rate of which it says how it counts.
"""

__getattr__ = resources.lazily(
    __name__,
    {
        "RUNS": runs,
        "HELD_OUT": lambda: runs("held-out"),
        "REFUSED": lambda: resources.refused("training_runs"),
    },
)


def find(id: str) -> TrainingRun:
    """The run of that id."""
    return resources.find(id, (*runs(), *runs("held-out")), "training_runs")


def by_series() -> dict[str, tuple[TrainingRun, ...]]:
    """Usable runs that differ in chips, sequence or batch alone, two or more of them, by their series."""
    found: dict[str, list[TrainingRun]] = {}
    for run in runs():
        found.setdefault(run.series, []).append(run)
    return {name: tuple(group) for name, group in found.items() if len(group) > 1}


__all__ = ["CONVENTIONS", "HELD_OUT", "REFUSED", "RUNS", "TrainingRun", "by_series", "counted", "find"]
