"""One step of `Style`: the model, its loss, and an optimizer, in plain JAX."""

import json

import jax
import jax.numpy as jnp
from jax import lax

from scalingbook_lab.compiler import slices
from tools.compiled.others import Style
from tools.compiled.others_layers import DATA, SHARED, Layers

POLICIES = jax.checkpoint_policies
POLICY = {
    "full": POLICIES.nothing_saveable,
    "dots_no_batch": POLICIES.dots_with_no_batch_dims_saveable,
    "names": POLICIES.save_only_these_names("q", "k", "v", "o"),
    "names2": POLICIES.save_only_these_names("gate", "up"),
}

type Weight = tuple[tuple[int, ...], tuple[str | None, ...]]  # a shape, and the mesh axis of each dimension


class Program(Layers):
    """The arrays of a style, and its step."""

    def weights(self):
        """Return shape and sharding of a layer's weights, and of the others."""
        p = self.p
        D, N, K, H, F = p.D, p.N, p.K, p.H, p.F
        kv = "tp" if K % p.tp == 0 else None
        w: dict[str, Weight]
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
        rest: dict[str, Weight] = {"embed": ((p.V, D), ("tp", "fsdp")), "norm": ((D,), (None,))}
        if not p.tied:
            rest["head"] = ((D, p.V), ("fsdp", "tp"))
        return w, rest

    def structs(self):
        """Return the state and the data as shapes, with nothing allocated."""
        p = self.p
        layer, rest = self.weights()

        def struct(shape, split, kind, zero=1):
            shared = SHARED if p.zero >= zero else None
            at = (shared if dim == "fsdp" else dim for dim in split)
            return jax.ShapeDtypeStruct(shape, kind, sharding=self.place(*at))

        def tree(kind, zero=1):
            def structs(weights):
                return {name: struct(shape, at, kind, zero) for name, (shape, at) in weights.items()}

            if p.scan:
                layers = structs({n: ((p.L, *shape), (None, *at)) for n, (shape, at) in layer.items()})
            else:
                layers = [structs(layer) for _ in range(p.L)]
            return {"layers": layers, **structs(rest)}

        moments = jnp.bfloat16 if p.opt == "bf16" else jnp.float32
        state = {
            "params": tree(jnp.float32 if p.opt == "fp32" else jnp.bfloat16, zero=3),
            "m": tree(moments),
            "v": tree(moments),
            "step": struct((), (), jnp.int32),
        }
        if p.opt == "master":
            state["master"] = tree(jnp.float32)
        words = struct((p.batch, p.T), (DATA, "cp"), jnp.int32)
        data = {"x": words, "y": words}
        if p.mask == "segment":
            data["seg"] = words
        if p.loss_mask:
            data["w"] = struct((p.batch, p.T), (DATA, "cp"), jnp.float32)
        return state, data

    def cross_entropy(self, x, y, head):
        p = self.p
        wide = jnp.float32 if p.loss == "f32dot" else None
        z = self.on(jnp.einsum("btd,dv->btv", x, head, preferred_element_type=wide), DATA, "cp", "tp")
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
        between = ("cp", "tp") if p.sp else "cp"
        x = self.on(params["embed"].astype(jnp.bfloat16)[data["x"]], DATA, between, None)

        def one(x, w):
            return self.layer(x, w, data.get("seg"))

        if p.remat in POLICY:
            one = jax.checkpoint(one, policy=POLICY[p.remat], prevent_cse=not p.scan)
        if p.scan:
            x, _ = lax.scan(lambda x, w: (one(x, w), None), x, params["layers"])
        else:
            for w in params["layers"]:
                x = one(x, w)
        x = self.whole(self.norm(x, params["norm"]))
        head = (params["embed"].T if p.tied else params["head"]).astype(jnp.bfloat16)
        weight = data.get("w", jnp.ones(data["y"].shape, jnp.float32))
        if p.loss != "chunked":
            return jnp.sum(self.cross_entropy(x, data["y"], head) * weight) / weight.sum()
        b, t, _ = x.shape
        chunks = [a.reshape(b, 8, t // 8, *a.shape[2:]).swapaxes(0, 1) for a in (x, data["y"], weight)]
        each = jax.checkpoint(lambda x, y: self.cross_entropy(x, y, head))
        summed = lax.scan(lambda c, a: (c + jnp.sum(each(a[0], a[1]) * a[2]), None), 0.0, tuple(chunks))[0]
        return summed / weight.sum()

    def scattered(self, graded):
        """Return gradients sharded like the optimizer state."""

        def run(params, data):
            loss, g = graded(params, data)
            moments = self.structs()[0]["m"]
            return loss, jax.tree.map(lambda a, at: lax.with_sharding_constraint(a, at.sharding), g, moments)

        return run

    def gradients(self, params, data):
        p = self.p
        graded = jax.value_and_grad(self.loss)
        graded = self.scattered(graded) if p.zero == 2 else graded
        if p.accum == 1:
            return graded(params, data)
        kind = jnp.float32 if p.acc == "fp32" else jnp.bfloat16
        parts = jax.tree.map(
            lambda a: self.on(a.reshape(-1, p.accum, p.T).swapaxes(0, 1), None, DATA, "cp"), data
        )

        def add(sums, part):
            loss, g = graded(params, part)
            return (sums[0] + loss, jax.tree.map(lambda a, b: a + b.astype(kind), sums[1], g)), None

        zeros = jax.tree.map(lambda a: jnp.zeros(a.shape, kind), params)
        (loss, g), _ = lax.scan(add, (0.0, zeros), parts)
        return loss, jax.tree.map(lambda a: a / p.accum, g)

    def step(self, state, data):
        """Run one step of AdamW, with the state donated."""
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


def lowered(style: Style) -> jax.stages.Lowered:
    """Return the lowered step of a style."""
    program = Program(style)
    slices.topology(program.p.topo)
    state, data = program.structs()
    out = (jax.tree.map(lambda a: a.sharding, state), program.place())
    return jax.jit(program.step, donate_argnums=(0,), out_shardings=out).lower(state, data)


def compile(knobs: str) -> None:
    """Compile the step of a style, given as JSON, for its slice."""
    lowered(Style(**json.loads(knobs))).compile()
