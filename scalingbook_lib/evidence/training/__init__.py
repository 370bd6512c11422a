"""The accuracy of predicted step times against published training runs.

`scores()` has all usable runs, `total()`
their errors, `held_out()` runs that nothing was fitted to; `prediction_interval()` is the factor that goes
with a prediction, `interval_coverage()` checks it, and `plan_pairs()` compares plans of one source.
`efficiencies` describes the fit. Chapter: Training.
"""

from scalingbook_lib.evidence.scores import COVERAGE, Score, Summary
from scalingbook_lib.evidence.training.candidate_plans import all_runs
from scalingbook_lib.evidence.training.compared import PlanPair, plan_pairs
from scalingbook_lib.evidence.training.planned import TrainingSetup, planned, seconds
from scalingbook_lib.evidence.training.scores import (
    covered,
    held_out,
    interval_coverage,
    interval_rows,
    prediction_interval,
    scores,
    source,
    total,
)

__all__ = [
    "COVERAGE",
    "PlanPair",
    "Score",
    "Summary",
    "TrainingSetup",
    "all_runs",
    "covered",
    "held_out",
    "interval_coverage",
    "interval_rows",
    "plan_pairs",
    "planned",
    "prediction_interval",
    "scores",
    "seconds",
    "source",
    "total",
]
