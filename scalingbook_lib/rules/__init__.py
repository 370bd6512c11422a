"""The closed forms of the book: the ratios of a chip, and the limits that follow from them.

Each closed form is defined once, here. `ridge` and `network_ridge` are a chip's FLOPs per byte of HBM and of
its links; `critical_batch` and `matmul_critical_batch` are the tokens above which a matmul is compute-bound.
There is one function for each kind of parallelism (`data_parallel_tokens`, `tensor_parallel_degree`,
`context_parallel_tokens`, `expert_parallel_width`; for a pipeline see `steps.pipelines.bubble`), and there
are those of a decode step.

`roofline`, `steps.limits`, `training.step` and `inference.decode` compute exactly what these formulas
approximate. Letters are those of "Notation and units": B is always tokens here, and `batch` is sequences.

>>> from scalingbook_lib.machines import chips
>>> round(ridge(chips.V5E)), data_parallel_tokens(chips.V5P, axes=3)
(241, 765.0)
>>> print(critical_batch(chips.V5E, sparsity=256 / 8))
7,697 tokens per step on TPU v5e with bf16 weights computed in bf16, 32 times the 240.5 of a dense layer
"""

from scalingbook_lib.rules.datasheet import ChipRatios
from scalingbook_lib.rules.decoding import (
    DecodeStep,
    TwoDimensionalLayout,
    batch_within,
    decode_step,
    decode_tensor_parallel_degree,
    evicted,
    hbm_read_time_s,
    hops_s,
    latency_bound_batch,
    two_dimensional_layout,
    usd_per_million,
)
from scalingbook_lib.rules.matmul import (
    CriticalBatch,
    critical_batch,
    element_bytes,
    matmul_critical_batch,
    memory_bound_width,
)
from scalingbook_lib.rules.parallelism import (
    FsdpWithTensor,
    best_fsdp_degree,
    context_parallel_tokens,
    cross_pod_tokens,
    data_parallel_tokens,
    expert_parallel_width,
    fsdp_with_tensor,
    fsdp_with_tensor_tokens,
    tensor_parallel_degree,
)
from scalingbook_lib.rules.ratios import network_bytes_per_s, network_ridge, ridge, ridge_point
from scalingbook_lib.rules.training_run import Goodput, Pooled, goodput, pooled

__all__ = [
    "ChipRatios",
    "CriticalBatch",
    "DecodeStep",
    "FsdpWithTensor",
    "Goodput",
    "Pooled",
    "TwoDimensionalLayout",
    "batch_within",
    "best_fsdp_degree",
    "context_parallel_tokens",
    "critical_batch",
    "cross_pod_tokens",
    "data_parallel_tokens",
    "decode_step",
    "decode_tensor_parallel_degree",
    "element_bytes",
    "evicted",
    "expert_parallel_width",
    "fsdp_with_tensor",
    "fsdp_with_tensor_tokens",
    "goodput",
    "hbm_read_time_s",
    "hops_s",
    "latency_bound_batch",
    "matmul_critical_batch",
    "memory_bound_width",
    "network_bytes_per_s",
    "network_ridge",
    "pooled",
    "ridge",
    "ridge_point",
    "tensor_parallel_degree",
    "two_dimensional_layout",
    "usd_per_million",
]
