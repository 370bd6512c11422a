"""How do tokens attend to each other when the sequence is split over devices?

Rotary positions and grouped-query attention, over keys that travel round a ring, or with heads traded for
tokens and back (Ulysses). Chapter: Training.
"""

from collections.abc import Iterable, Iterator

import jax
import jax.numpy as jnp
from jax import lax

from scalingbook_lib.lab.moving import exchange, shift

MASKED = -1e30  # finite: the difference of two of them is 0, not nan


def rotary(x: jax.Array, positions: jax.Array) -> jax.Array:
    """RoPE: each pair of x[b, t, n, h] turned by its position times its frequency."""
    half = x.shape[-1] // 2
    angle = positions[:, None] * 10_000.0 ** (-jnp.arange(half) / half)
    cos, sin = (f(angle)[:, None].astype(x.dtype) for f in (jnp.cos, jnp.sin))
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def ring(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Causal attention of this device's queries; keys and values make n - 1 hops round the ring C."""
    n, me = lax.axis_size("C"), lax.axis_index("C")

    def blocks() -> Iterator[tuple[jax.Array, jax.Array]]:
        kv = jnp.stack([k, v])
        for hop in range(n):
            kv = shift(kv, "C") if hop else kv
            yield kv, (me - (me - hop) % n) * q.shape[1]

    return attend(q, blocks())


def ulysses(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Causal attention of all tokens by some of the heads: an exchange over C before it, one after it."""
    q, k, v = (exchange(x, "C", 2, 1) for x in (q, k, v))
    return exchange(attend(q, [(jnp.stack([k, v]), 0)]), "C", 1, 2)


CONTEXT = {"ring": ring, "ulysses": ulysses}


def attend(q: jax.Array, blocks: Iterable[tuple[jax.Array, int | jax.Array]]) -> jax.Array:
    """Causal softmax attention of q[b, t, n, h] to keys and values [2, b, t, k, h], block after block.

    Each block comes with the number of tokens by which it lies before the queries. The sums so far are
    rescaled to the largest score so far, so the scores of one block at a time are enough.
    """
    q = q * q.shape[-1] ** -0.5
    out, top, total = 0.0, MASKED, 0.0
    for (k, v), before in blocks:
        groups = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[-1])
        scores = jnp.einsum("btkgh,bskh->bkgts", groups, k).astype(jnp.float32)
        seen = jnp.arange(q.shape[1])[:, None] + before >= jnp.arange(k.shape[1])
        scores = jnp.where(seen, scores, MASKED)
        new = lax.stop_gradient(jnp.maximum(top, scores.max(-1)))
        kept, p = jnp.exp(top - new), jnp.exp(scores - new[..., None])
        out = out * kept[..., None] + jnp.einsum("bkgts,bskh->bkgth", p.astype(v.dtype), v)
        top, total = new, total * kept + p.sum(-1)
    out = jnp.moveaxis(out / total[..., None], 3, 1)  # type: ignore[index]
    return out.reshape(q.shape).astype(q.dtype)  # [b, t, k, g, h] → [b, t, n, h]
