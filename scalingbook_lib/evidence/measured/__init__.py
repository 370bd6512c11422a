"""Published measurements of real chips, each with its theoretical bound.

Single-chip kernels are in `kernels`, collectives in `collectives`, training steps in `training_runs`, whole
runs in `whole_runs`, and prefill, decode and serving in `inference_runs`. The rows are in `evidence/data` and
are read on first use. Chapters: Rooflines; GPUs; Training; Inference.
"""

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.measured import kernels
from scalingbook_lib.evidence.measured.collectives import (
    CollectiveComparison,
    CollectiveRun,
    MeasuredTime,
    runs,
)
from scalingbook_lib.evidence.measured.kernels import MatmulSweep, Measured

SWEEPS: dict[str, MatmulSweep]
"""Batch sweeps on GPUs, by name."""
SQUARES: tuple[Measured, ...]
"""Matmuls of square matrices on TPUs."""
MATMULS: tuple[Measured, ...]
"""Every measured matmul."""
COPY: Measured
"""An HBM copy on a TPU v6e."""
RUNS: tuple[CollectiveRun, ...]
"""Every size sweep of one collective on one number of chips."""
COLLECTIVES: CollectiveComparison
"""Every published time of a collective within one scale-up domain, with the model's."""

__getattr__ = resources.lazy_attributes(
    __name__,
    {
        "SWEEPS": kernels.sweeps,
        "SQUARES": kernels.squares,
        "MATMULS": kernels.matmuls,
        "COPY": kernels.copy,
        "RUNS": runs,
        "COLLECTIVES": lambda: CollectiveComparison(runs()),
    },
)

__all__ = [
    "COLLECTIVES",
    "COPY",
    "MATMULS",
    "RUNS",
    "SQUARES",
    "SWEEPS",
    "CollectiveComparison",
    "CollectiveRun",
    "MatmulSweep",
    "Measured",
    "MeasuredTime",
]
