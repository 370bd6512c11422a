"""A Transformer in training as the program of one device, with every collective written out.

Every array here is one device's shard. On a mesh of one device all collectives vanish, and the plain model of
`models.Transformer` is left. There are six axes, each of which may have size 1: P pipeline stages, R replicas
(plain data parallelism), X data parallelism that also shards the weights (FSDP), Z experts, C context, and Y
tensor and sequence parallelism. Weights are sharded over Z and C too, because those devices would otherwise
hold the same weights. Chapter: Training.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from scalingbook_lab import attention
from scalingbook_lab.collectives import exchange, gather, scatter, shift, spread
from scalingbook_lib.models import Transformer
from scalingbook_lib.notation import parse

AXES = "PRXZCY"  # slowest first: neighbors along Y communicate most

SPLIT = {
    "embed": "W[V_Y, D_XZC]",
    "attention norm": "W[L_P, D_XZC]",
    "q": "W[L_P, D_XZC, N_Y, H]",
    "k": "W[L_P, D_XZC, K_Y, H]",
    "v": "W[L_P, D_XZC, K_Y, H]",
    "o": "W[L_P, N_Y, H, D_XZC]",
    "mlp norm": "W[L_P, D_XZC]",
    "gate": "W[L_P, D_XZC, F_Y]",
    "up": "W[L_P, D_XZC, F_Y]",
    "down": "W[L_P, F_Y, D_XZC]",
    "router": "W[L_P, D_XZC, E]",
    "expert gate": "W[L_P, E_Z, D_XC, F_Y]",
    "expert up": "W[L_P, E_Z, D_XC, F_Y]",
    "expert down": "W[L_P, E_Z, F_Y, D_XC]",
    "final norm": "W[D_XZC]",
    "unembed": "W[D_XZC, V_Y]",
}

type Weights = Mapping[str, jax.Array]


def shapes(m: Transformer) -> dict[str, tuple[int, ...]]:
    """Return the shape of every weight of the model; those of all layers are stacked."""
    check_supported(m)
    norms = {"attention norm": (m.L, m.D), "mlp norm": (m.L, m.D)}
    found = {w.name: w.shape for w in m.weights() if w.name in ("embed", "final norm", "unembed")} | norms
    for w in m.weights():
        if w.matmul and w.name != "unembed":
            found[w.name] = (m.L, *((m.experts.E,) if m.experts and w.part == "experts" else ()), *w.shape)
    return {name: found[name] for name in SPLIT if name in found}


def layer_weights(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the layers' entries of a dict by weight name: all but the embeddings and the last norm."""
    return {name: one for name, one in named.items() if SPLIT[name].startswith("W[L")}


def check_supported(m: Transformer) -> None:
    """Raise ValueError if a model has parts that this small Transformer lacks."""
    e = m.experts
    alike = not e or (e.every == 1 and not e.first_dense and not e.shared)
    plain = not (m.latent or m.linear or m.biases or m.qk_norm or m.positions or m.sinks or m.attention_gate)
    shaped = (
        m.norms == 2 and m.final_norm and not m.norm_bias and not m.embedding_norm and m.windows == (None,)
    )
    same = not (m.blocks or m.extra)
    if not (alike and plain and shaped and same and m.gated and not m.tied and m.H % 2 == 0):
        raise ValueError(
            f"{m.name}: the laboratory's layers are all the same: two norms, rotary positions, grouped heads "
            "and a gated MLP or routed experts, untied and without biases; write such a models.Transformer"
        )


def summed_over(name: str) -> tuple[str, ...]:
    """Return the axes over which a weight is replicated, and its gradients are therefore summed."""
    split = {axis for dim in parse(SPLIT[name]).dims for axis in dim.axes}
    return tuple(axis for axis in AXES if axis not in split)


