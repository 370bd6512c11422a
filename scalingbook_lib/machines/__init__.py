"""What does a program run on? Chips, the networks that join them, and what fits where.

`chips` is the catalogue: every figure with its source. A `Slice` is TPUs on a torus, a `Cluster` GPUs under
switches; `Machine` is either. `occupancy`, `systolic`: inside a chip. Chapters: TPUs, GPUs.
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
