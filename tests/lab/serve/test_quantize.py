"""Quantization to 8 bits changes logits by less than a bound on every mesh; 4 bits change them by more."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalingbook_lab.serve import quantize
from scalingbook_lab.serve.layout import Config
from scalingbook_lab.serve.quantize import CACHE8, QuantizedConfig, compare_logits, dequantize
from scalingbook_lab.train import text
from scalingbook_lab.train.trainer import SMALL, SMALL_MOE, Trainer, initial
from tests.core import repeatable

SIZES = {"sequences": 8, "tokens": 64}
TOKENS = text.batch(5000, batch=8, T=64)


@functools.cache
def weights():
    """Weights of a model that has learned common pairs of letters."""
    return jax.tree.map(np.asarray, Trainer(SMALL, {"X": 1}).train(60).state["weights"])


@functools.cache
def change(kind, **mesh):
    mesh = mesh or {"Y": 1}
    plain = Config(SMALL, {"Y": 1}, **SIZES)
    ways = {
        "weights": lambda: QuantizedConfig(SMALL, mesh, **SIZES),
        "cache": lambda: Config(SMALL, mesh, codec=CACHE8, **SIZES),
        "both": lambda: QuantizedConfig(SMALL, mesh, codec=CACHE8, **SIZES),
        "int4": lambda: QuantizedConfig(SMALL, mesh, stored=jnp.int4, **SIZES),
        "scanned": lambda: QuantizedConfig(SMALL, mesh, codec=CACHE8, scanned=True, **SIZES),
    }
    return compare_logits(plain, ways[kind](), weights(), TOKENS)


# --- the bounds ------------------------------------------------------------------------------------------

drawn = st.tuples(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3), st.sampled_from([jnp.int8, jnp.int4]))


@repeatable.examples(40)
@given(drawn)
def test_every_number_is_within_half_a_step(of):
    seed, size, stored = of
    x = size * np.random.default_rng(seed).standard_normal((24, 6)).astype(np.float32)
    numbers = quantize.quantize(jnp.asarray(x), (0,), stored)
    step = np.asarray(numbers["scale"])
    assert np.allclose(step[0], np.abs(x).max(0) / quantize.max_level(stored))
    assert (np.abs(np.asarray(dequantize(numbers)) - x) <= step / 2 * (1 + 1e-4)).all()


@repeatable.examples(40)
@given(drawn)
def test_the_error_of_a_matmul_is_at_most_half_a_step_per_unit_of_input(of):
    seed, size, stored = of
    rng = np.random.default_rng(seed)
    w = jnp.asarray(size * rng.standard_normal((24, 6)).astype(np.float32))
    x = rng.standard_normal((5, 24)).astype(np.float32)
    numbers = quantize.quantize(w, (0,), stored)
    bound = np.abs(x).sum(-1, keepdims=True) * np.asarray(numbers["scale"]) / 2
    assert (np.abs(x @ np.asarray(dequantize(numbers)) - x @ np.asarray(w)) <= bound * (1 + 1e-3)).all()


def test_zeros_are_quantized_exactly():
    assert (np.asarray(dequantize(quantize.quantize(jnp.zeros((3, 4)), (0,)))) == 0).all()


def test_each_output_channel_has_a_scale():
    assert [quantize.summed_axes(name) for name in ("q", "o", "gate", "down")] == [(0,), (0, 1), (0,), (0,)]
    assert [quantize.summed_axes(name) for name in ("expert up", "expert down")] == [(1,), (1,)]
    assert quantize.summed_axes("embed") == (1,)
    assert quantize.summed_axes("o", in_layer=False) == (1, 2)


# --- the model -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "logits"), [("weights", 0.02), ("cache", 0.02), ("both", 0.02), ("int4", 0.3)]
)
def test_quantization_changes_logits_by_less_than_a_bound(kind, logits):
    told = change(kind)
    assert 0 < told.relative < logits
    assert abs(told.quantized_perplexity / told.perplexity - 1) < logits / 4
    assert told.agree > 1 - 2 * logits


def test_int4_has_ten_times_the_error_of_int8():
    assert 8 < change("int4").relative / change("weights").relative < 40  # 127 levels against 7: 18


def test_quantization_is_the_same_on_every_mesh():
    for other in (change("both", Z=2, Y=4), change("both", X=2, C=2, Y=2), change("scanned")):
        assert other.relative == pytest.approx(change("both").relative, rel=0.02)
        assert other.quantized_perplexity == pytest.approx(change("both").quantized_perplexity, rel=1e-4)


def test_experts_are_quantized_too():
    drawn = initial(SMALL_MOE, seed=0)["weights"]
    plain, eight = (kind(SMALL_MOE, {"Y": 1}, **SIZES) for kind in (Config, QuantizedConfig))
    layer = eight.params(drawn)["layers"][0]
    assert layer["expert up"]["whole"].dtype == jnp.int8
    assert layer["expert up"]["scale"].shape == (8, 1, 96)
    assert layer["router"].dtype == jnp.float32
    assert 0 < compare_logits(plain, eight, drawn, TOKENS).relative < 0.2  # some tokens go to another expert


def test_int8_takes_a_quarter_of_fp32_plus_scales():
    plain, eight = (kind(SMALL, {"Y": 1}, codec=codec, **SIZES) for kind, codec in
                    ((Config, Config.codec), (QuantizedConfig, CACHE8)))  # fmt: skip
    held = [sum(s.size * s.dtype.itemsize for s in jax.tree.leaves(c.structs)) for c in (plain, eight)]
    assert 0.25 < held[1] / held[0] < 0.40  # of a small model, whose scales are many


def test_results_print_as_text():
    told = quantize.LogitError(0.125, 0.005, 1.0, 6.5, 6.625, 0.996)
    assert str(told) == (
        "logits off by 0.5% (at most 0.125), perplexity 6.5000 → 6.6250, the same next token in 99.6%"
    )
