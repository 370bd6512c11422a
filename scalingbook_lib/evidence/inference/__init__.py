"""How near does predicted inference come to published runs? Layouts, the frozen efficiencies, the errors.

`calibrated(chip, compute)` is the efficiency to predict with; `scores()` are all usable runs, `total(kind)`
their errors, `band()` what to add to a prediction. `efficiencies` says how its figures
were found. Chapter: Inference.
"""

from scalingbook_lib.evidence.inference.efficiencies import calibrated
from scalingbook_lib.evidence.inference.planned import Planned, planned
from scalingbook_lib.evidence.inference.predicted import tokens_per_s
from scalingbook_lib.evidence.inference.scores import (
    KINDS,
    InferenceScore,
    band,
    held_by_band,
    scores,
    source,
    total,
)
from scalingbook_lib.evidence.measured.inference_runs import every
from scalingbook_lib.evidence.scores import HOLDS

__all__ = [
    "HOLDS",
    "KINDS",
    "InferenceScore",
    "Planned",
    "band",
    "calibrated",
    "every",
    "held_by_band",
    "planned",
    "scores",
    "source",
    "tokens_per_s",
    "total",
]
