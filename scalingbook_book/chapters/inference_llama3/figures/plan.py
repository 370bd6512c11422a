"""The server in all figures of the chapter: Llama 3 70B in int8 on sixteen TPU v5e."""

from scalingbook_lib import inference, models
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Slice
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.units import INT8, DType

LLAMA = models.find("Llama 3 70B")
SIXTEEN = Slice.of(V5E, "4x4")
P = S = 8192
G, B = 512, 32


def spread(n: int, weights: DType = INT8, kv: DType = INT8) -> Layout:
    """Tensor parallelism over n chips; the cache is sharded eight ways by heads, beyond that by sequences."""
    return Layout(tp=n, kv_batch=max(n // LLAMA.K, 1), weights=weights, kv=kv)


def step_on(shape: str) -> inference.InferenceStep:
    """A decode step of the chapter's 32 sequences on one slice."""
    where = Slice.of(V5E, shape)
    return inference.decode(LLAMA, where, spread(where.chips), batch=B, S=S)
