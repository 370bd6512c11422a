"""The FLOPs of every published structure, at small sizes, compared with its compiled program."""

import jax
import jax.numpy as jnp
import pytest

from scalingbook_lib.models import CATALOG, arithmetic
from tools.compiled.architectures import T, counted, forward, structures, weights

B = 2
STRUCTURES = structures()


def tokens(m):
    return jax.ShapeDtypeStruct((B, T, m.D), jnp.float32)


def outer_products(m):
    """What linear attention writes has no contraction: XLA makes it a broadcast and a multiply."""
    a = m.linear
    return 2 * B * T * a.v_heads * a.key * a.value * (m.L - m.softmax_layers) if a else 0


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_flops_of_a_forward_pass_equal_the_formula_exactly(name):
    m = STRUCTURES[name]
    found = counted(lambda w, x: forward(m, w, x), weights(m), tokens(m))
    assert found + outer_products(m) == arithmetic.flops(m, B, T).total


def test_shortened_models_have_every_kind_of_layer():
    kinds = [
        {(bool(m.experts), bool(m.latent), bool(m.linear), m.gated, m.attention_gate) for m in some}
        for some in (CATALOG, STRUCTURES.values())
    ]
    assert kinds[0] == kinds[1]
    assert {m.K for m in STRUCTURES.values() if not m.latent} == {1, 2, 3}  # multi-query, grouped, one each
