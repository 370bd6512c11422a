"""How near do real chips come to their bounds? Published measurements, each beside its bound.

Kernels of one chip in `kernels`; collectives in `nccl` and `collectives`, read when somebody asks for them,
as pages about kernels do without; steps of training in `training_runs`, whole runs in `whole_runs`, prefill,
decode and serving in `inference_runs`, imported where they are needed. Every row stands in `data/` too, and a
test holds both together; the library carries its own copy because it also runs where those files are not: in
a browser, or installed alone. Chapters: Rooflines, GPUs, Training, Inference.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scalingbook_lib.evidence.measured.kernels import COPY, MATMULS, SQUARES, SWEEPS, Measured, Sweep

if TYPE_CHECKING:
    from scalingbook_lib.evidence.measured.collectives import COLLECTIVES, Comparison, Errors, Fit, Point
    from scalingbook_lib.evidence.measured.nccl import RUNS
    from scalingbook_lib.evidence.measured.runs import Run

__all__ = [
    "COLLECTIVES",
    "COPY",
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

_LATER = {
    "COLLECTIVES": "collectives",
    "Comparison": "collectives",
    "Errors": "collectives",
    "Fit": "collectives",
    "Point": "collectives",
    "RUNS": "nccl",
    "Run": "runs",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
