"""A Transformer of any published structure that prefills or decodes, in plain JAX with sharding annotations.

Tensor parallelism shards heads and widths as in Megatron; the rest is left to the partitioner. Layers are
unrolled, each with its own weights and cache.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from scalingbook_lab.compiler import aot
from scalingbook_lib import inference
from scalingbook_lib.models import Transformer, Weight
from tools.compiled.architectures import grouped, mlp, norm, routed, softmax

HEADS, KV_HEADS = ("q", "q up", "k up", "v up", "attention gate"), ("k", "v")


def cut(model: Transformer, *, L: int = 2, window: int | None = None) -> Transformer:
    """Return a few layers of a model: at most one dense layer with experts, one per window with windows."""
    e = model.experts
    experts = e and replace(e, first_dense=min(e.first_dense, 1))
    windows = tuple(w and (window or w) for w in model.windows)
    return replace(model, L=max(L, len(windows)), experts=experts, windows=windows)


@dataclass(frozen=True, kw_only=True)
class Serving:
    """A step that appends T new tokens to B sequences of S - T cached tokens; with T = S, none are cached."""

    model: Transformer
    topology: str
    tp: int
    B: int
    T: int
    S: int

    @property
    def layout(self) -> inference.Layout:
        """The inference layout."""
        return inference.Layout(tp=self.tp)

    @property
    def copies(self) -> int:
        """The number of chips that hold the same KV head, which is the size of a mesh axis."""
        return 1 if self.model.latent else max(self.tp // self.model.K, 1)

    @cached_property
    def mesh(self) -> jax.sharding.Mesh:
        """A mesh with KV heads over Y, and query heads over Y and Z."""
        return aot.mesh_for(self.topology, {"Y": self.tp // self.copies, "Z": self.copies})

    def struct(self, shape, *dims, kind=jnp.bfloat16):
        split = [self.ways if dim == "YZ" else dim for dim in dims]
        return jax.ShapeDtypeStruct(shape, kind, sharding=NamedSharding(self.mesh, PartitionSpec(*split)))

    @property
    def ways(self):
        """The mesh axes of all chips."""
        return ("Y", "Z")

    def split(self, w: Weight) -> tuple[str | None, ...]:
        """Return the mesh axes of each dimension of a weight: heads, widths, vocabulary or experts are
        sharded.
        """
        if w.part == "experts":
            return ("YZ", None, None)
        if w.name == "embed" or (w.name.endswith("down") and w.part in ("mlp", "shared experts")):
            return ("YZ", None)
        if w.name == "o":
            return ("YZ", None, None)
        if w.name in HEADS:
            return (None, "YZ", None)
        if w.name in KV_HEADS:
            return (None, "Y", None)
        return (None, "YZ" if w.part in ("mlp", "shared experts", "unembedding") else None)

    def weights(self):
        """The weights of the embedding and unembedding, and of each layer."""
        m, ends, layers = self.model, {}, [{} for _ in range(self.model.L)]
        for w in m.weights():
            if w.name == "embed" or (w.name == "unembed" and not w.tied):
                ends[w.name] = self.struct(w.shape, *self.split(w))
            elif w.matmul and w.name != "unembed":
                stacked = (m.experts.E,) if m.experts and w.part == "experts" else ()
                for k, layer in enumerate(layers):
                    if w.part != "mlp" and w.part not in ("router", "experts", "shared experts"):
                        layer[w.name] = self.struct(w.shape, *self.split(w))
                    elif (w.part != "mlp") == self.is_routed(k):
                        layer[w.name] = self.struct((*stacked, *w.shape), *self.split(w))
        return {"ends": ends, "layers": layers}

    def is_routed(self, layer: int) -> bool:
        e = self.model.experts
        return bool(e and e.has(layer))

    def cache(self):
        """The cache of each layer: keys and values of its window, or latent vectors."""
        m, found = self.model, []
        for k in range(m.L):
            window = m.windows[k % len(m.windows)]
            S = min(self.S, window or self.S)
            if m.latent:
                widths = m.latent.kv_rank, m.latent.rope
                found.append(tuple(self.struct((self.B, S, n), None, None, None) for n in widths))
            else:
                one = self.struct((self.B, S, m.K, m.H), None, None, "Y", None)
                found.append((one, one))
        return found

    def whole(self, x):
        return lax.with_sharding_constraint(x, NamedSharding(self.mesh, PartitionSpec()))

    def step(self, weights, tokens, cache, at):
        """Map tokens[B, T] to the logits[B, V] after the last token, and the cache."""
        m = self.model
        x, kept = self.whole(weights["ends"]["embed"][tokens]), []
        for k, w in enumerate(weights["layers"]):
            window = m.windows[k % len(m.windows)]
            h = norm(x)
            attended, new = (self.latent if m.latent else self.heads)(w, h, window, cache and cache[k], at)
            x = x if m.norms < 2 else self.whole(x + attended)
            out = (routed if self.is_routed(k) else mlp)(m, w, h if m.norms < 2 else norm(x))
            x = self.whole(x + out + (attended if m.norms < 2 else 0))
            kept.append(new)
        head = weights["ends"]["embed"].T if m.tied else weights["ends"]["unembed"]
        return norm(x[:, -1]) @ head, kept

    def heads(self, w, h, window, kept, at):
        q, k, v = (jnp.einsum("btd,dnh->btnh", h, w[name]) for name in "qkv")
        if kept is None:
            new = tuple(a[:, -min(window or self.S, self.S) :] for a in (k, v))
        else:
            k, v = new = self.put(kept, (k, v), at)
            window = None  # the cache holds no more than the window
        out = grouped(q, k, v, window).reshape(q.shape)
        if self.model.attention_gate:
            out *= lax.logistic(jnp.einsum("btd,dnh->btnh", h, w["attention gate"]))
        return jnp.einsum("btnh,nhd->btd", out, w["o"]), new

    def latent(self, w, h, window, kept, at):
        """Latent attention: prefill expands keys and values per head; decode uses the latent vectors."""
        a = self.model.latent
        assert a
        low, up = (norm(h @ w["q down"]), w["q up"]) if a.q_rank else (h, w["q"])
        q = jnp.einsum("btr,rnh->btnh", low, up)
        own = norm(h @ w["kv down"]), h @ w["k rope"]
        if kept is None:
            (c, rope), new = own, own
            k, v = (jnp.einsum("bsc,cnh->bsnh", c, w[name]) for name in ("k up", "v up"))
            k = jnp.concatenate([k, jnp.broadcast_to(rope[:, :, None], (*k.shape[:3], a.rope))], -1)
            out = grouped(q, k, v, window).reshape(*v.shape)
        else:
            c, rope = new = self.put(kept, own, at)
            inner = jnp.einsum("btnh,rnh->btnr", q[..., : a.nope], w["k up"])
            scores = jnp.einsum("btnr,bsr->bnts", inner, c) + jnp.einsum(
                "btnh,bsh->bnts", q[..., a.nope :], rope
            )
            out = jnp.einsum("btnr,rnv->btnv", jnp.einsum("bnts,bsr->btnr", softmax(scores), c), w["v up"])
        return jnp.einsum("btnh,nhd->btd", out, w["o"]), new

    @staticmethod
    def put(kept, own, at):
        """Return the cache with the new entries."""
        return tuple(lax.dynamic_update_slice_in_dim(a, b, at, 1) for a, b in zip(kept, own, strict=True))

    def lowered(self):
        """Return the lowered step, with nothing allocated."""
        cache = self.cache()
        index = self.struct((), kind=jnp.int32)
        tokens = self.struct((self.B, self.T), None, None, kind=jnp.int32)
        places = jax.tree.map(lambda a: a.sharding, cache)
        logits = self.struct((self.B, self.model.V), None, "YZ").sharding
        given = (self.weights(), tokens, cache if self.T < self.S else None, index)
        step = jax.jit(self.step, donate_argnums=(2,), out_shardings=(logits, places))
        return step.lower(*given)
