"""A Transformer with a KV cache as the program of one device, with every collective written out.

Prefill and decode are the same program: T new tokens of each sequence after those in the cache. All five axes
shard every weight, so weights never move. A numbers the attention groups, each with whole attention weights
and its own sequences. X shards the rows of D (2D weight-stationary), Z the cache's sequences, C the cache's
tokens, and Y the heads. Between layers the activations are x[B_A, T, D_XZCY]. Attention is computed on
Q[B_AXZ, T, N_Y, H] and the cache [blocks_AXZ, tokens_C, K_Y, H]; the data that moves are Q, one token's K and
V, and the partial sums over C. Chapter: Inference.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from scalingbook_lab import attention
from scalingbook_lab.collectives import exchange, gather, scatter, spread
from scalingbook_lab.serve import paged_attention
from scalingbook_lab.serve.paged_attention import Codec, LayerCache
from scalingbook_lab.train.transformer import chosen_experts
from scalingbook_lib.models import Transformer

AXES = "AXZCY"  # slowest first
COLUMNS = "AZCY"  # axes that shard F and V; X shards the rows of D
INNER = "ZCY"  # the axes of one attention group

SPLIT = {
    "embed": "W[V, D_XZCY]",  # a lookup is local
    "attention norm": "W[D_X]",
    "q": "W[D_X, N_YCZ, H]",
    "k": "W[D_X, K_YZ, H]",  # or K_Y if there are too few heads: then each device of Z computes all keys
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


class DecoderPlacement(NamedTuple):
    """The positions of new tokens: sequence b has start[b] cached tokens and tokens[b] real new ones.

    `tables[B_AXZ, M]` name the blocks of each sequence; without tables, sequence b has block b.
    """

    start: jax.Array
    tokens: jax.Array
    tables: jax.Array | None = None


def split(name: str, experts: str = "A", *, few: bool = False) -> str:
    """Return the sharding of a weight in the notation.

    Experts are sharded over the axes `experts`, and each expert over the other columns. With `few` there are
    fewer key-value heads than Y · Z devices, so the devices of Z hold the same heads.
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
    where: DecoderPlacement,
    *,
    experts: str = "A",
    every: bool = False,
    dequantize: Callable[[Weights], Weights] = dict,
    codec: Codec = paged_attention.PLAIN,
) -> tuple[jax.Array, Any]:
    """Append the real tokens of tokens[B_A, T]; return logits[B, V_AZCY] of each last token, and the cache.

    With `every`, return logits[B, T, V_AZCY] of all tokens. Layers are a list, or stacked arrays that a scan
    iterates over. `dequantize` turns a layer's stored weights into those of its matmuls; `codec` encodes and
    decodes the cache.
    """
    # each device needs the positions of the sequences whose cache it holds
    here = DecoderPlacement(_shard(where.start, "XZ"), _shard(where.tokens, "XZ"), where.tables)
    ends = dequantize({name: w[name] for name in ("embed", "final norm", "unembed")})
    x = ends["embed"][tokens]

    def one(x: jax.Array, of: Any) -> tuple[jax.Array, LayerCache]:
        return layer(m, dequantize(of[0]), x, of[1], here, experts=experts, codec=codec)

    # a scan over stacked layers compiles to a short program, but it copies the cache; with a list, every
    # layer has a buffer of its own, which is written in place
    if isinstance(cache, Mapping):
        x, cache = lax.scan(one, x, (w["layers"], cache))
    else:
        layers, cache = cache, []
        for of in zip(w["layers"], layers, strict=True):
            x, cache_layer = one(x, of)
            cache.append(cache_layer)
    # rows are padded to T: the logits of each row's last real token predict the next one
    if not every:
        x = jnp.take_along_axis(x, jnp.maximum(where.tokens - 1, 0)[:, None, None], 1)
    logits = head(m, ends, x)
    return logits if every else logits[:, 0], cache


def layer(
    m: Transformer,
    w: Weights,
    x: jax.Array,
    cache_layer: LayerCache,
    here: DecoderPlacement,
    *,
    experts: str,
    codec: Codec,
) -> tuple[jax.Array, LayerCache]:
    """x[B_A, T, D_XZCY] → x[B_A, T, D_XZCY]: gather over D for heads and MLP, scatter their partial sums."""
    # Weights never move. The activations of a few tokens are gathered over the axes that shard F and the
    # heads, and the partial sums are scattered back (Pope et al., arXiv 2211.05102).
    h = norm(m, gather(x, INNER, 2), w["attention norm"])
    out, cache_layer = heads(w, h, cache_layer, here, codec)
    x += scatter(out, INNER, 2)
    h = gather(norm(m, gather(x, INNER, 2), w["mlp norm"]), "A", 0)
    out = routed(m, w, h, experts) if m.experts else mlp(w, h)
    return x + scatter(scatter(out, "A", 0), INNER, 2), cache_layer


def norm(m: Transformer, x: jax.Array, scale: jax.Array) -> jax.Array:
    """Apply RMSNorm to x[..., D_X] in fp32."""
    x32 = x.astype(jnp.float32)
    squares = spread(lax.psum, (x32 * x32).sum(-1, keepdims=True), "X")
    return (x32 * lax.rsqrt(squares / m.D + 1e-6)).astype(x.dtype) * scale


