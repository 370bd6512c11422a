"""A Transformer of any shape that the library describes, written in JAX, and a small one of every structure.

One set of weights serves all layers, because counting needs only their shapes.
"""

from dataclasses import replace
from math import lcm

import jax
import jax.numpy as jnp
from jax import lax

from scalingbook_lib.hlo import cost
from scalingbook_lib.models import CATALOG, Experts, Latent, Linear, Transformer

T = 12  # longer than the small window


def norm(x, scale=1):
    """Apply RMSNorm in fp32."""
    wide = x.astype(jnp.float32)
    return (wide * lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6) * scale).astype(x.dtype)


def silu(x):
    return x * lax.logistic(x)


def softmax(scores):
    """Apply softmax in fp32."""
    return jax.nn.softmax(scores.astype(jnp.float32), -1).astype(scores.dtype)


def grouped(q, k, v, window):
    """Softmax attention of N query heads over K key-value heads; a window restricts the keys."""
    q = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[-1])
    if window is None or window >= k.shape[1]:
        p = softmax(jnp.einsum("btkgh,bskh->bkgts", q, k))
        return jnp.einsum("bkgts,bskv->btkgv", p, v)
    at = jnp.arange(k.shape[1])[:, None] + jnp.arange(1 - window, 1)
    near_k, near_v = (x[:, jnp.maximum(at, 0)] for x in (k, v))
    scores = jnp.where(at >= 0, jnp.einsum("btkgh,btwkh->bkgtw", q, near_k), -1e9)
    return jnp.einsum("bkgtw,btwkv->btkgv", softmax(scores), near_v)


def heads(m, w, h, window):
    q, k, v = (jnp.einsum("btd,dnh->btnh", h, w[name]) for name in "qkv")
    out = grouped(q, k, v, window).reshape(q.shape)
    if m.attention_gate:
        out *= lax.logistic(jnp.einsum("btd,dnh->btnh", h, w["attention gate"]))
    return jnp.einsum("btnh,nhd->btd", out, w["o"])


def latents(m, w, h, past):
    """Return the queries, and the latent vectors and shared keys of cached and new tokens."""
    low, up = (norm(h @ w["q down"]), w["q up"]) if m.latent.q_rank else (h, w["q"])
    own = norm(h @ w["kv down"]), h @ w["k rope"]
    c, rope = (jnp.concatenate(both, 1) for both in zip(past, own, strict=True)) if past else own
    return jnp.einsum("btr,rnh->btnh", low, up), c, rope


def latent(m, w, h, window, past=None):
    """Latent attention that expands every latent vector into keys and values."""
    q, c, rope = latents(m, w, h, past)
    k, v = (jnp.einsum("bsc,cnh->bsnh", c, w[name]) for name in ("k up", "v up"))
    k = jnp.concatenate([k, jnp.broadcast_to(rope[:, :, None], (*k.shape[:3], rope.shape[-1]))], -1)
    out = grouped(q, k, v, window).reshape(*q.shape[:3], -1)
    return jnp.einsum("btnh,nhd->btd", out, w["o"])


def convolved(x, taps):
    """Apply a short causal convolution per channel, which the vector unit computes without a matmul."""
    padded = jnp.pad(x, ((0, 0), (len(taps) - 1, 0), (0, 0), (0, 0)))
    return silu(sum(tap * padded[:, i : i + x.shape[1]] for i, tap in enumerate(taps)))


