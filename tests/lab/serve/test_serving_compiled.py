"""The compiled decode step has the collectives, memory and cycles that `inference` predicts."""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scalingbook_lab.compiler import knee
from scalingbook_lab.serve import cache_layout, decode, quantize, serving_step
from scalingbook_lab.serve.layout import Config
from scalingbook_lab.serve.paged_attention import Codec
from scalingbook_lab.serve.quantize import CACHE8, QuantizedConfig
from scalingbook_lab.train.expert_exchange import RoutedExperts
from scalingbook_lab.train.trainer import SMALL, SMALL_MOE
from scalingbook_lib import inference, models
from scalingbook_lib.units import BF16, FP32, INT4, INT8

LAYER = replace(models.find("Llama 3 70B"), L=1)
BF = {"dtype": jnp.bfloat16, "cache_dtype": jnp.bfloat16}
WAYS = {
    "heads": {"Y": 8},
    "heads and sequences": {"Z": 2, "Y": 4},
    "heads and tokens": {"C": 2, "Y": 4},
    "heads, sequences and tokens": {"Z": 2, "C": 2, "Y": 2},
    "rows and columns": {"X": 2, "Y": 4},
    "more rows than columns": {"X": 4, "Z": 2},
    "rows and tokens": {"X": 2, "C": 2, "Y": 2},
    "groups": {"A": 8},
    "groups of heads": {"A": 2, "Y": 4},
    "groups of tokens": {"A": 2, "C": 2, "Y": 2},
}


@pytest.mark.parametrize("ways", WAYS)
def test_every_collective_is_predicted_in_kind_axes_count_and_bytes(ways):
    told = serving_step.of(Config(SMALL, WAYS[ways], sequences=16, tokens=32))
    assert len(told.lines) >= 2
    assert not told.differences, str(told)


def test_traffic_of_experts_is_predicted_in_every_group():
    told = serving_step.of(Config(SMALL_MOE, {"A": 4, "Y": 2}, sequences=16, tokens=32))
    assert not told.differences, str(told)


def test_traffic_per_token_does_not_depend_on_the_tokens_per_step():
    config = Config(SMALL, {"Z": 2, "Y": 4}, sequences=16, tokens=32)
    told = serving_step.of(config, T=4)
    assert not told.differences, str(told)


def test_one_device_has_no_collectives():
    assert not serving_step.of(Config(SMALL, {"Y": 1})).lines


# --- TPU slices ------------------------------------------------------------------------------------------


@functools.cache
def sliced(ways, kind=Config, **more):
    """A layer of the 70B model on eight chips, with 32 sequences of 8,192 tokens."""
    return kind(LAYER, WAYS[ways], sequences=32, tokens=8192, topology="v5e:2x4", **BF, **more)


EIGHT = sliced("heads", QuantizedConfig, codec=CACHE8)


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize("ways", ["heads", "heads and sequences", "heads and tokens", "rows and columns"])
def test_a_tpu_slice_runs_the_collectives_that_were_predicted(ways):
    told = serving_step.of(sliced(ways))
    assert not told.differences, str(told)


@pytest.mark.usefixtures("tpu")
def test_known_differences_of_layouts_with_fewer_heads_than_chips():
    wide = Config(LAYER, {"Z": 4, "Y": 4}, sequences=32, tokens=8192, topology="v5e:4x4", **BF)
    told = {line.kind: line for line in serving_step.of(wide).lines}
    assert told["all-to-all"].agrees
    assert told["all-to-all"].compiled_times == 2
    reduced, scattered = told["all-reduce"], told["reduce-scatter"]  # libtpu 0.0.51: keeps a slice of the sum
    assert (scattered.predicted, scattered.compiled) == (reduced.compiled, reduced.predicted)


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize("ways", ["heads", "heads and sequences"])
def test_a_tpu_holds_the_weights_and_the_cache_to_the_byte(ways):
    told = serving_step.held(sliced(ways))
    vectors, tile = 3, 512  # tokens, how many are cached, how many are new: each of 128 lanes of 4 bytes
    assert told.arguments - told.predicted == vectors * tile
    assert told.temporaries < 0.01 * told.arguments


