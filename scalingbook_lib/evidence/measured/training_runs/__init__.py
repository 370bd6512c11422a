"""How long did a step of real training take? Published runs, each with its model, chips and split.

`RUNS` are the usable rows of `evidence/data/training_runs.csv`, `HELD_OUT` those that no efficiency may be
fitted to, `REFUSED` the others by the reason. Each source counts FLOPs in its own way: `TrainingRun.counted`
follows it, and `step_s`, `flops` and `mfu` are one convention for all.

The table's own columns say what the source prints. The last ones say how the library reads it: `use` ("" of a
usable run, "held-out", else why it is left out), `transformer`, the split (`micro`, `chunks`, `slices`,
`shards`, `zero`; the copies of `dp` are what remains of the chips), `policy` of rematerialization or of
offloading, `counts` (see `counting`), `printed` (which columns are the source's own figures), `variant`. What
is common to a family of runs stands in `training_families.csv`. Chapter: Training.
"""

from functools import cache

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.measured import published
from scalingbook_lib.evidence.measured.training_runs.counting import CONVENTIONS, counted
from scalingbook_lib.evidence.measured.training_runs.read import read
from scalingbook_lib.evidence.measured.training_runs.run import TrainingRun


@cache
def runs(use: str = "") -> tuple[TrainingRun, ...]:
    """The runs with that value in the column `use`."""
    return tuple(read(row) for row in resources.rows("training_runs") if row["use"] == use)


RUNS: tuple[TrainingRun, ...]
"""Every usable run."""
HELD_OUT: tuple[TrainingRun, ...]
"""Usable runs that no efficiency is fitted to, so that predicting them proves something."""
REFUSED: dict[str, tuple[str, ...]]
"""The ids of the rows that are left out, by the reason.

A run is usable where the source names the model and its shapes, the batch, the sequence and how it was split,
and prints a time, or a rate of which it says how it counts.
"""

__getattr__ = resources.lazy_attributes(
    __name__,
    {
        "RUNS": runs,
        "HELD_OUT": lambda: runs("held-out"),
        "REFUSED": lambda: published.refused("training"),
    },
)


def find(id: str) -> TrainingRun:
    """The run with that id; raises a KeyError that says why there is none."""
    return published.find(id, (*runs(), *runs("held-out")), "training")


def by_series() -> dict[str, tuple[TrainingRun, ...]]:
    """Series of two or more usable runs that differ only in chips, sequence length or batch."""
    found = resources.grouped(runs(), lambda run: run.series)
    return {name: tuple(group) for name, group in found.items() if len(group) > 1}


__all__ = [
    "CONVENTIONS",
    "HELD_OUT",
    "REFUSED",
    "RUNS",
    "TrainingRun",
    "by_series",
    "counted",
    "find",
    "read",
]
