"""Ridges and critical batches: what the chapters print, and where their rules of thumb are off."""

import math
from dataclasses import replace

import pytest

from scalingbook_lib import roofline, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import H100, TPU7X, V4, V5E, V5P, V6E
from scalingbook_lib.units import FP8, FP32, INT4, INT8


def with_hbm(chip, bytes_per_s):
    return replace(chip, name=f"{chip.name}, HBM as printed elsewhere", hbm_bytes_per_s=bytes_per_s)


@pytest.mark.parametrize(
    ("chip", "bf16", "dtype", "eight_bit"),
    [
        (chips.V2, 66, None, None),
        (chips.V3, 137, None, None),
        (V4, 229, INT8, 229),
        (V5E, 240.5, INT8, 481),
        (V5P, 166, INT8, 332),
        (V6E, 560, INT8, 1121),
        (TPU7X, 313, FP8, 626),
        (chips.A100, 153, INT8, 306),
        (H100, 295, FP8, 591),
        (chips.H200, 206, FP8, 412),
        (chips.B200, 281, FP8, 562),
        (chips.B300, 281, FP8, 562),
        (chips.GB200, 312.5, FP8, 625),
        (chips.GB300, 312.5, FP8, 625),
        (chips.MI300X, 246.6, None, None),
        (chips.MI355X, 312.5, FP8, 625),
    ],
)
def test_published_ridges(chip, bf16, dtype, eight_bit):
    """C/W from HBM as vendors' figures give it; 8-bit doubles it, but on v4, whose int8 is no faster."""
    assert rules.ridge(chip) == pytest.approx(bf16, abs=0.5)
    if dtype:
        assert rules.ridge(chip, dtype) == pytest.approx(eight_bit, abs=0.6)
        twice = 1 if chip is V4 else 2
        assert rules.ridge(chip, dtype) / rules.ridge(chip) == pytest.approx(twice, rel=1e-3)


@pytest.mark.parametrize(
    ("D", "F", "bf16", "int8_weights"),
    [
        (512, 512, 3982, 1991),
        (1024, 1024, 453.6, 226.8),
        (2048, 2048, 314.4, 157.2),
        (4096, 4096, 272.5, 136.3),
        (8192, 8192, 255.5, 127.8),
        (8192, 32768, 249.7, 124.9),
    ],
)
def test_240_tokens_is_the_limit_of_wide_layers(D, F, bf16, int8_weights):
    assert rules.matmul_critical_batch(D, F, V5E) == pytest.approx(bf16, rel=1e-3)
    assert rules.matmul_critical_batch(D, F, V5E, weights=INT8) == pytest.approx(int8_weights, rel=1e-3)


def test_the_same_with_the_reference_s_bandwidth():
    """Its 8.2e11 bytes/s make it 453, 314, 272 and 255."""
    older = with_hbm(V5E, 8.2e11)
    published = [round(rules.matmul_critical_batch(D, D, older)) for D in (1024, 2048, 4096, 8192)]
    assert published == [453, 314, 272, 255]


@pytest.mark.parametrize(("width", "enough"), [(480, False), (481, False), (482, True), (512, True)])
def test_for_narrow_layers_no_batch_is_enough(width, enough):
    assert math.isfinite(rules.matmul_critical_batch(width, width, V5E)) is enough
    assert (width > rules.memory_bound_width(V5E)) is enough
    assert (roofline.matmul(10**9, width, width, V5E).bound == "compute-bound") is enough


def test_hopeless_widths_of_v6e():
    assert rules.memory_bound_width(V6E) == pytest.approx(1120.9, abs=0.1)


@pytest.mark.parametrize(
    ("storage", "share"),
    [
        ({}, 1),
        ({"weights": INT8}, 1 / 2),
        ({"weights": INT4}, 1 / 4),
        ({"weights": FP32}, 2),
        ({"dtype": INT8}, 1),  # half the bytes, twice the rate
    ],
)
def test_rules_of_thumb_by_storage(storage, share):
    rule = roofline.rule_of_thumb_batch(2**30, 2**30, V5E, **storage)
    assert rule.batch == pytest.approx(240.54 * share, rel=1e-4)
    assert rule.error == pytest.approx(0, abs=1e-5)


def test_a_rule_of_thumb_carries_its_error():
    rule = roofline.rule_of_thumb_batch(1024, 1024, V5E)
    assert (rule.batch, rule.exact) == (pytest.approx(240.5, abs=0.1), pytest.approx(453.6, abs=0.1))
    assert rule.error == pytest.approx(-0.47, abs=0.001)
    assert str(rule) == "the rule says 241 tokens, the exact batch is 454: the rule is 47% too low"


def test_a_rule_of_thumb_where_no_batch_is_enough():
    rule = roofline.rule_of_thumb_batch(400, 400, V5E)
    assert (rule.exact, rule.error) == (math.inf, -1)
    assert str(rule) == "the rule says 241 tokens, but no batch is large enough for this layer"


@pytest.mark.parametrize(("bytes_per_s", "published"), [(8.1e11, 262.7), (8.2e11, 259.3)])
def test_int8_matmul_of_the_tpu_chapter(bytes_per_s, published):
    """int8[B, 4096] · int8[4096, 16384]; the reference prints 271 and 267, which its rounding made."""
    assert rules.matmul_critical_batch(4096, 16384, with_hbm(V5E, bytes_per_s), INT8) == pytest.approx(
        published, abs=0.05
    )


def test_the_same_matmul_out_of_vmem():
    batch = rules.matmul_critical_batch(4096, 16384, V5E, INT8, bytes_per_s=22 * 8.1e11)
    assert batch == pytest.approx(11.1, abs=0.05)


def test_weights_and_activations_over_pcie_are_never_worth_the_chip():
    """Worked problem of the TPU chapter, whose published answer of 57,500 assumes B far below D."""
    over_pcie = {"bytes_per_s": V6E.pcie_bytes_per_s}
    assert rules.ridge(V6E, **over_pcie) == pytest.approx(28_688, abs=1)
    assert rules.matmul_critical_batch(8192, 4 * 8192, V6E, **over_pcie) == math.inf
    assert rules.matmul_critical_batch(35_900, 4 * 35_900, V6E, **over_pcie) > 1e7
    assert rules.matmul_critical_batch(35_800, 4 * 35_800, V6E, **over_pcie) == math.inf
