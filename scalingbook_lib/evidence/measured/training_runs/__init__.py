"""How long did a step of real training take? Published runs, each with its model, chips and split.

`RUNS` are the usable rows of `data/training_runs.csv`, `KEPT` those that no efficiency may be fitted to,
`REFUSED` the others by the reason; a test holds all to the file. Each source counts FLOPs in its own way:
`TrainingRun.counted` follows it, and `step_s`, `flops` and `mfu` are one convention for all. Chapter:
Training.
"""

from scalingbook_lib.evidence.measured.training_runs import (
    rows_bridge,
    rows_gpus,
    rows_held_out,
    rows_mpt,
    rows_tpus,
)
from scalingbook_lib.evidence.measured.training_runs.counting import CONVENTIONS, counted
from scalingbook_lib.evidence.measured.training_runs.refused import REFUSED
from scalingbook_lib.evidence.measured.training_runs.run import TrainingRun
from scalingbook_lib.evidence.measured.training_runs.table import Family

FAMILIES: tuple[Family, ...] = (
    *rows_gpus.FAMILIES,
    *rows_bridge.FAMILIES,
    *rows_mpt.FAMILIES,
    *rows_tpus.FAMILIES,
)
RUNS: tuple[TrainingRun, ...] = tuple(run for family in FAMILIES for run in family.runs())
"""Every usable run."""
KEPT: tuple[TrainingRun, ...] = tuple(run for family in rows_held_out.FAMILIES for run in family.runs())
"""Usable runs that are kept apart: efficiencies are not fitted to them."""


def find(id: str) -> TrainingRun:
    """The run of that id in `data/training_runs.csv`."""
    for run in (*RUNS, *KEPT):
        if run.id == id:
            return run
    why = next((reason for reason, ids in REFUSED.items() if id in ids), "the table has no such row")
    raise KeyError(f"no usable run {id!r}: {why}")


def by_series(runs: tuple[TrainingRun, ...] = RUNS) -> dict[str, tuple[TrainingRun, ...]]:
    """Runs that differ in chips, sequence or batch alone, two or more of them, by their series."""
    found: dict[str, list[TrainingRun]] = {}
    for run in runs:
        found.setdefault(run.series, []).append(run)
    return {name: tuple(group) for name, group in found.items() if len(group) > 1}


__all__ = [
    "CONVENTIONS",
    "FAMILIES",
    "KEPT",
    "REFUSED",
    "RUNS",
    "Family",
    "TrainingRun",
    "by_series",
    "counted",
    "find",
]
