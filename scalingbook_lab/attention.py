"""Rotary positions and grouped-query attention over a sequence that is sharded over devices.

Context parallelism is either ring attention, in which keys travel round a ring, or Ulysses, which trades
heads for tokens and back. Chapter: Training.
"""

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from scalingbook_lab.collectives import exchange, shift

BLOCK = 512  # keys whose scores are in memory at once
MASKED = -1e30  # finite: the difference of two of them is 0, not nan


def rotary(x: jax.Array, positions: jax.Array) -> jax.Array:
    """RoPE: each pair of x[b, t, n, h] rotated by its position times its frequency."""
    half = x.shape[-1] // 2
    angle = positions[:, None] * 10_000.0 ** (-jnp.arange(half) / half)
    cos, sin = (f(angle)[:, None].astype(x.dtype) for f in (jnp.cos, jnp.sin))
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def ring(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Ring attention: causal attention of this device's queries; keys and
    values make n - 1 hops round the ring C.
    """
    n, me = lax.axis_size("C"), lax.axis_index("C")

    def blocks() -> Iterator[tuple[jax.Array, jax.Array]]:
        kv = jnp.stack([k, v])
        for hop in range(n):
            kv = shift(kv, "C") if hop else kv
            yield kv, (me - (me - hop) % n) * q.shape[1]

    return attend(q, blocks())


def ulysses(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Ulysses: causal attention of all tokens for some of the heads, between two all-to-alls over C."""
    q, k, v = (exchange(x, "C", 2, 1) for x in (q, k, v))
    return exchange(attend(q, [(jnp.stack([k, v]), 0)]), "C", 1, 2)


CONTEXT = {"ring": ring, "ulysses": ulysses}


def attend(q: jax.Array, blocks: Iterable[tuple[jax.Array, int | jax.Array]]) -> jax.Array:
    """Causal softmax attention of q[b, t, n, h] to keys and values [2, b, t, k, h], block by block.

    Each block comes with the number of tokens by which it precedes the queries. The sums so far are rescaled
    to the largest score so far, and scores are recomputed in the backward pass, so no more scores are in
    memory than those of one block.
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
    """The outputs, largest score and sum of exponentials of every query, after one more block of keys."""
    out, top, total = sums
    scores = jnp.einsum("btkgh,bskh->bkgts", q, kv[0]).astype(jnp.float32)
    mask = jnp.arange(q.shape[1])[:, None] + before >= jnp.arange(kv.shape[2])
    scores = jnp.where(mask, scores, MASKED)
    new_top = lax.stop_gradient(jnp.maximum(top, scores.max(-1)))
    decay, p = jnp.exp(top - new_top), jnp.exp(scores - new_top[..., None])
    values = jnp.einsum("bkgts,bskh->bkgth", p.astype(q.dtype), kv[1])
    return out * decay[..., None] + values, new_top, total * decay + p.sum(-1)