def gather_weights(w: Weights, dtype: Any = jnp.float32, *, in_layer: bool = False) -> dict[str, jax.Array]:
    """Gather weights over D: one all-gather each, and a reduce-scatter for each gradient.

    With `in_layer` the shards are those of one layer, without the dimension L.
    """
    full = {}
    for name, block in w.items():
        dims = parse(SPLIT[name]).dims
        # D is the dimension that FSDP shards. The derivative of all_gather is a reduce-scatter, so gradients
        # are summed over the same axes and sharded again without any further code.
        at = next(i for i, dim in enumerate(dims) if dim.name == "D")
        full[name] = gather(block.astype(dtype), dims[at].axes, at - in_layer)
    return full


def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """Apply RMSNorm in fp32."""
    x32 = x.astype(jnp.float32)
    return (x32 * lax.rsqrt(jnp.mean(x32 * x32, -1, keepdims=True) + 1e-6)).astype(x.dtype) * scale


def heads(w: Weights, h: jax.Array, context: str) -> jax.Array:
    """Return the attention of all tokens of h[b, t, D] by this device's heads, as a partial sum over Y."""
    q, k, v = (jnp.einsum("btd,dnh->btnh", h, w[name]) for name in "qkv")
    first = lax.axis_index("C") * h.shape[1]
    q, k = (attention.rotary(x, first + jnp.arange(h.shape[1])) for x in (q, k))
    return jnp.einsum("btnh,nhd->btd", attention.CONTEXT[context](q, k, v), w["o"])


def mlp(w: Weights, h: jax.Array, name: str = "") -> jax.Array:
    """Apply this device's F_Y columns of the gated MLP; the result is a partial sum over Y."""
    return (jax.nn.silu(h @ w[f"{name}gate"]) * (h @ w[f"{name}up"])) @ w[f"{name}down"]


