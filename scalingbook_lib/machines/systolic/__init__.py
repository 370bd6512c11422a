"""How does a matrix unit multiply, and how much of it does a matmul keep busy?

A systolic array with stationary weights, played cycle by cycle on small integers (`simulate`), and what
follows from it: cycles, utilization, padding, peak FLOPs/s. Chapter: TPUs.
"""

from scalingbook_lib.machines.systolic.array import ArrayCell, ArrayFrame, ArrayRun, simulate
from scalingbook_lib.machines.systolic.padding import (
    Padding,
    Peak,
    Storage,
    cycles,
    padding,
    peak,
    peak_of,
    rows_for,
    storage,
    tile_period,
    utilization,
)

__all__ = [
    "ArrayCell",
    "ArrayFrame",
    "ArrayRun",
    "Padding",
    "Peak",
    "Storage",
    "cycles",
    "padding",
    "peak",
    "peak_of",
    "rows_for",
    "simulate",
    "storage",
    "tile_period",
    "utilization",
]
