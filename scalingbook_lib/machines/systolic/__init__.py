"""How does a matrix unit multiply, and how much of it does a matmul keep busy?

A systolic array with stationary weights, played cycle by cycle on small integers (`simulate`), and what
follows from it: cycles, utilization, padding, peak FLOPs/s. Chapter: TPUs.
"""

from scalingbook_lib.machines.systolic.array import ArrayRun, Cell, Frame, simulate
from scalingbook_lib.machines.systolic.cycles import cycles, rows_for, tile_period, utilization
from scalingbook_lib.machines.systolic.padding import Padding, Storage, padding, storage
from scalingbook_lib.machines.systolic.peak import Peak, peak, peak_of

__all__ = [
    "ArrayRun",
    "Cell",
    "Frame",
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
