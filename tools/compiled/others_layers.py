"""One layer of `Style` in plain JAX: norms, attention, and an MLP or experts."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import NamedSharding, PartitionSpec

from scalingbook_lab.compiler import aot
from tools.compiled.others import Style

DATA = ("dp", "fsdp")
SHARED = ("fsdp", "cp")  # axes whose devices would otherwise hold the same weights


def rms(x, scale):
    wide = x.astype(jnp.float32)
    normed = wide * lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)
    return normed.astype(x.dtype) * scale.astype(x.dtype)


def layer_norm(x, scale):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale.astype(x.dtype)


def rope(x):
    t, h = x.shape[1], x.shape[3]
    angle = jnp.arange(t)[:, None] * 1e4 ** (-jnp.arange(0, h, 2) / h)
    c, s = jnp.cos(angle)[None, :, None], jnp.sin(angle)[None, :, None]
    a, b = jnp.split(x.astype(jnp.float32), 2, -1)
    return jnp.concatenate([a * c - b * s, b * c + a * s], -1).astype(x.dtype)


class Layers:
    """The layers of a style on its mesh."""

    def __init__(self, style: Style) -> None:
        self.p = style
        named = {name: getattr(style, name) for name in ("dp", "fsdp", "cp", "tp")}
        sizes = {name: n for name, n in named.items() if n > 1}
        self.mesh = aot.mesh_for(style.topo, sizes)
        self.axes = set(sizes)
        self.norm = layer_norm if style.style == "flat" else rms

    def place(self, *dims):
        def here(dim):
            names = (dim,) if isinstance(dim, str) else dim or ()
            names = tuple(name for name in names if name in self.axes)
            return names if len(names) > 1 else names[0] if names else None

        return NamedSharding(self.mesh, PartitionSpec(*map(here, dims)))

    def on(self, x, *dims):
        return lax.with_sharding_constraint(x, self.place(*dims))

    def whole(self, x):
        """Gather all tokens of a sequence, if the style gathers them."""
        return self.on(x, DATA, "cp", None) if self.p.marked else x

    def attend(self, q, k, v, seg):
        p = self.p
        b, t, groups = q.shape[0], q.shape[1], p.N // p.K
        if p.attn == "splash":
            return self.splash(q, k, v)
        if p.attn == "chunk":
            n = max(t // 256, 1)
            k, v = (jnp.repeat(a, groups, 2) for a in (k, v))

            @jax.checkpoint
            def block(given):
                i, part = given
                scores = jnp.einsum("bqnh,bknh->bnqk", part, k, preferred_element_type=jnp.float32)
                seen = (i * (t // n) + jnp.arange(t // n))[:, None] >= jnp.arange(t)[None]
                scores = jnp.where(seen, scores * p.H**-0.5, -1e30)
                return jnp.einsum("bnqk,bknh->bqnh", jax.nn.softmax(scores, -1).astype(v.dtype), v)

            parts = q.reshape(b, n, t // n, p.N, p.H).swapaxes(0, 1)
            return lax.map(block, (jnp.arange(n), parts)).swapaxes(0, 1).reshape(q.shape)
        seen = jnp.tril(jnp.ones((t, t), bool))[None, None] if p.mask != "none" else None
        if seg is not None:
            seen = seen & (seg[:, None, :, None] == seg[:, None, None, :])
        q = q.reshape(b, t, p.K, groups, p.H)
        scores = jnp.einsum("bqkgh,bskh->bkgqs", q, k, preferred_element_type=jnp.float32) * p.H**-0.5
        if seen is not None:
            scores = jnp.where(seen[:, :, None], scores, -1e30)
        shares = jax.nn.softmax(scores, -1).astype(v.dtype)
        return jnp.einsum("bkgqs,bskh->bqkgh", shares, v).reshape(b, t, p.N, p.H)

    def splash(self, q, k, v):
        """Apply JAX's own Pallas kernel of flash attention."""
        from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernels
        from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

        p = self.p
        n, size = p.N // p.tp, min(512, p.T)
        mask = masks.MultiHeadMask([masks.CausalMask((p.T, p.T)) for _ in range(n)])
        names = ("q", "kv", "kv_compute", "q_dkv", "kv_dkv", "kv_dkv_compute", "q_dq", "kv_dq")
        blocks: dict[str, Any] = {f"block_{name}": size for name in names}
        sizes = kernels.BlockSizes(**blocks)

        def local(q, k, v):
            one = kernels.make_splash_mha(mask, block_sizes=sizes, head_shards=1, q_seq_shards=1)
            k, v = (jnp.repeat(a, n // a.shape[2], 2).swapaxes(1, 2) for a in (k, v))
            out: Any = jax.vmap(one)(q.swapaxes(1, 2) * p.H**-0.5, k, v)
            return out.swapaxes(1, 2)

        here = self.place(DATA, None, "tp", None).spec
        kv = here if p.K % p.tp == 0 else self.place(DATA, None, None, None).spec
        specs = (here, kv, kv)
        return jax.shard_map(local, mesh=self.mesh, in_specs=specs, out_specs=here, check_vma=False)(q, k, v)

    def mlp(self, h, w):
        p = self.p
        active = jax.nn.gelu if p.style == "flat" else jax.nn.silu
        if p.E:
            return self.ragged(h, w) if p.moe == "ragged" else self.capacity(h, w)
        if "gu" in w:
            both = jnp.einsum("btd,dcf->btcf", h, w["gu"])
            return (active(both[:, :, 0]) * both[:, :, 1]) @ w["down"]
        up = checkpoint_name(self.on(h @ w["up"], DATA, "cp", "tp"), "up")
        if not p.gated:
            return jax.nn.gelu(up) @ w["down"]
        return (active(checkpoint_name(self.on(h @ w["gate"], DATA, "cp", "tp"), "gate")) * up) @ w["down"]

    def ragged(self, h, w):
        """Sort each device's tokens by expert, with gathered experts."""
        p = self.p

        def local(h, r, gate, up, down):
            x = h.reshape(-1, p.D)
            share, chosen = lax.top_k(jax.nn.softmax((x @ r).astype(jnp.float32)), p.k)
            order = jnp.argsort(chosen.reshape(-1))
            rows, sizes = x[order // p.k], jnp.bincount(chosen.reshape(-1), length=p.E)
            hidden = jax.nn.silu(lax.ragged_dot(rows, gate, sizes)) * lax.ragged_dot(rows, up, sizes)
            out = lax.ragged_dot(hidden, down, sizes)[jnp.argsort(order)].reshape(-1, p.k, p.D)
            return jnp.einsum("nkd,nk->nd", out, share.astype(out.dtype)).reshape(h.shape)

        here, whole = self.place(DATA, None, None).spec, PartitionSpec()
        specs = (here, whole, whole, whole, whole)
        run = jax.shard_map(local, mesh=self.mesh, in_specs=specs, out_specs=here, check_vma=False)
        return run(h, w["r"], w["eg"], w["eu"], w["ed"])

    def capacity(self, h, w):
        """Dispatch tokens as GShard does, with a capacity per expert: tokens beyond it are dropped."""
        p = self.p
        b, t, _ = h.shape
        share, chosen = lax.top_k(jax.nn.softmax((h @ w["r"]).astype(jnp.float32)), p.k)
        taken = jax.nn.one_hot(chosen, p.E, dtype=jnp.int32)
        place = jnp.cumsum(taken.reshape(b, t * p.k, p.E), 1).reshape(taken.shape) * taken - 1
        sent = jax.nn.one_hot(place, int(t * p.k / p.E), dtype=h.dtype) * taken[..., None].astype(h.dtype)
        back = (sent * share[..., None, None].astype(h.dtype)).sum(2)
        dims = ("fsdp", "dp", None, None) if p.ep > 1 else (None, DATA, None, None)
        x = self.on(jnp.einsum("btd,btec->ebcd", h, sent.sum(2)), *dims)
        hidden = jax.nn.silu(jnp.einsum("ebcd,edf->ebcf", x, w["eg"])) * jnp.einsum(
            "ebcd,edf->ebcf", x, w["eu"]
        )
        out = self.on(jnp.einsum("ebcf,efd->ebcd", hidden, w["ed"]), *dims)
        return jnp.einsum("ebcd,btec->btd", out, back)

    def layer(self, x, w, seg):
        p = self.p
        if p.cast == "use":
            w = {name: a.astype(jnp.bfloat16) for name, a in w.items()}
        h = self.whole(self.norm(x, w["n1"]))
        b, t, _ = h.shape
        if p.style == "einsum":
            q, k, v = (jnp.einsum("btd,dnh->btnh", h, w[name]) for name in "qkv")
        elif p.style == "flat":
            q, k, v = (
                (h @ w[name]).reshape(b, t, n, p.H) for name, n in zip("qkv", (p.N, p.K, p.K), strict=True)
            )
        else:
            all_three = jnp.einsum("btd,dkgh->btkgh", h, w["qkv"])
            q = all_three[..., :-2, :].reshape(b, t, p.N, p.H)
            k, v = all_three[..., -2, :], all_three[..., -1, :]
        q = self.on(q, DATA, "cp", "tp", None)
        if p.marked and p.K % p.tp == 0:
            k, v = (self.on(a, DATA, None, "tp", None) for a in (k, v))
        if p.pos == "rope":
            q, k = rope(q), rope(k)
        q, k, v = (checkpoint_name(a, name) for a, name in zip((q, k, v), "qkv", strict=True))
        if p.cp > 1:  # a chip's queries attend to the keys and values of all tokens
            k, v = (self.on(a, DATA, None, "tp" if p.K % p.tp == 0 else None, None) for a in (k, v))
        a = self.attend(q, k, v, seg)
        o = jnp.einsum("btnh,nhd->btd", a, w["o"]) if p.style == "einsum" else a.reshape(b, t, -1) @ w["o"]
        between = (DATA, ("cp", "tp") if p.sp else "cp", None)
        x = x + self.on(checkpoint_name(o, "o"), *between)
        return self.on(x + self.mlp(self.whole(self.norm(x, w["n2"])), w), *between)
