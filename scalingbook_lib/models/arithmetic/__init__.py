"""The cost of a Transformer: FLOPs, bytes and arithmetic intensities, part by part.

`einsum` counts one matmul; `params`, `flops`, `kv_cache`, `activations` and `training_state` count a model of
`models`; `training_flops`, `crossover` and `mfu` a training run. Every result has named terms that sum to it.
Chapter: Transformers.

>>> from scalingbook_lib import models
>>> print(kv_cache(models.find("llama-3-70b"), 8192))
Llama 3 70B, 1 × 8,192 positions in bf16: 2.5 GiB (full layers 2.68 GB (100%))
"""

from scalingbook_lib.models.arithmetic.experts import (
    Routing,
    all_to_all_bytes,
    routing,
)
from scalingbook_lib.models.arithmetic.layers import hidden, pairs, pointwise
from scalingbook_lib.models.arithmetic.memory import (
    CacheProfile,
    KVCache,
    Parameters,
    TrainingState,
    cache_profile,
    entry_bytes,
    kv_cache,
    params,
    states,
    training_state,
)
from scalingbook_lib.models.arithmetic.mixers import (
    Entries,
    MixedLayers,
    RecurrentState,
    bidirectional_flops,
    stack,
    video_tokens,
)
from scalingbook_lib.models.arithmetic.products import Einsum, EinsumError, einsum
from scalingbook_lib.models.arithmetic.remat import POLICIES, Activations, Policy, activations
from scalingbook_lib.models.arithmetic.softmax import (
    Intensity,
    OnlineSoftmax,
    SoftmaxState,
    SoftmaxStep,
    attention_intensity,
    block_bytes,
    latent_intensity,
    merge,
    online_softmax,
    prefill_tokens,
    query_block,
)
from scalingbook_lib.models.arithmetic.terms import Bytes, Term, Terms
from scalingbook_lib.models.arithmetic.training import (
    Flops,
    TrainingFlops,
    Utilization,
    crossover,
    flops,
    mfu,
    training_flops,
)

__all__ = [
    "POLICIES",
    "Activations",
    "Bytes",
    "CacheProfile",
    "Einsum",
    "EinsumError",
    "Entries",
    "Flops",
    "Intensity",
    "KVCache",
    "MixedLayers",
    "OnlineSoftmax",
    "Parameters",
    "Policy",
    "RecurrentState",
    "Routing",
    "SoftmaxState",
    "SoftmaxStep",
    "Term",
    "Terms",
    "TrainingFlops",
    "TrainingState",
    "Utilization",
    "activations",
    "all_to_all_bytes",
    "attention_intensity",
    "bidirectional_flops",
    "block_bytes",
    "cache_profile",
    "crossover",
    "einsum",
    "entry_bytes",
    "flops",
    "hidden",
    "kv_cache",
    "latent_intensity",
    "merge",
    "mfu",
    "online_softmax",
    "pairs",
    "params",
    "pointwise",
    "prefill_tokens",
    "query_block",
    "routing",
    "stack",
    "states",
    "training_flops",
    "training_state",
    "video_tokens",
]