def heads(
    w: Weights, h: jax.Array, cache_layer: LayerCache, here: DecoderPlacement, codec: Codec
) -> tuple[jax.Array, LayerCache]:
    """Return the attention of h[B_A, T, D_X] to the cache and itself, and the cache.

    The output is a partial sum over Z, C and Y.
    """
    at = here.start[:, None] + jnp.arange(h.shape[1])
    # q, k and v are concatenated, so that one collective reduces their partial sums over the rows of D (X)
    qkv = jnp.concatenate([jnp.einsum("btd,dnh->btnh", h, w[name]) for name in "qkv"], 2)
    n, K = w["q"].shape[1], w["k"].shape[1]
    q, k, v = jnp.split(scatter(qkv, "X", 0), (n, n + K), 2)
    q = gather(exchange(q, "Z", 0, 2), "C", 2)  # [B_AX, T, N_YCZ, H] → [B_AXZ, T, N_Y, H]
    k, v = jnp.split(_to_sequences(jnp.concatenate([k, v], -1), paged_attention.kv_heads(cache_layer)), 2, -1)
    q, k = (jax.vmap(attention.rotary)(x, at) for x in (q, k))
    new, real = codec.encode(k, v), jnp.arange(h.shape[1]) < here.tokens[:, None]
    cache_layer = paged_attention.write(cache_layer, new, at, real, here.tables)
    parts, positions = paged_attention.read(cache_layer, codec.decode, here.tables)
    out = paged_attention.merge(*paged_attention.attend(q, positions <= at[..., None], *parts))
    out = gather(exchange(out.astype(h.dtype), "Z", 2, 0), "X", 0)
    return jnp.einsum("btnh,nhd->btd", out, w["o"]), cache_layer


def _to_sequences(kv: jax.Array, K: int) -> jax.Array:
    """Move new keys and values [B_AX, T, k, H] to the devices that cache them: [B_AXZ, T, K_Y, H]."""
    return exchange(kv, "Z", 0, 2) if kv.shape[2] < K else _shard(kv, "Z")


def mlp(w: Weights, h: jax.Array, name: str = "") -> jax.Array:
    """Apply the gated MLP to h[..., D_X] for this device's columns of F.

    The inner partial sums over X are all-reduced.
    """
    # gate and up are partial sums over X, and the activation after them is nonlinear, so reduce them first
    both = jnp.stack([h @ w[f"{name}gate"], h @ w[f"{name}up"]])
    gate, up = scatter(both, "X", both.ndim - 1)
    return gather(jax.nn.silu(gate) * up, "X", gate.ndim - 1) @ w[f"{name}down"]


def routed(m: Transformer, w: Weights, h: jax.Array, experts: str) -> jax.Array:
    """Apply each token's k experts; every device has all tokens and sums the outputs of its own experts."""
    assert m.experts
    rows = h.reshape(-1, h.shape[-1])
    scores = spread(lax.psum, (rows @ w["router"]).astype(jnp.float32), "X")
    # the router's rows are sharded over X, so scores are reduced before the softmax, which is nonlinear
    share, chosen = chosen_experts(scores, m.experts.k)
    weight = (jax.nn.one_hot(chosen, m.experts.E) * share[..., None]).sum(1)  # [tokens, E]
    own = _shard(weight, experts, 1).astype(h.dtype)
    return jnp.einsum("end,ne->nd", mlp(w, rows, "expert "), own).reshape(h.shape)


def head(m: Transformer, w: Weights, x: jax.Array) -> jax.Array:
    """Return the logits [B, T, V_AZCY] of x[B_A, T, D_XZCY] for this device's part of the vocabulary, in
    fp32.
    """
    h = gather(norm(m, gather(x, INNER, 2), w["final norm"]), "A", 0)
    return spread(lax.psum, (h @ w["unembed"]).astype(jnp.float32), "X")


def greedy(logits: jax.Array) -> jax.Array:
    """Return the most likely token of logits[..., V_AZCY], the first if several tie.

    The only communication is an all-gather of each device's best token.
    """
    here = logits.shape[-1]
    best = lax.axis_index(tuple(COLUMNS)) * here + logits.argmax(-1)
    # the largest logit and its token travel together, as two 32-bit numbers instead of V logits
    both = jnp.stack([logits.max(-1), best.astype(jnp.float32)])  # exact up to 2^24 tokens
    tops, tokens = gather(both[..., None], COLUMNS, both.ndim)
    return jnp.take_along_axis(tokens, tops.argmax(-1, keepdims=True), -1)[..., 0].astype(jnp.int32)


def _shard(x: jax.Array, axes: str, dim: int = 0) -> jax.Array:
    """Return this device's shard of dimension `dim` of an array that is replicated over the axes."""
    if not axes or (degree := lax.axis_size(tuple(axes))) == 1:
        return x
    here = x.shape[dim] // degree
    return lax.dynamic_slice_in_dim(x, lax.axis_index(tuple(axes)) * here, here, dim)