def chosen_experts(scores: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    """Return the k experts of each token from scores[b, E], and their weights, which add up to 1."""
    share, chosen = lax.top_k(jax.nn.softmax(scores.astype(jnp.float32)), k)
    return share / share.sum(-1, keepdims=True), chosen


def routed(m: Transformer, w: Weights, h: jax.Array) -> jax.Array:
    """Send each token through its k experts on the devices of Z; no token is ever dropped."""
    assert m.experts
    rows = h.reshape(-1, h.shape[-1])
    share, chosen = chosen_experts(rows @ w["router"], m.experts.k)
    share = share.astype(h.dtype)
    taken = jax.nn.one_hot(chosen, m.experts.E, dtype=h.dtype)  # [tokens, k, E]
    # every expert gets a row per token, zeros where it was not chosen. This sends E/k times the bytes that
    # are needed, but no token can be dropped; `expert_exchange` has a capacity instead.
    chosen_rows, sent = taken.sum(1).T[..., None], jnp.broadcast_to(rows, (m.experts.E, *rows.shape))
    buckets = exchange(sent * chosen_rows, "Z", 0, 1)
    experts = {name: w[f"expert {name}"] for name in ("gate", "up", "down")}
    back = exchange(jax.vmap(mlp)(experts, buckets), "Z", 1, 0)
    return jnp.einsum("end,nke,nk->nd", back, taken, share).reshape(h.shape)


def layer(m: Transformer, w: Weights, x: jax.Array, context: str) -> jax.Array:
    """x[b, t_Y, D] → x[b, t_Y, D]: gather tokens for heads and MLP, and scatter the partial sums."""
    # sequence parallelism (Korthikanti et al. 2022): tokens are sharded over Y in norms and residual sums,
    # and gathered for matmuls
    h = gather(norm(x, w["attention norm"]), "Y", 1)
    x += scatter(heads(w, h, context), "Y", 1)
    h = gather(norm(x, w["mlp norm"]), "Y", 1)
    return x + scatter(routed(m, w, h) if m.experts else mlp(w, h), "Y", 1)


def stage(m: Transformer, w: Weights, x: jax.Array, *, context: str, remat: bool) -> jax.Array:
    """Run the layers of this pipeline stage one after the other; with `remat`, save only their inputs."""

    # gathered within the layer, so only one layer's weights are gathered at a time. prevent_cse=False: within
    # a scan XLA cannot merge the recomputation with the forward pass.
    def one(x: jax.Array, w: Weights) -> tuple[jax.Array, None]:
        return layer(m, gather_weights(w, x.dtype, in_layer=True), x, context), None

    return lax.scan(jax.checkpoint(one, prevent_cse=False) if remat else one, x, w)[0]


def pipeline(run: Any, x: jax.Array) -> jax.Array:
    """Run microbatches x[M, ...] through P stages in M + P - 1 ticks; the last stage has the results."""
    stages = lax.axis_size("P")
    is_first = lax.axis_index("P") == 0

    # every stage runs in every tick; what it computes before its first microbatch and after its last one is
    # discarded. shift() sends to the next stage, and in the backward pass to the previous one.
    def tick(received: jax.Array, fresh: jax.Array) -> tuple[jax.Array, jax.Array]:
        out = run(jnp.where(is_first, fresh, received))
        return shift(out, "P", ring=False), out

    fed = jnp.concatenate([x, jnp.zeros((stages - 1, *x.shape[1:]), x.dtype)])
    return lax.scan(tick, jnp.zeros_like(x[0]), fed)[1][stages - 1 :]


def embed(table: jax.Array, tokens: jax.Array) -> jax.Array:
    """Look up the tokens in this device's V_Y rows; the sum over Y is scattered over the tokens."""
    place = tokens - lax.axis_index("Y") * table.shape[0]
    here = (place >= 0) & (place < table.shape[0])
    return scatter(jnp.where(here[..., None], table[jnp.where(here, place, 0)], 0), "Y", 1)


def head(w: Weights, x: jax.Array, targets: jax.Array) -> jax.Array:
    """Return the loss of every token of x[b, t_Y, D], from this device's V_Y and sums over Y."""
    full = gather_weights(w, x.dtype)
    return cross_entropy(gather(norm(x, full["final norm"]), "Y", 1) @ full["unembed"], targets)


def cross_entropy(logits: jax.Array, targets: jax.Array) -> jax.Array:
    """Return -log p of every target, from the logits of this device's V_Y."""
    logits = logits.astype(jnp.float32)
    # V is sharded, so the largest logit, the sum and the target logit each need a reduction over Y. The
    # largest is subtracted and added back, so no gradient is needed through it, and pmax has none.
    top = spread(lax.pmax, lax.stop_gradient(logits.max(-1)), "Y")
    total = spread(lax.psum, jnp.exp(logits - top[..., None]).sum(-1), "Y")
    place = targets - lax.axis_index("Y") * logits.shape[-1]
    of_target = jnp.where(place[..., None] == jnp.arange(logits.shape[-1]), logits, 0).sum(-1)
    return jnp.log(total) + top - spread(lax.psum, of_target, "Y")


def loss(
    m: Transformer,
    w: Weights,
    tokens: jax.Array,
    targets: jax.Array,
    *,
    microbatches: int = 1,
    context: str = "ring",
    remat: bool = True,
    dtype: Any = jnp.float32,
) -> jax.Array:
    """Return this device's share of the mean loss of tokens[b, t]; the shares of all devices add up to it."""
    x = embed(gather_weights({"embed": w["embed"]}, dtype)["embed"], tokens)
    x = x.reshape(microbatches, -1, *x.shape[1:])
    x = pipeline(lambda x: stage(m, layer_weights(w), x, context=context, remat=remat), x)
    x = x.reshape(-1, *x.shape[2:])
    ends = {name: w[name] for name in ("final norm", "unembed")}
    each = (jax.checkpoint(head) if remat else head)(ends, x, targets)
    is_last = lax.axis_index("P") == lax.axis_size("P") - 1
    shared = lax.axis_size("Y") * lax.axis_size(("R", "X", "Z", "C"))  # the devices of Y have the same tokens
    return jnp.where(is_last, each.mean() / shared, 0)
