"""The accuracy of predictions against published runs of inference.

`scores()` has all usable runs, `total(kind)`
their errors, `prediction_interval()` the factor that goes with a prediction. `efficiencies` describes the
fit. Chapter: Inference.
"""

from scalingbook_lib.evidence.inference.planned import ServingSetup, planned
from scalingbook_lib.evidence.inference.predicted import tokens_per_s
from scalingbook_lib.evidence.inference.scores import (
    KINDS,
    InferenceScore,
    covered,
    interval_coverage,
    interval_rows,
    prediction_interval,
    scores,
    source,
    total,
)
from scalingbook_lib.evidence.measured.inference_runs import all_runs
from scalingbook_lib.evidence.scores import COVERAGE

__all__ = [
    "COVERAGE",
    "KINDS",
    "InferenceScore",
    "ServingSetup",
    "all_runs",
    "covered",
    "interval_coverage",
    "interval_rows",
    "planned",
    "prediction_interval",
    "scores",
    "source",
    "tokens_per_s",
    "total",
]
