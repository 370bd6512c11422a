"""How far can training be spread before the network sets the pace? The limits of DP, TP, EP and PP.

On a `clusters.Cluster` level by level, and on a TPU `Slice` over whole torus axes: `limits.data_parallel`,
`tensor_parallel`, `widest_tensor_parallel`, `expert_parallel`, `pipeline_parallel`; `table()` machine by
machine; `audit` for a whole plan. An MLP stands for its layer; C is the documented peak. Chapter: GPUs.

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
