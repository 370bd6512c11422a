"""The formulas against compiled programs: matmul FLOPs to the last one, and what JAX keeps for a gradient."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax._src.ad_checkpoint import saved_residuals

from scalingbook_lib import arithmetic
from scalingbook_lib.lab import work
from scalingbook_lib.models import Experts, Latent, Transformer

B, T = 2, 24
GQA = Transformer(name="dense", D=32, F=80, L=1, N=4, K=2, H=16, V=100)
MLA = Transformer(
    name="MLA",
    D=32,
    F=80,
    L=1,
    N=4,
    K=4,
    H=12,
    V=100,
    latent=Latent(q_rank=20, kv_rank=24, nope=8, rope=4, v=10),
)
MOE = Transformer(
    name="MoE", D=32, F=80, L=1, N=4, K=2, H=16, V=100, experts=Experts(E=4, k=2, F=40, shared=1)
)


def norm(x, scale=None):
    wide = x.astype(jnp.float32)
    wide = wide * lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)
    return (wide if scale is None else wide * scale).astype(x.dtype)


def softmax(scores, dtype):
    return jax.nn.softmax(scores.astype(jnp.float32), -1).astype(dtype)


def attend(w, h, cache=None):
    """Grouped queries: K key-value heads, G queries for each."""
    q = jnp.einsum("btd,dkgh->btkgh", h, w["q"].reshape(h.shape[-1], GQA.K, GQA.G, -1))
    k, v = (jnp.einsum("bsd,dkh->bskh", h, w[name]) for name in "kv")
    p = softmax(jnp.einsum("btkgh,bskh->bkgts", q, k), h.dtype)
    o = jnp.einsum("bkgts,bskh->btkgh", p, v)
    return jnp.einsum("btkgh,kghd->btd", o, w["o"].reshape(GQA.K, GQA.G, -1, h.shape[-1]))


def latent_query(w, h):
    q = jnp.einsum("btr,rnh->btnh", norm(h @ w["q down"]), w["q up"])
    return jnp.split(q, [MLA.latent.nope], -1)


def latent_naive(w, h, c, rope):
    """Keys and values of every latent vector are made."""
    nope, turned = latent_query(w, h)
    k, v = jnp.einsum("bsc,cnh->bsnh", c, w["k up"]), jnp.einsum("bsc,cnh->bsnh", c, w["v up"])
    shared = jnp.broadcast_to(rope[:, :, None], (*k.shape[:3], rope.shape[-1]))
    q, k = jnp.concatenate([nope, turned], -1), jnp.concatenate([k, shared], -1)
    p = softmax(jnp.einsum("btnh,bsnh->bnts", q, k), h.dtype)
    return jnp.einsum("btnh,nhd->btd", jnp.einsum("bnts,bsnh->btnh", p, v), w["o"])


def latent_absorbed(w, h, c, rope):
    """Queries meet the latent vectors themselves."""
    nope, turned = latent_query(w, h)
    q = jnp.concatenate([jnp.einsum("btnh,cnh->btnc", nope, w["k up"]), turned], -1)
    p = softmax(jnp.einsum("btnc,bsc->bnts", q, jnp.concatenate([c, rope], -1)), h.dtype)
    o = jnp.einsum("bnts,bsc->btnc", p, c)
    return jnp.einsum("btnh,nhd->btd", jnp.einsum("btnc,cnh->btnh", o, w["v up"]), w["o"])


def latent_layer(attention):
    def attend(w, h, cache):
        c, rope = norm(h @ w["kv down"]), h @ w["k rope"]
        return attention(w, h, jnp.concatenate([cache[0], c], 1), jnp.concatenate([cache[1], rope], 1))

    return attend


def mlp(w, h, name=""):
    gate = h @ w[f"{name}gate"]
    return (gate * lax.logistic(gate) * (h @ w[f"{name}up"])) @ w[f"{name}down"]


def routed(w, h):
    """Each expert gets B·T·k/E tokens, as a perfectly even router would send them: the FLOPs of dropless."""
    e = MOE.experts
    chosen, experts = lax.top_k(jax.nn.softmax(h @ w["router"]), e.k)
    rows = jnp.argsort(experts.reshape(-1))
    x = h.reshape(-1, h.shape[-1])[rows // e.k].reshape(e.E, -1, h.shape[-1])
    gate = jnp.einsum("ebd,edf->ebf", x, w["expert gate"])
    up = jnp.einsum("ebd,edf->ebf", x, w["expert up"])
    y = jnp.einsum("ebf,efd->ebd", gate * lax.logistic(gate) * up, w["expert down"]).reshape(-1, h.shape[-1])
    back = (
        jnp.zeros_like(x.reshape(-1, h.shape[-1])[: B * T])
        .at[rows // e.k]
        .add(y * chosen.reshape(-1)[rows][:, None])
    )
    return back.reshape(h.shape) + mlp(w, h, "shared ")


def forward(w, x, cache=None, *, attention=attend, feed=mlp):
    x = x + attention(w, norm(x), cache)
    x = x + feed(w, norm(x))
    return norm(x) @ w["unembed"]


def weights(model, dtype=jnp.float32):
    """Arrays of the shapes that the library lists, by name."""
    named = {w.name: (w, w.shape) for w in model.weights() if w.matmul}
    stacked = {n: (model.experts.E, *s) if w.part == "experts" else s for n, (w, s) in named.items()}
    return {name: jax.ShapeDtypeStruct(shape, dtype) for name, shape in stacked.items()}


def counted(fn, *args):
    return work.matmul_flops(jax.jit(fn).lower(*args).compile().as_text())


def tokens(T=T, dtype=jnp.float32, D=32):
    return jax.ShapeDtypeStruct((B, T, D), dtype)


def latent_cache(S):
    a = MLA.latent
    return tuple(jax.ShapeDtypeStruct((B, S, width), jnp.float32) for width in (a.kv_rank, a.rope))


def dense(w, x):
    return forward(w, x)


def moe(w, x):
    return forward(w, x, feed=routed)


def naive(w, x, cache):
    return forward(w, x, cache, attention=latent_layer(latent_naive))


def absorbed(w, x, cache):
    return forward(w, x, cache, attention=latent_layer(latent_absorbed))


@pytest.mark.parametrize(("fn", "model"), [(dense, GQA), (moe, MOE)], ids=["dense", "moe"])
def test_a_layer_s_matmuls_are_the_formula_s_to_the_last_flop(fn, model):
    found = counted(fn, weights(model), tokens())
    assert found == arithmetic.flops(model, B, T).total


@pytest.mark.parametrize(("fn", "is_absorbed"), [(naive, False), (absorbed, True)], ids=["naive", "absorbed"])
@pytest.mark.parametrize(("T", "S"), [(24, 24), (3, 40)])
def test_latent_attention_s_matmuls_are_the_formula_s(fn, is_absorbed, T, S):
    found = counted(fn, weights(MLA), tokens(T), latent_cache(S - T))
    assert found == arithmetic.flops(MLA, B, T, S=S, absorbed=is_absorbed).total


@pytest.mark.parametrize(("fn", "model"), [(dense, GQA), (moe, MOE)], ids=["dense", "moe"])
def test_a_gradient_s_matmuls_are_three_times_the_forward_pass(fn, model):
    def loss(w, x):
        return jnp.sum(jnp.sin(fn(w, x)))

    found = counted(jax.value_and_grad(loss, (0, 1)), weights(model), tokens())
    assert found == arithmetic.flops(model, B, T, training=True).total


PLAIN = Transformer(name="plain", D=32, F=80, L=1, N=4, K=2, H=16, V=1)
POLICIES = {
    "all": None,
    "dots": jax.checkpoint_policies.dots_saveable,
    "dots_no_batch": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "full": jax.checkpoint_policies.nothing_saveable,
}


def layer_weights(dtype):
    scale = jax.ShapeDtypeStruct((PLAIN.D,), jnp.float32)
    return weights(PLAIN, dtype) | {"before attention": scale, "before the MLP": scale}


def layer(w, x):
    x = x + attend(w, norm(x, w["before attention"]))
    return x + mlp(w, norm(x, w["before the MLP"]))


def under(policy):
    return layer if policy == "all" else jax.checkpoint(layer, policy=POLICIES[policy])


@pytest.mark.parametrize("policy", POLICIES)
def test_jax_keeps_for_the_gradient_what_the_formula_says(policy):
    w = layer_weights(jnp.bfloat16)
    kept = [
        a
        for a, why in saved_residuals(under(policy), w, tokens(dtype=jnp.bfloat16))
        if "argument w" not in why
    ]
    own = [a for a in kept if T in a.shape]  # neither reshaped weights nor constants
    found = sum(a.size * a.dtype.itemsize for a in own)
    assert found == arithmetic.activations(PLAIN, B, T, policy).nbytes


@pytest.mark.parametrize("policy", POLICIES)
def test_the_compiler_does_again_what_the_formula_says(policy):
    def loss(w, x):
        return jnp.sum(jnp.sin(under(policy)(w, x)))

    jaxpr = jax.make_jaxpr(jax.grad(loss, (0, 1)))(layer_weights(jnp.float32), tokens())
    kept = arithmetic.activations(PLAIN, B, T, policy)
    unembedding = 3 * arithmetic.flops(PLAIN, B, T)["unembedding"]
    assert dots(jaxpr.jaxpr) == kept.training_flops - unembedding + kept.extra_flops


def dots(jaxpr):
    """The FLOPs of every product in a jaxpr and within it; XLA might merge what is computed twice."""
    total = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "dot_general":
            (contracting, _), _ = eqn.params["dimension_numbers"]
            terms = 1
            for axis in contracting:
                terms *= eqn.invars[0].aval.shape[axis]
            total += 2 * eqn.outvars[0].aval.size * terms
        inner = (getattr(value, "jaxpr", value) for value in eqn.params.values())
        total += sum(dots(program) for program in inner if hasattr(program, "eqns"))
    return total
