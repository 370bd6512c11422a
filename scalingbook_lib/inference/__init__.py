"""The time, memory and cost of serving: prefill, decode, and a steady load of requests.

A `Layout` shards one replica of the model over a machine (a `Slice` or a `Cluster`). `memory` and
`largest_batch` say what fits. `decode`, `prefill` and `mixed` return the time of a step by term, and
`case(...).step_s` its seconds alone, for simulators and searches. A `ServingEfficiency` holds what real chips
reach. `serve` returns the steady state; `transfer`, `pools`, `prefix` and `load` price moving the KV cache;
`speculative` is speculative decoding, and `diffusion` generates a block in a few passes. `batch` counts
sequences, S the cached tokens and T the new tokens of each, P prompt tokens and G generated tokens. The
closed forms are in `scalingbook_lib.rules`.
Chapters: Inference; Serving Llama 3; Linear attention, sparse attention and diffusion.

>>> from scalingbook_lib import models
>>> from scalingbook_lib.machines import Slice, chips
>>> decode(models.find("llama-3-70b"), Slice.of(chips.V5E, "4x4"), Layout(tp=16), batch=32, S=2048).bottleneck
'weights'
"""

from scalingbook_lib.inference.case import ServingCase, case
from scalingbook_lib.inference.crossover import Crossover, crossover_batch
from scalingbook_lib.inference.diffusion import Diffusion, diffusion
from scalingbook_lib.inference.drafting import PLAIN, Drafting
from scalingbook_lib.inference.efficiency import PEAK, ByType, ServingEfficiency, by_type
from scalingbook_lib.inference.kv_transfer import KVTransfer, Pools, pools, transfer
from scalingbook_lib.inference.layout import Layout, LayoutError
from scalingbook_lib.inference.memory import ServingMemory, concurrency, largest_batch, memory
from scalingbook_lib.inference.prefix import Prefix, prefix
from scalingbook_lib.inference.queueing import little, slots_taken, static_waste, ttft_quantile
from scalingbook_lib.inference.serve import POLICIES, Serving, serve
from scalingbook_lib.inference.speculative import Speculation, best_draft, speculative
from scalingbook_lib.inference.step import InferenceStep, decode, mixed, prefill
from scalingbook_lib.inference.tiers import Tier, TierLoad, load
from scalingbook_lib.inference.traffic import ServingCollective

__all__ = [
    "PEAK",
    "PLAIN",
    "POLICIES",
    "ByType",
    "Crossover",
    "Diffusion",
    "Drafting",
    "InferenceStep",
    "KVTransfer",
    "Layout",
    "LayoutError",
    "Pools",
    "Prefix",
    "Serving",
    "ServingCase",
    "ServingCollective",
    "ServingEfficiency",
    "ServingMemory",
    "Speculation",
    "Tier",
    "TierLoad",
    "best_draft",
    "by_type",
    "case",
    "concurrency",
    "crossover_batch",
    "decode",
    "diffusion",
    "largest_batch",
    "little",
    "load",
    "memory",
    "mixed",
    "pools",
    "prefill",
    "prefix",
    "serve",
    "slots_taken",
    "speculative",
    "static_waste",
    "transfer",
    "ttft_quantile",
]
