"""8 bits change what a model says by less than is stated, in every layout; 4 bits by more."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalingbook_lib.lab.serve import quantize
from scalingbook_lib.lab.serve.layout import Config
from scalingbook_lib.lab.serve.quantize import CACHE8, Narrow, compared, narrow, wide
from scalingbook_lib.lab.train import text
from scalingbook_lib.lab.train.trainer import SMALL, SMALL_MOE, Trainer, initial
from tests.core import repeatable

SIZES = {"sequences": 8, "tokens": 64}
TOKENS = text.batch(5000, batch=8, T=64)


@functools.cache
def weights():
    """A model that has learned the commonest pairs of letters."""
    return jax.tree.map(np.asarray, Trainer(SMALL, {"X": 1}).train(60).state["weights"])


@functools.cache
def change(kind, **mesh):
    mesh = mesh or {"Y": 1}
    plain = Config(SMALL, {"Y": 1}, **SIZES)
    ways = {
        "weights": lambda: Narrow(SMALL, mesh, **SIZES),
        "cache": lambda: Config(SMALL, mesh, codec=CACHE8, **SIZES),
        "both": lambda: Narrow(SMALL, mesh, codec=CACHE8, **SIZES),
        "int4": lambda: Narrow(SMALL, mesh, stored=jnp.int4, **SIZES),
        "scanned": lambda: Narrow(SMALL, mesh, codec=CACHE8, scanned=True, **SIZES),
    }
    return compared(plain, ways[kind](), weights(), TOKENS)


# --- the bounds ------------------------------------------------------------------------------------------

drawn = st.tuples(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3), st.sampled_from([jnp.int8, jnp.int4]))


@repeatable.examples(40)
@given(drawn)
def test_no_number_is_off_by_more_than_half_a_step(of):
    seed, size, stored = of
    x = size * np.random.default_rng(seed).standard_normal((24, 6)).astype(np.float32)
    numbers = narrow(jnp.asarray(x), (0,), stored)
    step = np.asarray(numbers["scale"])
    assert np.allclose(step[0], np.abs(x).max(0) / quantize.levels(stored))
    assert (np.abs(np.asarray(wide(numbers)) - x) <= step / 2 * (1 + 1e-4)).all()


@repeatable.examples(40)
@given(drawn)
def test_a_product_is_off_by_at_most_half_a_step_for_each_unit_of_its_input(of):
    seed, size, stored = of
    rng = np.random.default_rng(seed)
    w = jnp.asarray(size * rng.standard_normal((24, 6)).astype(np.float32))
    x = rng.standard_normal((5, 24)).astype(np.float32)
    numbers = narrow(w, (0,), stored)
    bound = np.abs(x).sum(-1, keepdims=True) * np.asarray(numbers["scale"]) / 2
    assert (np.abs(x @ np.asarray(wide(numbers)) - x @ np.asarray(w)) <= bound * (1 + 1e-3)).all()


def test_zeros_stay_zeros():
    assert (np.asarray(wide(narrow(jnp.zeros((3, 4)), (0,)))) == 0).all()


def test_a_scale_is_of_an_output_channel():
    assert [quantize.axes_of(name) for name in ("q", "o", "gate", "down")] == [(0,), (0, 1), (0,), (0,)]
    assert [quantize.axes_of(name) for name in ("expert up", "expert down")] == [(1,), (1,)]
    assert quantize.axes_of("embed") == (1,)
    assert quantize.axes_of("o", in_layer=False) == (1, 2)


# --- the model -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "logits"), [("weights", 0.02), ("cache", 0.02), ("both", 0.02), ("int4", 0.3)]
)
def test_logits_perplexity_and_words_change_by_less_than_is_stated(kind, logits):
    told = change(kind)
    assert 0 < told.relative < logits
    assert abs(told.narrow_perplexity / told.perplexity - 1) < logits / 4
    assert told.agree > 1 - 2 * logits


def test_four_bits_cost_an_order_of_magnitude_more_than_eight():
    assert 8 < change("int4").relative / change("weights").relative < 40  # 127 levels against 7: 18


def test_it_is_the_same_model_on_every_mesh():
    for other in (change("both", Z=2, Y=4), change("both", X=2, C=2, Y=2), change("scanned")):
        assert other.relative == pytest.approx(change("both").relative, rel=0.02)
        assert other.narrow_perplexity == pytest.approx(change("both").narrow_perplexity, rel=1e-4)


def test_experts_are_narrow_too():
    drawn = initial(SMALL_MOE, seed=0)["weights"]
    plain, eight = (kind(SMALL_MOE, {"Y": 1}, **SIZES) for kind in (Config, Narrow))
    layer = eight.params(drawn)["layers"][0]
    assert layer["expert up"]["whole"].dtype == jnp.int8
    assert layer["expert up"]["scale"].shape == (8, 1, 96)
    assert layer["router"].dtype == jnp.float32
    assert 0 < compared(plain, eight, drawn, TOKENS).relative < 0.2  # some tokens go to another expert


def test_it_is_a_quarter_of_the_bytes_and_the_scales():
    plain, eight = (kind(SMALL, {"Y": 1}, codec=codec, **SIZES) for kind, codec in
                    ((Config, Config.codec), (Narrow, CACHE8)))  # fmt: skip
    held = [sum(s.size * s.dtype.itemsize for s in jax.tree.leaves(c.structs)) for c in (plain, eight)]
    assert 0.25 < held[1] / held[0] < 0.40  # of a small model, whose scales are many


def test_it_tells_itself():
    told = quantize.QuantizedComparison(0.125, 0.005, 1.0, 6.5, 6.625, 0.996)
    assert str(told) == (
        "logits off by 0.5% (at most 0.125), perplexity 6.5000 → 6.6250, the same next token in 99.6%"
    )