def delta(m, w, h):
    """Gated DeltaNet, one token at a time: read with the key, write the difference, read with the query."""
    a = m.linear
    q, k, v = (jnp.einsum("btd,dnh->btnh", h, w[f"linear {name}"]) for name in "qkv")
    taps = jnp.arange(1.0, 1 + a.conv) / a.conv
    q, k = (jnp.repeat(norm(convolved(x, taps)), a.v_heads // a.k_heads, 2) for x in (q, k))
    beta, decay = (lax.logistic(h @ w[f"linear {name}"]) for name in ("beta", "decay"))

    def step(state, now):
        q, k, v, beta, decay = now
        state *= decay[..., None, None]
        new = beta[..., None] * (v - jnp.einsum("bnk,bnkv->bnv", k, state))
        state += lax.dot_general(k, new, (((), ()), ((0, 1), (0, 1))))
        return state, jnp.einsum("bnk,bnkv->bnv", q, state)

    start = jnp.zeros((h.shape[0], a.v_heads, a.key, a.value))
    over = [jnp.moveaxis(x, 1, 0) for x in (q, k, convolved(v, taps), beta, decay)]
    out = norm(jnp.moveaxis(lax.scan(step, start, over)[1], 0, 1))
    out *= silu(jnp.einsum("btd,dnh->btnh", h, w["linear gate"]))
    return jnp.einsum("btnh,nhd->btd", out, w["linear o"])


def mlp(m, w, h, name=""):
    up = h @ w[f"{name}up"]
    return (silu(h @ w[f"{name}gate"]) * up if m.gated else silu(up)) @ w[f"{name}down"]


def routed(m, w, h):
    """Apply routed experts; every expert gets B·T·k/E tokens, as from a perfectly balanced router."""
    e, rows = m.experts, h.reshape(-1, h.shape[-1])
    share, chosen = lax.top_k(jax.nn.softmax(rows @ w["router"]), e.k)
    order = jnp.argsort(chosen.reshape(-1))
    x = rows[order // e.k].reshape(e.E, -1, rows.shape[-1])
    up = jnp.einsum("ebd,edf->ebf", x, w["expert up"])
    up = silu(jnp.einsum("ebd,edf->ebf", x, w["expert gate"])) * up if m.gated else silu(up)
    y = jnp.einsum("ebf,efd->ebd", up, w["expert down"]).reshape(-1, rows.shape[-1])
    out = jnp.zeros_like(rows).at[order // e.k].add(y * share.reshape(-1)[order][:, None])
    return out.reshape(h.shape) + (shared(m, w, h) if e.shared_width else 0)


def shared(m, w, h):
    out = mlp(m, w, h, "shared ")
    return out * lax.logistic(h @ w["shared scale"]) if m.experts.shared_gate else out


def forward(m, w, x, attention=None):
    """Return the logits of embedded tokens x[B, T, D]."""
    attention = attention or (latent if m.latent else heads)
    met = 0
    for layer in range(m.L):
        if m.linear and (layer + 1) % m.linear.every:
            x += delta(m, w, norm(x))
        else:
            x += attention(m, w, norm(x), m.windows[met % len(m.windows)])
            met += 1
        is_routed = m.experts and layer >= m.experts.first_dense and (layer + 1) % m.experts.every == 0
        x += (routed if is_routed else mlp)(m, w, norm(x))
    return norm(x) @ w["unembed"]


def counted(fn, *args):
    """Return the matmul FLOPs of the compiled program."""
    return cost.matmul_flops(jax.jit(fn).lower(*args).compile().as_text())


def weights(m, dtype=jnp.float32):
    """Return arrays of the shapes that the library lists, by name."""
    stacked = {"experts": (m.experts.E,) if m.experts else ()}
    return {
        w.name: jax.ShapeDtypeStruct((*stacked.get(w.part, ()), *w.shape), dtype)
        for w in m.weights()
        if w.matmul
    }


def small(m: Transformer) -> Transformer:
    """Return the same structure with few and small layers."""
    N, K = (3, m.K if m.K == 1 else 3) if m.K in (1, m.N) else (4, 2)
    e, a, d = m.experts, m.latent, m.linear
    experts = e and Experts(
        E=4, k=min(e.k, 2), F=20, shared=min(e.shared, 2), shared_F=e.shared_F and 24,
        shared_gate=e.shared_gate, first_dense=min(e.first_dense, 1), every=e.every,
    )  # fmt: skip
    tiny = a and Latent(q_rank=a.q_rank and 10, kv_rank=14, nope=6, rope=4, v=5)
    linear = d and Linear(k_heads=2, v_heads=4, key=6, value=5, conv=d.conv, every=d.every)
    L = lcm(len(m.windows), d.every if d else 1, e.every if e else 1) + (1 if e and e.first_dense else 0)
    return replace(
        m, D=16, L=L, V=40, N=N, K=N if a else K, H=10 if a else 8, F=28,
        experts=experts, latent=tiny, linear=linear, windows=tuple(w and 5 for w in m.windows),
        positions=min(m.positions, T),
    )  # fmt: skip


def structures() -> dict[str, Transformer]:
    """Return a small model of every structure in the catalog, by the first model that has it."""
    found = {}
    for model in CATALOG:
        cut = small(model)
        found.setdefault(replace(cut, name="small", source=""), model.name)
    return {name: model for model, name in found.items()}
