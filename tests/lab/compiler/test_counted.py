"""Formulas compared with compiled programs: matmul FLOPs exactly, and the activations that JAX saves."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax._src.ad_checkpoint import saved_residuals

from scalingbook_lib.models import Experts, Latent, Transformer, arithmetic
from tools.compiled.architectures import counted, forward, heads, latent, latents, mlp, norm, softmax, weights

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


def absorbed(m, w, h, window, past):
    """Queries meet the latent vectors themselves."""
    q, c, rope = latents(m, w, h, past)
    nope, turned = jnp.split(q, [m.latent.nope], -1)
    q = jnp.concatenate([jnp.einsum("btnh,cnh->btnc", nope, w["k up"]), turned], -1)
    p = softmax(jnp.einsum("btnc,bsc->bnts", q, jnp.concatenate([c, rope], -1)))
    o = jnp.einsum("btnc,cnh->btnh", jnp.einsum("bnts,bsc->btnc", p, c), w["v up"])
    return jnp.einsum("btnh,nhd->btd", o, w["o"])


def tokens(T=T, dtype=jnp.float32, D=32):
    return jax.ShapeDtypeStruct((B, T, D), dtype)


def latent_cache(S):
    a = MLA.latent
    return tuple(jax.ShapeDtypeStruct((B, S, width), jnp.float32) for width in (a.kv_rank, a.rope))


@pytest.mark.parametrize("model", [GQA, MOE], ids=lambda model: model.name)
def test_the_flops_of_a_layer_equal_the_formula_exactly(model):
    found = counted(partial(forward, model), weights(model), tokens())
    assert found == arithmetic.flops(model, B, T).total


@pytest.mark.parametrize("how", [latent, absorbed], ids=["naive", "absorbed"])
@pytest.mark.parametrize(("T", "S"), [(24, 24), (3, 40)])
def test_the_flops_of_latent_attention_equal_the_formula(how, T, S):
    def fn(w, x, past):
        return forward(MLA, w, x, attention=partial(how, past=past))

    found = counted(fn, weights(MLA), tokens(T), latent_cache(S - T))
    assert found == arithmetic.flops(MLA, B, T, S=S, absorbed=how is absorbed).total


@pytest.mark.parametrize("model", [GQA, MOE], ids=lambda model: model.name)
def test_a_gradient_s_matmuls_are_three_times_the_forward_pass(model):
    def loss(w, x):
        return jnp.sum(jnp.sin(forward(model, w, x)))

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
    x = x + heads(PLAIN, w, norm(x, w["before attention"]), None)
    return x + mlp(PLAIN, w, norm(x, w["before the MLP"]))


def under(policy):
    return layer if policy == "all" else jax.checkpoint(layer, policy=POLICIES[policy])


@pytest.mark.parametrize("policy", POLICIES)
def test_jax_saves_the_activations_of_the_formula(policy):
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
def test_the_compiler_recomputes_what_the_formula_says(policy):
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
