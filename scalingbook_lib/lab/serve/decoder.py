"""What does one device of a mesh compute, send and receive when a Transformer writes?

The model of `transformer` with a cache of keys and values, as the program of one device: prefill and decode
are the same program, T new tokens of each sequence after those that the cache has. Five axes, all of which
share every weight, so that weights never move: A attention groups, each with whole attention weights and its
own sequences; X rows of D (2-D weight-stationary); Z and C the cache's sequences and its tokens; Y heads.
Between layers the activations are x[B_A, T, D_XZCY]. Attention is done on Q[B_AXZ, T, N_Y, H] and the cache
[blocks_AXZ, tokens_C, K_Y, H]; what moves are Q, one token's K and V, and the partial sums over C.
Chapter: Inference.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from scalingbook_lib.lab import attention
from scalingbook_lib.lab.collectives import exchange, gather, scatter, spread
from scalingbook_lib.lab.serve import paged_attention
from scalingbook_lib.lab.serve.paged_attention import Codec, Kept
from scalingbook_lib.lab.train.transformer import chosen_experts
from scalingbook_lib.models import Transformer

AXES = "AXZCY"  # slowest first
COLUMNS = "AZCY"  # over which F and V are split; X has the rows of D
INNER = "ZCY"  # one attention group

SPLIT = {
    "embed": "W[V, D_XZCY]",  # a lookup is local
    "attention norm": "W[D_X]",
    "q": "W[D_X, N_YCZ, H]",
    "k": "W[D_X, K_YZ, H]",  # or K_Y where there are too few: then each device of Z makes the keys of all
    "v": "W[D_X, K_YZ, H]",
    "o": "W[N_YCZ, H, D_X]",
    "mlp norm": "W[D_X]",
    "gate": "W[D_X, F_AZCY]",
    "up": "W[D_X, F_AZCY]",
    "down": "W[F_AZCY, D_X]",
    "router": "W[D_X, E]",
    "final norm": "W[D_X]",
    "unembed": "W[D_X, V_AZCY]",
}

type Weights = Mapping[str, jax.Array]


class Where(NamedTuple):
    """Where new tokens go: sequence b has start[b] others before them, and tokens[b] of them are real.

    `tables[B_AXZ, M]` name the blocks of each sequence; without them sequence b has block b.
    """

    start: jax.Array
    tokens: jax.Array
    tables: jax.Array | None = None


def split(name: str, experts: str = "A", *, few: bool = False) -> str:
    """How a weight is split; experts over the axes `experts`, each of them over the other columns.

    `few`: there are fewer key-value heads than Y and Z have devices, so devices of Z have the same ones.
    """
    if name in "kv" and few:
        return "W[D_X, K_Y, H]"
    if not name.startswith("expert "):
        return SPLIT[name]
    rest = "".join(axis for axis in COLUMNS if axis not in experts)
    e, f = "E_" + experts if experts else "E", "F_" + rest if rest else "F"
    return f"W[{e}, {f}, D_X]" if name == "expert down" else f"W[{e}, D_X, {f}]"


def extend(
    m: Transformer,
    w: Mapping[str, Any],
    tokens: jax.Array,
    cache: Any,
    where: Where,
    *,
    experts: str = "A",
    every: bool = False,
    opened: Callable[[Weights], Weights] = dict,
    codec: Codec = paged_attention.PLAIN,
) -> tuple[jax.Array, Any]:
    """The real ones of tokens[B_A, T] go to their places: logits[B, V_AZCY] of the last, and the cache.

    With `every`, logits[B, T, V_AZCY] of all. Layers are a list, or stacked arrays that a scan goes through.
    `opened` makes a layer's weights from what is stored of them, `codec` what is cached of k and v, and back.
    """
    # of what all devices of the group know, each needs that of the sequences whose cache it has
    here = Where(_block(where.start, "XZ"), _block(where.tokens, "XZ"), where.tables)
    ends = opened({name: w[name] for name in ("embed", "final norm", "unembed")})
    x = ends["embed"][tokens]

    def one(x: jax.Array, of: Any) -> tuple[jax.Array, Kept]:
        return layer(m, opened(of[0]), x, of[1], here, experts=experts, codec=codec)

    # stacked layers go through a scan, whose program is short, but which copies the cache; a list of layers
    # has a buffer for each, written in place
    if isinstance(cache, Mapping):
        x, cache = lax.scan(one, x, (w["layers"], cache))
    else:
        layers, cache = cache, []
        for of in zip(w["layers"], layers, strict=True):
            x, kept = one(x, of)
            cache.append(kept)
    # rows are filled up to T: the last real token of each is the one whose successor is wanted
    if not every:
        x = jnp.take_along_axis(x, jnp.maximum(where.tokens - 1, 0)[:, None, None], 1)
    logits = head(m, ends, x)
    return logits if every else logits[:, 0], cache


def layer(
    m: Transformer, w: Weights, x: jax.Array, kept: Kept, here: Where, *, experts: str, codec: Codec
) -> tuple[jax.Array, Kept]:
    """x[B_A, T, D_XZCY] → the same: gathered over D for heads and MLP, and their sums scattered."""
    # Weights never move: activations of few tokens are gathered over the axes that split F and the heads, and
    # the partial sums scattered back (Pope et al., arXiv 2211.05102).
    h = norm(m, gather(x, INNER, 2), w["attention norm"])
    out, kept = heads(w, h, kept, here, codec)
    x += scatter(out, INNER, 2)
    h = gather(norm(m, gather(x, INNER, 2), w["mlp norm"]), "A", 0)
    out = routed(m, w, h, experts) if m.experts else mlp(w, h)
    return x + scatter(scatter(out, "A", 0), INNER, 2), kept


def norm(m: Transformer, x: jax.Array, scale: jax.Array) -> jax.Array:
    """RMSNorm of x[..., D_X], in 32 bits."""
    wide = x.astype(jnp.float32)
    squares = spread(lax.psum, (wide * wide).sum(-1, keepdims=True), "X")
    return (wide * lax.rsqrt(squares / m.D + 1e-6)).astype(x.dtype) * scale


def heads(w: Weights, h: jax.Array, kept: Kept, here: Where, codec: Codec) -> tuple[jax.Array, Kept]:
    """Attention of h[B_A, T, D_X] to the cache and itself: a partial sum over Z, C and Y, and the cache."""
    at = here.start[:, None] + jnp.arange(h.shape[1])
    # q, k and v side by side, so that their partial sums over rows of D (X) are summed by one collective
    qkv = jnp.concatenate([jnp.einsum("btd,dnh->btnh", h, w[name]) for name in "qkv"], 2)
    n, K = w["q"].shape[1], w["k"].shape[1]
    q, k, v = jnp.split(scatter(qkv, "X", 0), (n, n + K), 2)
    q = gather(exchange(q, "Z", 0, 2), "C", 2)  # [B_AX, T, N_YCZ, H] → [B_AXZ, T, N_Y, H]
    k, v = jnp.split(_to_sequences(jnp.concatenate([k, v], -1), paged_attention.heads(kept)), 2, -1)
    q, k = (jax.vmap(attention.rotary)(x, at) for x in (q, k))
    new, real = codec.encode(k, v), jnp.arange(h.shape[1]) < here.tokens[:, None]
    kept = paged_attention.written(kept, new, at, real, here.tables)
    parts, positions = paged_attention.read(kept, codec.decode, here.tables)
    out = paged_attention.merged(*paged_attention.attend(q, positions <= at[..., None], *parts))
    out = gather(exchange(out.astype(h.dtype), "Z", 2, 0), "X", 0)
    return jnp.einsum("btnh,nhd->btd", out, w["o"]), kept


def _to_sequences(kv: jax.Array, K: int) -> jax.Array:
    """New keys and values [B_AX, T, k, H] of the sequences whose cache is here: [B_AXZ, T, K_Y, H]."""
    return exchange(kv, "Z", 0, 2) if kv.shape[2] < K else _block(kv, "Z")


def mlp(w: Weights, h: jax.Array, name: str = "") -> jax.Array:
    """The gated MLP of h[..., D_X] by this device's columns; its inner sums over X scattered, gathered."""
    # gate and up are partial sums over X, and what follows them is no sum: it needs the finished numbers
    both = jnp.stack([h @ w[f"{name}gate"], h @ w[f"{name}up"]])
    gate, up = scatter(both, "X", both.ndim - 1)
    return gather(jax.nn.silu(gate) * up, "X", gate.ndim - 1) @ w[f"{name}down"]


