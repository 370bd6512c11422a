"""How near do real chips come to their bounds? Published measurements, each beside its bound.

Kernels of one chip in `kernels`, collectives in `collectives`, steps of training in `training_runs`, whole
runs in `whole_runs`, prefill, decode and serving in `inference_runs`. The rows stand in `evidence/data`, and
are read when somebody asks for them. Chapters: Rooflines, GPUs, Training, Inference.
"""

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.measured import kernels
from scalingbook_lib.evidence.measured.collectives import (
    CollectiveRun,
    CollectiveTime,
    Comparison,
    runs,
)
from scalingbook_lib.evidence.measured.kernels import Measured, Sweep

SWEEPS: dict[str, Sweep]
"""Batch sweeps on GPUs, by name."""
SQUARES: tuple[Measured, ...]
"""Matmuls of square matrices on TPUs."""
MATMULS: tuple[Measured, ...]
"""Every measured matmul."""
COPY: Measured
"""A copy on a TPU v6e."""
RUNS: tuple[CollectiveRun, ...]
"""Every run of a collective, one kind and number of chips each."""
COLLECTIVES: Comparison
"""Every published time of a collective within one domain, beside the model."""

__getattr__ = resources.lazily(
    __name__,
    {
        "SWEEPS": kernels.sweeps,
        "SQUARES": kernels.squares,
        "MATMULS": kernels.matmuls,
        "COPY": kernels.copy,
        "RUNS": runs,
        "COLLECTIVES": lambda: Comparison(runs()),
    },
)

__all__ = [
    "COLLECTIVES",
    "COPY",
    "MATMULS",
    "RUNS",
    "SQUARES",
    "SWEEPS",
    "CollectiveRun",
    "CollectiveTime",
    "Comparison",
    "Measured",
    "Sweep",
]