@pytest.mark.usefixtures("tpu")
def test_int8_halves_weights_and_cache_and_adds_scales():
    wide, narrow = serving_step.held(sliced("heads")), serving_step.held(EIGHT)
    assert narrow.weights == pytest.approx(wide.weights / 2, rel=1e-4)  # norms stay wide
    assert narrow.kv == wide.kv / 2
    assert narrow.arguments == pytest.approx(narrow.predicted, rel=1e-4)
    assert narrow.scales < 0.02 * narrow.arguments


@pytest.mark.usefixtures("tpu")
def test_a_70b_model_in_8_bits_serves_47_sequences_of_8k_on_8_chips():
    """The compiler takes all 80 layers with 47 (15.73 of 15.75 GiB), and refuses them with 48."""
    whole = replace(EIGHT, model=models.find("Llama 3 70B"), sequences=48)
    told = serving_step.largest_batch(whole)
    assert told.sequences == 47
    reserve = serving_step.RESERVED / serving_step.machine(whole).chip.hbm_bytes
    planned = inference.largest_batch(
        whole.model, serving_step.plan(whole), serving_step.machine(whole), S=8192, reserve=reserve
    )
    assert planned in (47, 48)  # without scales and temporaries


@pytest.mark.usefixtures("tpu")
def test_a_scan_over_layers_copies_the_cache_and_separate_buffers_do_not():
    two = replace(sliced("heads"), model=replace(LAYER, L=2))
    layers, scan = (decode.program(replace(two, scanned=scanned), greedy=True) for scanned in (False, True))
    cache = 2 * serving_step.held(sliced("heads")).kv
    assert layers.memory.aliased == scan.memory.aliased == cache
    assert layers.memory.temporaries < 0.05 * cache
    assert 1 < scan.memory.temporaries / cache < 1.5  # all of it, and a layer on its way
    assert scan.cycles > 3 * layers.cycles


# --- the cache's layout ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize(
    ("K", "H", "S", "order", "padding"),
    [
        (8, 128, 8192, "BSKH", 1),
        (1, 128, 8192, "BKSH", 1),  # one head a chip: tokens take its place in the tiles
        (8, 64, 8192, "BKHS", 1),  # half a lane of numbers: tokens go on the lanes
        (8, 64, 8200, "BKHS", 8320 / 8200),  # to a multiple of 128 tokens
        (1, 576, 8192, "BKHS", 1),  # the latent vector of DeepSeek-V3
    ],
)
def test_a_cache_is_transposed_before_it_is_padded(K, H, S, order, padding):
    told = cache_layout.row(K, H, S=S)
    assert (told.order, told.padding) == (order, pytest.approx(padding))
    assert told.copied == 0


@pytest.mark.usefixtures("tpu")
def test_a_cache_that_is_not_donated_is_copied_for_every_token():
    given, kept = cache_layout.row(8, 128), cache_layout.row(8, 128, donate=False)
    assert (given.copied, kept.copied) == (0, kept.stored)
    assert kept.cycles > 100 * given.cycles


@pytest.mark.usefixtures("tpu")
def test_an_int8_cache_is_cheaper_only_with_scales_after_the_matmuls():
    def widened(kept):
        k, v, *scales = quantize.decoded(kept)
        return tuple(x.astype(scale.dtype) * scale for x, scale in zip((k, v), scales, strict=True))

    codecs = {"wide": Config.codec, "after": CACHE8, "before": Codec(quantize.encoded, widened)}
    found = {
        name: decode.program(sliced("heads", codec=codec), greedy=True) for name, codec in codecs.items()
    }
    cycles = {name: attention_cycles(program) for name, program in found.items()}
    assert cycles["after"] < 0.75 * cycles["wide"] < cycles["wide"] < cycles["before"]
    assert len({found[name].memory.arguments for name in ("after", "before")}) == 1


