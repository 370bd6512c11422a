"""Rotary position embeddings and grouped-query attention over a sequence that is sharded across devices.

Context parallelism comes in two forms: ring attention, which passes keys and values around a ring, and
Ulysses, which reshards from tokens to heads and back with two all-to-alls. Chapter: Training.
"""

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from scalingbook_lab.collectives import exchange, shift

BLOCK = 512  # number of keys whose scores are in memory at once
MASKED = -1e30  # finite, because -inf - (-inf) would be nan


def rotary(x: jax.Array, positions: jax.Array) -> jax.Array:
    """RoPE: rotate each pair of elements of x[b, t, n, h] by its position times the frequency of the pair."""
    half = x.shape[-1] // 2
    angle = positions[:, None] * 10_000.0 ** (-jnp.arange(half) / half)
    cos, sin = (f(angle)[:, None].astype(x.dtype) for f in (jnp.cos, jnp.sin))
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def ring(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Return the causal attention output of this device's queries, computed by ring attention.

    The keys and values make n - 1 hops around the ring of the mesh axis C.
    """
    n, me = lax.axis_size("C"), lax.axis_index("C")

    def blocks() -> Iterator[tuple[jax.Array, jax.Array]]:
        kv = jnp.stack([k, v])
        for hop in range(n):
            kv = shift(kv, "C") if hop else kv
            yield kv, (me - (me - hop) % n) * q.shape[1]

    return attend(q, blocks())


def ulysses(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Return the causal attention output of all tokens for this device's share of the heads (Ulysses).

    One all-to-all over C before the attention and one after it reshard between tokens and heads.
    """
    q, k, v = (exchange(x, "C", 2, 1) for x in (q, k, v))
    return exchange(attend(q, [(jnp.stack([k, v]), 0)]), "C", 1, 2)


CONTEXT = {"ring": ring, "ulysses": ulysses}


def attend(q: jax.Array, blocks: Iterable[tuple[jax.Array, int | jax.Array]]) -> jax.Array:
    """Causal softmax attention of q[b, t, n, h] to keys and values [2, b, t, k, h], block by block.

    Each block comes with the number of tokens by which it precedes the queries. The running sums are rescaled
    to the largest score seen so far, and the backward pass recomputes the scores, so memory never holds more
    scores than those of one block.
    """
    groups = q.reshape(*q.shape[:2], -1, 1, q.shape[-1]) * q.shape[-1] ** -0.5
    sums: tuple[Any, ...] = (0.0, MASKED, 0.0)
    for kv, before in blocks:
        groups = groups.reshape(*q.shape[:2], kv.shape[3], -1, q.shape[-1])
        for start in range(0, kv.shape[2], BLOCK):
            sums = _met(groups, kv[:, :, start : start + BLOCK], before - start, sums)
    # [b, k, g, t, h] → [b, t, k, g, h] → [b, t, n, h]
    return jnp.moveaxis(sums[0] / sums[2][..., None], 3, 1).reshape(q.shape).astype(q.dtype)


@functools.partial(jax.checkpoint, prevent_cse=False)
def _met(q: jax.Array, kv: jax.Array, before: int | jax.Array, sums: tuple) -> tuple:
    """Return every query's output, largest score and sum of exponentials after one more block of keys."""
    out, top, total = sums
    scores = jnp.einsum("btkgh,bskh->bkgts", q, kv[0]).astype(jnp.float32)
    mask = jnp.arange(q.shape[1])[:, None] + before >= jnp.arange(kv.shape[2])
    scores = jnp.where(mask, scores, MASKED)
    new_top = lax.stop_gradient(jnp.maximum(top, scores.max(-1)))
    decay, p = jnp.exp(top - new_top), jnp.exp(scores - new_top[..., None])
    values = jnp.einsum("bkgts,bskh->bkgth", p.astype(q.dtype), kv[1])
    return out * decay[..., None] + values, new_top, total * decay + p.sum(-1)
