"""Chips, the networks that connect them, and the utilization of a chip by a kernel or a matmul.

`chips` is the catalog, in which every number has its source. A `Slice` is TPUs on a torus, a `Cluster` is
GPUs under switches, and `Machine` is either. `occupancy` and `systolic` model the inside of a chip. Chapters:
TPUs; GPUs.
"""

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.machines.clusters import Cluster, ClusterError, Level
from scalingbook_lib.machines.slices import Slice, SliceMesh
from scalingbook_lib.machines.torus import Axis, SliceError, Torus

type Machine = Cluster | Slice

__all__ = [
    "Axis",
    "Chip",
    "Cluster",
    "ClusterError",
    "Level",
    "Machine",
    "Slice",
    "SliceError",
    "SliceMesh",
    "Torus",
]
