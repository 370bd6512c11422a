"""The cycles and the utilization of a matrix unit in a matmul.

The package simulates a weight-stationary systolic array cycle by cycle on small integers (`simulate`), and
has the closed forms that follow: cycles, utilization, padding and peak FLOPs/s. Chapter: TPUs.
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