def routed(m: Transformer, w: Weights, h: jax.Array, experts: str) -> jax.Array:
    """Each token through its k experts: all tokens are here, so a device adds up what its experts say."""
    assert m.experts
    rows = h.reshape(-1, h.shape[-1])
    scores = spread(lax.psum, (rows @ w["router"]).astype(jnp.float32), "X")
    # the router's rows are split over X: scores have to be whole before the softmax, which is no sum
    share, chosen = chosen_experts(scores, m.experts.k)
    weight = (jax.nn.one_hot(chosen, m.experts.E) * share[..., None]).sum(1)  # [tokens, E]
    mine = _block(weight, experts, 1).astype(h.dtype)
    return jnp.einsum("end,ne->nd", mlp(w, rows, "expert "), mine).reshape(h.shape)


def head(m: Transformer, w: Weights, x: jax.Array) -> jax.Array:
    """The logits of x[B_A, T, D_XZCY] by this device's words: [B, T, V_AZCY], in 32 bits."""
    h = gather(norm(m, gather(x, INNER, 2), w["final norm"]), "A", 0)
    return spread(lax.psum, (h @ w["unembed"]).astype(jnp.float32), "X")


def greedy(logits: jax.Array) -> jax.Array:
    """The most likely word of logits[..., V_AZCY], of equals the first: an all-gather of the best of each."""
    here = logits.shape[-1]
    best = lax.axis_index(tuple(COLUMNS)) * here + logits.argmax(-1)
    # largest logit and its word travel together, as two numbers of 32 bits: V of them need not
    both = jnp.stack([logits.max(-1), best.astype(jnp.float32)])  # exact up to 2^24 words
    tops, words = gather(both[..., None], COLUMNS, both.ndim)
    return jnp.take_along_axis(words, tops.argmax(-1, keepdims=True), -1)[..., 0].astype(jnp.int32)


def _block(x: jax.Array, axes: str, dim: int = 0) -> jax.Array:
    """This device's block of `dim`, of what all have."""
    if not axes or (ways := lax.axis_size(tuple(axes))) == 1:
        return x
    here = x.shape[dim] // ways
    return lax.dynamic_slice_in_dim(x, lax.axis_index(tuple(axes)) * here, here, dim)
