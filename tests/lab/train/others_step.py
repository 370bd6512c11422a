"""One step of `others.Style`: the model, its loss, and an optimizer, in plain JAX."""

import json

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import NamedSharding, PartitionSpec

from scalingbook_lib.lab.compiler import aot, slices
from tests.lab.train.others import Style

POLICIES = jax.checkpoint_policies
POLICY = {
    "full": POLICIES.nothing_saveable,
    "dots_no_batch": POLICIES.dots_with_no_batch_dims_saveable,
    "names": POLICIES.save_only_these_names("q", "k", "v", "o"),
    "names2": POLICIES.save_only_these_names("gate", "up"),
}
DATA = ("dp", "fsdp")


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


class Program:
    """The arrays of a style on its mesh, and its step."""

    def __init__(self, style: Style) -> None:
        self.p = style
        named = {name: getattr(style, name) for name in ("dp", "fsdp", "tp")}
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

    def weights(self):
        """Shape and split of a layer's weights, and of the others."""
        p = self.p
        D, N, K, H, F = p.D, p.N, p.K, p.H, p.F
        kv = "tp" if K % p.tp == 0 else None
        if p.style == "einsum":
            w = {
                "q": ((D, N, H), ("fsdp", "tp", None)),
                "k": ((D, K, H), ("fsdp", kv, None)),
                "v": ((D, K, H), ("fsdp", kv, None)),
                "o": ((N, H, D), ("tp", None, "fsdp")),
            }
        elif p.style == "flat":
            w = {name: ((D, n * H), ("fsdp", "tp")) for name, n in (("q", N), ("k", K), ("v", K))}
            w["o"] = ((N * H, D), ("tp", "fsdp"))
        else:
            w = {
                "qkv": ((D, K, N // K + 2, H), ("fsdp", kv, None, None)),
                "o": ((N * H, D), ("tp", "fsdp")),
            }
        if p.E:
            e, d = ("fsdp", None) if p.ep > 1 else (None, "fsdp")
            w["r"] = ((D, p.E), ("fsdp", None))
            w["eg"] = w["eu"] = ((p.E, D, F), (e, d, "tp"))
            w["ed"] = ((p.E, F, D), (e, "tp", d))
        elif p.style == "fused" and p.gated:
            w["gu"] = ((D, 2, F), ("fsdp", None, "tp"))
            w["down"] = ((F, D), ("tp", "fsdp"))
        else:
            w["up"] = ((D, F), ("fsdp", "tp"))
            w["down"] = ((F, D), ("tp", "fsdp"))
            if p.gated:
                w["gate"] = ((D, F), ("fsdp", "tp"))
        w["n1"] = w["n2"] = ((D,), (None,))
        rest = {"embed": ((p.V, D), ("tp", "fsdp")), "norm": ((D,), (None,))}
        if not p.tied:
            rest["head"] = ((D, p.V), ("fsdp", "tp"))
        return w, rest

    def structs(self):
        """The state and the data, with nothing allocated."""
        p = self.p
        layer, rest = self.weights()

        def struct(shape, split, kind):
            return jax.ShapeDtypeStruct(shape, kind, sharding=self.place(*split))

        def tree(kind):
            if p.scan:
                layers = {n: struct((p.L, *shape), (None, *at), kind) for n, (shape, at) in layer.items()}
            else:
                layers = [{n: struct(*w, kind) for n, w in layer.items()} for _ in range(p.L)]
            return {"layers": layers, **{n: struct(*w, kind) for n, w in rest.items()}}

        moments = jnp.bfloat16 if p.opt == "bf16" else jnp.float32
        state = {
            "params": tree(jnp.float32 if p.opt == "fp32" else jnp.bfloat16),
            "m": tree(moments),
            "v": tree(moments),
            "step": struct((), (), jnp.int32),
        }
        if p.opt == "master":
            state["master"] = tree(jnp.float32)
        words = struct((p.batch, p.T), (DATA, None), jnp.int32)
        data = {"x": words, "y": words}
        if p.mask == "segment":
            data["seg"] = words
        if p.loss_mask:
            data["w"] = struct((p.batch, p.T), (DATA, None), jnp.float32)
        return state, data

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
        """The Pallas kernel that comes with JAX."""
        from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernels
        from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

        p = self.p
        n, size = p.N // p.tp, min(512, p.T)
        mask = masks.MultiHeadMask([masks.CausalMask((p.T, p.T)) for _ in range(n)])
        names = ("q", "kv", "kv_compute", "q_dkv", "kv_dkv", "kv_dkv_compute", "q_dq", "kv_dq")
        sizes = kernels.BlockSizes(**{f"block_{name}": size for name in names})

        def local(q, k, v):
            one = kernels.make_splash_mha(mask, block_sizes=sizes, head_shards=1, q_seq_shards=1)
            k, v = (jnp.repeat(a, n // a.shape[2], 2).swapaxes(1, 2) for a in (k, v))
            return jax.vmap(one)(q.swapaxes(1, 2) * p.H**-0.5, k, v).swapaxes(1, 2)

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
        up = checkpoint_name(self.on(h @ w["up"], DATA, None, "tp"), "up")
        if not p.gated:
            return jax.nn.gelu(up) @ w["down"]
        return (active(checkpoint_name(self.on(h @ w["gate"], DATA, None, "tp"), "gate")) * up) @ w["down"]

    def ragged(self, h, w):
        """Each device's tokens sorted by expert, experts gathered."""
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
        """GShard's dispatch: so many places for each expert, and what does not fit is dropped."""
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
        h = self.norm(x, w["n1"])
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
        q = self.on(q, DATA, None, "tp", None)
        if p.pos == "rope":
            q, k = rope(q), rope(k)
        q, k, v = (checkpoint_name(a, name) for a, name in zip((q, k, v), "qkv", strict=True))
        a = self.attend(q, k, v, seg)
        o = jnp.einsum("btnh,nhd->btd", a, w["o"]) if p.style == "einsum" else a.reshape(b, t, -1) @ w["o"]
        between = (DATA, "tp" if p.sp else None, None)
        x = x + self.on(checkpoint_name(o, "o"), *between)
        return self.on(x + self.mlp(self.norm(x, w["n2"]), w), *between)

    def cross_entropy(self, x, y, head):
        p = self.p
        wide = jnp.float32 if p.loss == "f32dot" else None
        z = self.on(jnp.einsum("btd,dv->btv", x, head, preferred_element_type=wide), DATA, None, "tp")
        z = z.astype(jnp.float32)
        if p.loss == "lse_onehot":
            return jax.nn.logsumexp(z, -1) - jnp.sum(z * jax.nn.one_hot(y, p.V), -1)
        if p.loss == "optax":
            z = z - lax.stop_gradient(z.max(-1, keepdims=True))
            return jnp.log(jnp.exp(z).sum(-1)) - jnp.take_along_axis(z, y[..., None], -1)[..., 0]
        return -jnp.take_along_axis(jax.nn.log_softmax(z, -1), y[..., None], -1)[..., 0]

    def loss(self, params, data):
        p = self.p
        if p.cast == "start":
            params = jax.tree.map(lambda a: a.astype(jnp.bfloat16), params)
        x = self.on(params["embed"].astype(jnp.bfloat16)[data["x"]], DATA, "tp" if p.sp else None, None)

        def one(x, w):
            return self.layer(x, w, data.get("seg"))

        if p.remat in POLICY:
            one = jax.checkpoint(one, policy=POLICY[p.remat], prevent_cse=not p.scan)
        if p.scan:
            x, _ = lax.scan(lambda x, w: (one(x, w), None), x, params["layers"])
        else:
            for w in params["layers"]:
                x = one(x, w)
        x = self.norm(x, params["norm"])
        head = (params["embed"].T if p.tied else params["head"]).astype(jnp.bfloat16)
        weight = data.get("w", jnp.ones(data["y"].shape, jnp.float32))
        if p.loss != "chunked":
            return jnp.sum(self.cross_entropy(x, data["y"], head) * weight) / weight.sum()
        b, t, _ = x.shape
        chunks = [a.reshape(b, 8, t // 8, *a.shape[2:]).swapaxes(0, 1) for a in (x, data["y"], weight)]
        each = jax.checkpoint(lambda x, y: self.cross_entropy(x, y, head))
        summed = lax.scan(lambda c, a: (c + jnp.sum(each(a[0], a[1]) * a[2]), None), 0.0, tuple(chunks))[0]
        return summed / weight.sum()

    def gradients(self, params, data):
        p = self.p
        graded = jax.value_and_grad(self.loss)
        if p.accum == 1:
            return graded(params, data)
        kind = jnp.float32 if p.acc == "fp32" else jnp.bfloat16
        parts = jax.tree.map(
            lambda a: self.on(a.reshape(-1, p.accum, p.T).swapaxes(0, 1), None, DATA, None), data
        )

        def add(sums, part):
            loss, g = graded(params, part)
            return (sums[0] + loss, jax.tree.map(lambda a, b: a + b.astype(kind), sums[1], g)), None

        zeros = jax.tree.map(lambda a: jnp.zeros(a.shape, kind), params)
        (loss, g), _ = lax.scan(add, (0.0, zeros), parts)
        return loss, jax.tree.map(lambda a: a / p.accum, g)

    def step(self, state, data):
        """AdamW, the state given back in place."""
        params = state["params"]
        loss, g = self.gradients(params, data)
        if self.p.clip:
            norm = jnp.sqrt(sum(jnp.sum(a.astype(jnp.float32) ** 2) for a in jax.tree.leaves(g)))
            g = jax.tree.map(lambda a: a * jnp.minimum(1.0, 1.0 / norm).astype(a.dtype), g)
        t = state["step"] + 1

        def update(w, g, m, v):
            g, wide = g.astype(jnp.float32), w.astype(jnp.float32)
            first = 0.9 * m.astype(jnp.float32) + 0.1 * g
            second = 0.95 * v.astype(jnp.float32) + 0.05 * g * g
            by = (first / (1 - 0.9**t)) / (jnp.sqrt(second / (1 - 0.95**t)) + 1e-8) + 0.1 * wide
            return wide - 3e-4 * by, first.astype(m.dtype), second.astype(v.dtype)

        found = jax.tree.map(update, state.get("master", params), g, state["m"], state["v"])
        three = jax.tree.structure(("w", "m", "v"))
        w, m, v = jax.tree.transpose(jax.tree.structure(params), three, found)
        new = {"params": jax.tree.map(lambda a, b: a.astype(b.dtype), w, params), "m": m, "v": v, "step": t}
        return (new | {"master": w} if self.p.opt == "master" else new), loss


def compile(knobs: str) -> None:
    """Compile the step of a style, given as JSON, for its slice."""
    program = Program(Style(**json.loads(knobs)))
    slices.topology(program.p.topo)
    state, data = program.structs()
    out = (jax.tree.map(lambda a: a.sharding, state), program.place())
    jax.jit(program.step, donate_argnums=(0,), out_shardings=out).lower(state, data).compile()
