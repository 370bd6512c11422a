"""The degrees and sizes up to which training stays compute-bound: the limits of DP, TP, EP and PP.

They are computed level by level on a `clusters.Cluster`, and over whole torus axes on a TPU `Slice`:
`limits.data_parallel`, `tensor_parallel`, `widest_tensor_parallel`, `expert_parallel` and
`pipeline_parallel`. `table()` lists the rules of all machines, and `audit` checks a whole plan. A layer is
represented by its MLP; C is the documented peak. Chapter: GPUs.

>>> from scalingbook_lib.machines import Cluster, chips
>>> round(data_parallel(Cluster.of(chips.H100, 4096), model_parallel=8).least)  # tokens for each chip
2468
"""

from scalingbook_lib.steps.limits.audit import Audit, audit
from scalingbook_lib.steps.limits.expert import (
    ExpertExchange,
    RoutedLayer,
    exchange,
    expert_parallel,
    reached,
    routed_layer,
)
from scalingbook_lib.steps.limits.limit import MACHINES, LevelLimit, Limit, Rules, each_level, rules, table
from scalingbook_lib.steps.limits.parallel import (
    PipelineLimit,
    Widest,
    data_parallel,
    pipeline_parallel,
    tensor_parallel,
    widest_tensor_parallel,
)

__all__ = [
    "MACHINES",
    "Audit",
    "ExpertExchange",
    "LevelLimit",
    "Limit",
    "PipelineLimit",
    "RoutedLayer",
    "Rules",
    "Widest",
    "audit",
    "data_parallel",
    "each_level",
    "exchange",
    "expert_parallel",
    "pipeline_parallel",
    "reached",
    "routed_layer",
    "rules",
    "table",
    "tensor_parallel",
    "widest_tensor_parallel",
]
