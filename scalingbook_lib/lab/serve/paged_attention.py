"""Where is the cache of keys and values, how does a token get in, and how do queries meet it?

One layer's cache is arrays of J blocks of S tokens, KV[J_AXZ, S_C, K_Y, H]; tables name the blocks of each
sequence, and without tables sequence b has block b. Each device of C has its part of every block, so queries
meet all parts, and what they make of them is put together (flash-decoding). Chapter: Inference.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from scalingbook_lib.lab.attention import MASKED
from scalingbook_lib.lab.collectives import scatter, spread

CACHE = "KV[J_AXZ, S_C, K_Y, H]"

type Kept = dict[str, jax.Array]  # the cache of one layer


def encoded(k: jax.Array, v: jax.Array) -> Kept:
    """What the cache keeps of k[b, t, K, H] and v: arrays [b, t, K, ...]."""
    return {"k": k, "v": v}


def decoded(kept: Kept) -> tuple[jax.Array, ...]:
    """The k and v of what the cache kept; after them the scales [b, t, K, 1] of both, if there are any."""
    return kept["k"], kept["v"]


class Codec(NamedTuple):
    """What is cached of k and v, and back: with numbers of 8 bits, `quantize.CACHE8`."""

    encode: Callable[[jax.Array, jax.Array], Kept]
    decode: Callable[[Kept], tuple[jax.Array, ...]]


PLAIN = Codec(encoded, decoded)


def heads(kept: Kept) -> int:
    """The key-value heads of this device."""
    return next(iter(kept.values())).shape[2]


def written(kept: Kept, new: Kept, at: jax.Array, real: jax.Array, tables: jax.Array | None) -> Kept:
    """The cache with what is new of [b, t] at positions `at`; each device of C keeps its part of a block."""
    here = next(iter(kept.values())).shape[1]
    size = here * lax.axis_size("C")
    if tables is None:
        tables = jnp.arange(len(at))[:, None]
    # position `at` is place at % size of the sequence's block at // size; of each block, device c of C has
    # the c-th part, so all devices of C have some of every sequence however short it is
    block = jnp.take_along_axis(tables, at // size, 1, mode="clip")
    place = at % size - lax.axis_index("C") * here
    real = real & (place >= 0) & (at < size * tables.shape[1])
    place = jnp.where(real, place, here)  # past the end: dropped
    return {name: a.at[block, place].set(new[name].astype(a.dtype), mode="drop") for name, a in kept.items()}


def read(kept: Kept, decode: Callable, tables: jax.Array | None) -> tuple[tuple[jax.Array, ...], jax.Array]:
    """Keys and values [b, s, K_Y, H] of this device with any scales, and the positions [s] that they have."""
    parts = decode(kept)
    here = parts[0].shape[1]
    blocks = 1 if tables is None else tables.shape[1]
    first = jnp.arange(blocks) * here * lax.axis_size("C") + lax.axis_index("C") * here
    positions = (first[:, None] + jnp.arange(here)).reshape(-1)
    if tables is not None:
        parts = tuple(a[tables].reshape(len(tables), -1, *a.shape[2:]) for a in parts)
    return parts, positions


def attend(
    q: jax.Array, seen: jax.Array, k: jax.Array, v: jax.Array, *scales: jax.Array
) -> tuple[jax.Array, ...]:
    """Of q[b, t, n, h] with the keys of this device: weighted sum, largest score, sum of exponentials.

    The scale of a token's head multiplies its score, and its weight: H times fewer products than before them.
    """
    of_k, of_v = (jnp.moveaxis(s, 1, -1)[:, None] for s in scales) if scales else (1, 1)  # [b, 1, k, 1, s]
    groups = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[-1]) * q.shape[-1] ** -0.5
    scores = jnp.einsum("btkgh,bskh->btkgs", groups, k.astype(q.dtype)).astype(jnp.float32) * of_k
    # MASKED is finite: a device of C that has no key of a sequence would make nan of the difference of two
    # -inf
    scores = jnp.where(seen[:, :, None, None], scores, MASKED)
    top = scores.max(-1)
    p = jnp.exp(scores - top[..., None])
    out = jnp.einsum("btkgs,bskh->btkgh", (p * of_v).astype(q.dtype), v.astype(q.dtype))
    return out.astype(jnp.float32).reshape(q.shape), top.reshape(q.shape[:3]), p.sum(-1).reshape(q.shape[:3])


def merged(out: jax.Array, top: jax.Array, total: jax.Array) -> jax.Array:
    """The parts of all devices of C put together (flash-decoding): each keeps N_YC of the heads.

    What moves is the largest score of each head, then a sum of H + 1 numbers for each, in 32 bits.
    """
    # every device's sums are relative to its own largest score; once all know the largest of all, they add up
    scale = jnp.exp(top - spread(lax.pmax, top, "C"))[..., None]
    sums = scatter(jnp.concatenate([out, total[..., None]], -1) * scale, "C", 2)
    return sums[..., :-1] / sums[..., -1:]
