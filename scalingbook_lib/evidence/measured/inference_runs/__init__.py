"""How fast did real engines run a model? Published prefill, decode and serving, each with its work and split.

`RUNS` are the usable rows of `data/inference_runs.csv`, `REFUSED` the others by the reason; a test holds both
to the file. Sources print tokens/s, or the time of a step or of all: `InferenceRun.tokens_per_s` is one
convention for all. Chapter: Inference.
"""

from scalingbook_lib.evidence.measured.inference_runs.refused import REFUSED
from scalingbook_lib.evidence.measured.inference_runs.rows import FAMILIES
from scalingbook_lib.evidence.measured.inference_runs.run import KINDS, InferenceRun
from scalingbook_lib.evidence.measured.inference_runs.table import Family

RUNS: tuple[InferenceRun, ...] = tuple(run for family in FAMILIES for run in family.runs())
"""Every usable run."""


def find(id: str) -> InferenceRun:
    """The run of that id in `data/inference_runs.csv`."""
    for run in RUNS:
        if run.id == id:
            return run
    why = next((reason for reason, ids in REFUSED.items() if id in ids), "the table has no such row")
    raise KeyError(f"no usable run {id!r}: {why}")


__all__ = ["FAMILIES", "KINDS", "REFUSED", "RUNS", "Family", "InferenceRun", "find"]