def attention_cycles(program):
    """The cycles of the matmuls with keys and with values."""
    return sum(f.cycles for f in program.fusions if "kgh" in f.source or "kgs" in f.source)


# --- experts ---------------------------------------------------------------------------------------------


def test_two_all_to_alls_carry_each_token_to_its_experts_and_back():
    told = RoutedExperts(SMALL_MOE, 8, 32, capacity=2, dtype=FP32)
    assert not told.agreement.differences, str(told.agreement)
    assert [line.kind for line in told.agreement.lines] == ["all-to-all"]
    assert told.padding == 2


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize(("capacity", "padding"), [(4, 1), (None, 4)])
def test_all_to_alls_are_the_same_on_a_tpu_slice(capacity, padding):
    told = RoutedExperts(models.find("Mixtral 8x7B"), 8, 128, capacity=capacity, topology="v5e:2x4")
    assert told.padding == padding
    assert not told.agreement.differences, str(told.agreement)


def test_the_expert_layer_is_exact_with_full_capacity_and_drops_tokens_with_less():
    m, rng = SMALL_MOE, np.random.default_rng(0)
    e = m.experts
    shapes = {"router": (m.D, e.E), "gate": (e.E, m.D, e.F), "up": (e.E, m.D, e.F), "down": (e.E, e.F, m.D)}
    w = {name: (0.1 * rng.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}
    h = rng.standard_normal((32, m.D)).astype(np.float32)
    run = lambda room: RoutedExperts(m, 8, 32, capacity=room, dtype=FP32).program.run(h, *w.values())  # noqa: E731
    share, chosen = jax.lax.top_k(jax.nn.softmax(h @ w["router"]), e.k)
    plain = sum(
        (share[:, i] / share.sum(-1))[:, None] * jnp.stack(
            [(jax.nn.silu(x @ w["gate"][c]) * (x @ w["up"][c])) @ w["down"][c]
             for x, c in zip(h, chosen[:, i], strict=True)])
        for i in range(e.k)
    )  # fmt: skip
    assert np.asarray(run(None)) == pytest.approx(np.asarray(plain), abs=1e-4)
    assert np.abs(np.asarray(run(1)) - plain).max() > 0.01


def test_a_model_without_experts_is_refused():
    with pytest.raises(ValueError, match="has no experts"):
        RoutedExperts(SMALL, 8, 32)
    with pytest.raises(ValueError, match="B = 12 is not divisible by Z = 8"):
        RoutedExperts(SMALL_MOE, 8, 12)


# --- the knee --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("tpu")
def test_the_knee_moves_with_the_types_as_the_formula_says():
    plain, eight, both = (
        knee.knee(weights=w, compute=c) for w, c in ((BF16, BF16), (INT8, BF16), (INT8, INT8))
    )
    assert plain.formula == both.formula == 2 * eight.formula
    assert 0.5 < eight.tokens / plain.tokens < 0.75  # the formula: 1/2; the compiler reads int8 more slowly
    assert both.tokens == pytest.approx(plain.tokens, rel=0.15)
    assert both.cycles_per_token == pytest.approx(plain.cycles_per_token / 2, rel=0.1)
    assert 1 < plain.tokens / plain.formula < 1.3  # it takes the HBM to be slower than documented


@pytest.mark.usefixtures("tpu")
def test_int4_weights_have_a_smaller_critical_batch():
    four, eight = knee.knee(weights=INT4), knee.knee(weights=INT8)
    assert four.formula == eight.formula / 2
    assert 0.5 < four.tokens / eight.tokens < 0.75
    assert (
        knee.program(8, "v5e:1x1", INT4).memory.arguments
        < 0.51 * knee.program(8, "v5e:1x1", INT8).memory.arguments
    )
