"""GPU clusters: scale-up domains of chips under a fat tree of switches, and mesh axes laid over them.

A mesh names factors of a cluster's levels. Chapter: GPUs.

>>> from scalingbook_lib.machines import chips
>>> [level.name for level in Cluster.of(chips.H100, 1024).levels]
['NVLink', 'leaf', 'spine']
"""

from scalingbook_lib.machines.clusters.cluster import NETWORK_HOP_S, PORTS, Cluster, ClusterMesh
from scalingbook_lib.machines.clusters.level import ClusterError, Level

__all__ = ["NETWORK_HOP_S", "PORTS", "Cluster", "ClusterError", "ClusterMesh", "Level"]
