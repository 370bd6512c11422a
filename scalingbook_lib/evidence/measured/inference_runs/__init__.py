"""How fast did real engines run a model? Published prefill, decode and serving, each with its work and split.

`RUNS` are the usable rows of `evidence/data/inference_runs.csv`, `REFUSED` the others by the reason. Sources
print tokens/s, or the time of a step or of all: `InferenceRun.tokens_per_s` is one convention for all.
Chapter: Inference.
"""

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.measured.inference_runs.read import runs
from scalingbook_lib.evidence.measured.inference_runs.run import KINDS, InferenceRun

RUNS: tuple[InferenceRun, ...]
"""Every usable run."""
REFUSED: dict[str, tuple[str, ...]]
"""The ids of the rows that are left out, by the reason.

A run is usable where the source names the model and its shapes, the chips and how they were split, the work
(prompt, tokens generated or context, and how many sequences at once, unless the engine takes all that fit),
and prints a time or a rate.
"""

__getattr__ = resources.lazily(
    __name__, {"RUNS": runs, "REFUSED": lambda: resources.refused("inference_runs")}
)


def find(id: str) -> InferenceRun:
    """The run of that id."""
    return resources.find(id, runs(), "inference_runs")


__all__ = ["KINDS", "REFUSED", "RUNS", "InferenceRun", "find"]
