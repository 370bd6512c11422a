"""How many FLOPs does attention do for each byte of keys and values?

Flash attention reads the queries, keys and values once and writes the output once; scores and probabilities
stay on the chip. For long prompts the bytes are those of keys and values per query block, and in decoding
those of the cache: then G queries share what is read. Chapters: Transformers, Inference.
"""

import math
from dataclasses import dataclass

from scalingbook_lib.models import Latent
from scalingbook_lib.units import BF16, DType, Told, at_least, si


@dataclass(frozen=True, slots=True)
class Intensity(Told):
    """FLOPs and bytes of one layer's attention for one sequence and one key/value head."""

    flops: float
    query_bytes: float
    cache_bytes: float

    @property
    def bytes(self) -> float:
        """Queries read and outputs written, keys and values read."""
        return self.query_bytes + self.cache_bytes

    @property
    def flops_per_byte(self) -> float:
        """The intensity: compute-bound where it exceeds the chip's ridge."""
        return self.flops / self.bytes

    def __str__(self) -> str:
        ends, cache = si(self.query_bytes, "B"), si(self.cache_bytes, "B")
        parts = f"{ends} of queries and outputs, {cache} of keys and values"
        return f"{self.flops_per_byte:.4g} FLOPs/byte: {si(self.flops, 'FLOPs')} for {parts}"


def attention_intensity(
    T: int,
    S: int,
    G: int,
    *,
    H: int = 128,
    dtype: DType = BF16,
    cache: DType | None = None,
    block: int | None = None,
    causal: bool = False,
) -> Intensity:
    """Q[T, G, H] · K[S, H] → scores · V[S, H] → O[T, G, H]: intensity T·S·G/(T·G + S) in bf16.

    `block` queries are on the chip at a time, so keys and values are read once for each block; by default,
    once in all. `cache` is the type of keys and values. With `causal`, a kernel skips what is masked:
    half the FLOPs of a square, and with blocks half of the reading too.
    """
    at_least(1, T=T, S=S, G=G, H=H)
    blocks = 1 if block is None else math.ceil(T / block)
    useful = 1 - (T - 1) / (2 * S) if causal else 1
    seen = useful if blocks > 1 else 1
    return Intensity(
        flops=4 * T * S * G * H * useful,  # scores and values, a multiply and an add each
        query_bytes=2 * dtype.bytes * T * G * H,  # read Q, write O
        cache_bytes=2 * (cache or dtype).bytes * S * H * blocks * seen,  # read K and V for every block
    )


def latent_intensity(
    latent: Latent, N: int, S: int, *, T: int = 1, dtype: DType = BF16, cache: DType | None = None
) -> Intensity:
    """Absorbed MLA decoding: all N heads share one latent vector per position, key and value at once."""
    at_least(1, T=T, S=S, N=N)
    key, value = latent.kv_rank + latent.rope, latent.kv_rank
    return Intensity(
        flops=2 * T * S * N * (key + value),  # scores over the whole vector, values over its first part
        query_bytes=dtype.bytes * T * N * (key + value),
        cache_bytes=(cache or dtype).bytes * S * key,  # read once
    )


def prefill_tokens(ridge: float, G: int) -> float:
    """The prompt (T = S) from which attention is compute-bound: T·G/(G + 1) = ridge, in bf16, not causal."""
    at_least(1, G=G)
    return ridge * (G + 1) / G


def query_block(ridge: float, G: int, cache: DType = BF16) -> float:
    """The query block from which reading K and V keeps up, for long T: 2·block·G/bytes = ridge."""
    at_least(1, G=G)
    return ridge * cache.bytes / (2 * G)


def block_bytes(
    block: int, keys: int, G: int, *, H: int = 128, dtype: DType = BF16, buffers: int = 2
) -> float:
    """What a flash kernel holds on the chip, for one key/value head.

    Queries of the block; keys and values of the next `buffers` blocks; scores, the weighted sum of values
    and, for each query row, m and l in fp32.
    """
    at_least(1, block=block, keys=keys, G=G, H=H)
    rows = block * G
    tiles = dtype.bytes * (rows * H + buffers * 2 * keys * H)
    return tiles + 4 * (rows * keys + rows * H + 2 * rows)
