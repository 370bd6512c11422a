"""Read and write a paged KV cache, and compute attention over it.

One layer's cache consists of arrays of J blocks of S tokens, KV[J_AXZ, S_C, K_Y, H]. Tables name the blocks
of each sequence; without tables, sequence b has block b. Each device of C has its part of every block, so
queries attend to each part separately, and the results are merged (flash-decoding). Chapter: Inference.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from scalingbook_lab.attention import MASKED
from scalingbook_lab.collectives import scatter, spread

CACHE = "KV[J_AXZ, S_C, K_Y, H]"

type LayerCache = dict[str, jax.Array]  # the cache of one layer


def encoded(k: jax.Array, v: jax.Array) -> LayerCache:
    """Return the arrays [b, t, K, ...] that the cache stores for k[b, t, K, H] and v."""
    return {"k": k, "v": v}


def decoded(cache: LayerCache) -> tuple[jax.Array, ...]:
    """Return the cached k and v, followed by the scales [b, t, K, 1] of both if the cache has scales."""
    return cache["k"], cache["v"]


class Codec(NamedTuple):
    """A way to encode k and v for the cache and decode them; `quantize.CACHE8` stores 8 bits."""

    encode: Callable[[jax.Array, jax.Array], LayerCache]
    decode: Callable[[LayerCache], tuple[jax.Array, ...]]


PLAIN = Codec(encoded, decoded)


def kv_heads(cache: LayerCache) -> int:
    """Return the number of key-value heads on this device."""
    return next(iter(cache.values())).shape[2]


def write(
    cache: LayerCache, new: LayerCache, positions: jax.Array, real: jax.Array, tables: jax.Array | None
) -> LayerCache:
    """Return the cache with the new arrays of [b, t] written at `positions`.

    Each device of C writes its part of a block.
    """
    shard_tokens = next(iter(cache.values())).shape[1]
    size = shard_tokens * lax.axis_size("C")
    if tables is None:
        tables = jnp.arange(len(positions))[:, None]
    # position p is offset p % size in the sequence's block p // size; device c of C has the c-th part of each
    # block, so that even a short sequence is spread over all devices of C
    block = jnp.take_along_axis(tables, positions // size, 1, mode="clip")
    offset = positions % size - lax.axis_index("C") * shard_tokens
    real = real & (offset >= 0) & (positions < size * tables.shape[1])
    offset = jnp.where(real, offset, shard_tokens)  # past the end, so the write is dropped
    return {
        name: a.at[block, offset].set(new[name].astype(a.dtype), mode="drop") for name, a in cache.items()
    }


def read(
    cache: LayerCache, decode: Callable, tables: jax.Array | None
) -> tuple[tuple[jax.Array, ...], jax.Array]:
    """Return this device's keys and values [b, s, K_Y, H], with any scales, and their positions [s]."""
    parts = decode(cache)
    shard_tokens = parts[0].shape[1]
    blocks = 1 if tables is None else tables.shape[1]
    first = jnp.arange(blocks) * shard_tokens * lax.axis_size("C") + lax.axis_index("C") * shard_tokens
    positions = (first[:, None] + jnp.arange(shard_tokens)).reshape(-1)
    if tables is not None:
        parts = tuple(a[tables].reshape(len(tables), -1, *a.shape[2:]) for a in parts)
    return parts, positions


def attend(
    q: jax.Array, mask: jax.Array, k: jax.Array, v: jax.Array, *scales: jax.Array
) -> tuple[jax.Array, ...]:
    """Return the weighted sum, largest score and sum of exponentials of q[b, t, n, h] over this device's
    keys.

    The scale of a key multiplies its score, and the scale of a value its weight. This takes H times fewer
    multiplications than scaling k and v.
    """
    of_k, of_v = (jnp.moveaxis(s, 1, -1)[:, None] for s in scales) if scales else (1, 1)  # [b, 1, k, 1, s]
    groups = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[-1]) * q.shape[-1] ** -0.5
    scores = jnp.einsum("btkgh,bskh->btkgs", groups, k.astype(q.dtype)).astype(jnp.float32) * of_k
    # MASKED is finite, because on a device of C without keys of a sequence -inf - (-inf) would be nan
    scores = jnp.where(mask[:, :, None, None], scores, MASKED)
    top = scores.max(-1)
    p = jnp.exp(scores - top[..., None])
    out = jnp.einsum("btkgs,bskh->btkgh", (p * of_v).astype(q.dtype), v.astype(q.dtype))
    return out.astype(jnp.float32).reshape(q.shape), top.reshape(q.shape[:3]), p.sum(-1).reshape(q.shape[:3])


def merge(out: jax.Array, top: jax.Array, total: jax.Array) -> jax.Array:
    """Combine the partial results of all devices of C (flash-decoding); each device keeps N_YC of the heads.

    The data that moves is the largest score of each head, then a sum of H + 1 numbers for each head, in fp32.
    """
    # every device's sums are relative to its own largest score: rescale them to the global largest, then add
    scale = jnp.exp(top - spread(lax.pmax, top, "C"))[..., None]
    sums = scatter(jnp.concatenate([out, total[..., None]], -1) * scale, "C", 2)
    return sums[..., :-1] / sums[..., -1:]
