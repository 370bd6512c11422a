"""How near do real chips come to their bounds? Published measurements, each beside its bound.

Kernels of one chip in `kernels`, collectives in `nccl` and `collectives`; steps of training in
`training_runs` and whole runs in `whole_runs`, imported where they are needed. Every row stands in `data/`
too, and a test holds both together; the library carries its own copy because it also runs where those files
are not: in a browser, or installed alone. Chapters: Rooflines, GPUs, Training.
"""

from scalingbook_lib.measured.collectives import COLLECTIVES, Comparison, Errors, Fit, Point
from scalingbook_lib.measured.kernels import COPY, HALF_TPU7X, MATMULS, SQUARES, SWEEPS, Measured, Sweep
from scalingbook_lib.measured.nccl import RUNS
from scalingbook_lib.measured.runs import Run

__all__ = [
    "COLLECTIVES",
    "COPY",
    "HALF_TPU7X",
    "MATMULS",
    "RUNS",
    "SQUARES",
    "SWEEPS",
    "Comparison",
    "Errors",
    "Fit",
    "Measured",
    "Point",
    "Run",
    "Sweep",
]
