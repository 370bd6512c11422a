"""The bands of predictions as `tools.calibrate` records them for `calibrated.bands`, from left-out runs.

Chapters: Training; Inference.
"""

from collections import Counter
from itertools import product

from scalingbook_lib.calibrated.bands import serving_name, training_name
from scalingbook_lib.evidence import inference, training

SEEN = ("release", "software", "")
_SERVING = {"serving": "saturated", "prefill": "prefill"}  # all other kinds are steps that decode


def computed() -> dict[str, dict[str, float]]:
    """The factor of each band, and the number of left-out runs behind it."""
    found = {
        training_name(experts, seen): {
            "factor": round(training.prediction_interval(experts, seen), 3),
            "rows": training.interval_rows(experts, seen),
        }
        for experts, seen in product((False, True), SEEN)
    }
    for (experts, full), known in product(((False, True), (True, True), (False, False)), (True, False)):
        found[serving_name(experts, full, known)] = {
            "factor": round(inference.prediction_interval(experts, full=full, known=known), 3),
            "rows": inference.interval_rows(experts, full=full, known=known),
        }
    return found


def class_rows() -> dict[str, int]:
    """The number of runs of each class by which `evidence.score` groups rows."""
    kinds = Counter(f"training, {_kind(run.experts)}" for run in training.all_runs())
    kinds.update(
        f"serving {_SERVING.get(run.kind, 'decode')}, {_kind(run.experts)}" for run in inference.all_runs()
    )
    return dict(sorted(kinds.items()))


def _kind(experts: bool) -> str:
    return "experts" if experts else "dense"
