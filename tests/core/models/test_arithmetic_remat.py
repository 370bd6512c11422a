"""Saved activations and recomputed FLOPs of a layer under each checkpointing policy."""

from dataclasses import replace

import pytest

from scalingbook_lib import models
from scalingbook_lib.models import Transformer, arithmetic

TINY = Transformer(name="tiny", D=64, L=3, V=512, N=8, K=2, H=16, F=96)
FOUR = Transformer(name="F = 4D", D=4096, F=16384, L=2, N=32, K=32, H=128, V=32000)


@pytest.mark.parametrize(
    ("policy", "units"), [("full", 1), ("dots_no_batch", 13), ("dots", 14 + 8), ("all", 38 + 3 * 8)]
)
def test_saved_activations_per_layer_match_hand_counts(policy, units):
    kept = arithmetic.activations(FOUR, 8, 1024, policy)
    assert kept.units == pytest.approx(units, abs=0.05)
    assert kept.nbytes == pytest.approx(2 * 8 * 1024 * 4096 * 2 * kept.units)
    assert sum(term.value for term in kept.terms) == kept.total


@pytest.mark.parametrize("model", [TINY, *(m for m in models.CATALOG if not m.linear)], ids=lambda m: m.name)
def test_saving_fewer_activations_costs_more_flops(model):
    by = {p: arithmetic.activations(model, 1, 512, p) for p in arithmetic.POLICIES}
    assert by["all"].nbytes > by["dots"].nbytes > by["dots_no_batch"].nbytes > by["full"].nbytes
    assert by["all"].extra_flops == by["dots"].extra_flops == 0
    f = arithmetic.flops(model, 1, 512)
    assert by["dots_no_batch"].extra_flops == f.attention < by["full"].extra_flops
    assert by["full"].extra_flops <= f.total - f["unembedding"]  # equal where every layer ends in experts


def test_saved_activations_print_as_one_line():
    assert str(arithmetic.activations(FOUR, 1, 1024, "full")).startswith("full: 16.8 MB, 1 arrays")


def test_flash_attention_saves_no_scores_and_recomputes_them():
    plain, flash = (arithmetic.activations(FOUR, 1, 8192, "all", flash=f) for f in (False, True))
    assert "probabilities" not in flash.names
    assert plain.units - flash.units == pytest.approx(3 * 32 * 8192 / 4096, abs=0.05)
    assert flash.extra_flops == arithmetic.flops(FOUR, 1, 8192)["scores"]


def test_full_recomputation_costs_all_matmuls_but_the_last():
    kept = arithmetic.activations(TINY, 2, 64, "full")
    down = 2 * 2 * 64 * TINY.D * TINY.F * TINY.L
    f = arithmetic.flops(TINY, 2, 64)
    assert kept.extra_flops == f.total - f["unembedding"] - down


def test_saving_the_textbook_s_matmuls_costs_six_percent_recomputation():
    m = Transformer(name="one", D=8192, F=32768, L=1, N=64, K=64, H=128, V=1)
    kept = arithmetic.activations(m, 1, 4096, "dots_no_batch")
    layer = arithmetic.flops(m, 1, 4096).total - arithmetic.flops(m, 1, 4096)["unembedding"]
    assert kept.extra_flops / layer == pytest.approx(4 * 4096 / (32 * 8192 + 4 * 4096))


def test_activations_of_linear_attention_are_products_convolution_and_result():
    linear = models.Linear(k_heads=2, v_heads=4, key=8, value=8, conv=4, every=3)
    m = replace(TINY, linear=linear)
    q, v, heads = 2 * 8, 4 * 8, 4
    # queries, keys, values, gate, beta, decay; their convolution; the result, plain and gated
    each = (2 * q + 2 * v + 2 * heads) + (2 * q + v) + 2 * v
    kept = arithmetic.activations(m, 1, 8)
    assert kept["recurrences"] == 8 * 2 * (m.L - m.softmax_layers) * each
    assert kept["values"] == 8 * 2 * m.softmax_layers * m.K * m.H


def test_an_unknown_policy_lists_the_known_ones():
    with pytest.raises(ValueError, match="dots_no_batch"):
        arithmetic.activations(TINY, 1, 8, "some")  # type: ignore[arg-type]
