"""Laws that hold for every size, chip and data type."""

import math

import pytest

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import assume, given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from scalingbook_lib import roofline, rules  # noqa: E402, rules
from scalingbook_lib.machines.chips import CATALOG  # noqa: E402
from scalingbook_lib.units import BF16, DTYPES  # noqa: E402

SIZE = st.integers(1, 2**17)
CHIP = st.sampled_from([chip for chip in CATALOG.values() if "bf16" in chip.rates()])
STORED = st.sampled_from(list(DTYPES.values()))


@given(SIZE, SIZE, SIZE, CHIP, STORED, STORED, STORED)
def test_between_the_longest_term_and_twice_it(B, D, F, chip, dtype, weights, out):
    result = roofline.matmul(B, D, F, chip, dtype, weights=weights, out=out, maths=BF16)
    assert max(result.math_s, result.memory_s) == result.lower_s <= result.upper_s <= 2 * result.lower_s
    assert result.attained_fraction == pytest.approx(min(1, result.intensity / result.ridge))
    assert result.attained_flops_per_s <= chip.bf16_flops_per_s * (1 + 1e-12)
    assert roofline.attainable(result.intensity, chip) == pytest.approx(result.attained_flops_per_s)


@given(SIZE, SIZE, SIZE, CHIP)
def test_intensity_is_harmonic_and_below_every_side(B, D, F, chip):
    intensity = roofline.matmul(B, D, F, chip).intensity
    assert 1 / intensity == pytest.approx(1 / B + 1 / D + 1 / F)
    assert intensity < min(B, D, F)


@given(SIZE, SIZE, CHIP, STORED, STORED, STORED)
def test_the_break_even_batch_is_where_the_bound_turns(D, F, chip, dtype, weights, out):
    storage = {"weights": weights, "out": out, "maths": BF16}
    batch = rules.matmul_critical_batch(D, F, chip, dtype, **storage)
    assume(batch < 1e12)
    above, below = math.floor(batch * (1 + 1e-9)) + 1, math.ceil(batch * (1 - 1e-9)) - 1
    assert roofline.matmul(above, D, F, chip, dtype, **storage).bound == "compute-bound"
    if below >= 1:
        assert roofline.matmul(below, D, F, chip, dtype, **storage).bound == "memory-bound"


@given(SIZE, SIZE, CHIP, STORED)
def test_no_batch_is_enough_means_none(D, F, chip, weights):
    hopeless = rules.matmul_critical_batch(D, F, chip, weights=weights) == math.inf
    assert hopeless == (roofline.matmul(10**15, D, F, chip, weights=weights).bound == "memory-bound")


@given(SIZE, SIZE, CHIP, STORED)
def test_the_rule_of_thumb_never_asks_for_too_much(D, F, chip, weights):
    rule = roofline.rule_of_thumb_batch(D, F, chip, weights=weights)
    assert rule.batch <= rule.exact
    assert -1 <= rule.error <= 0


@given(SIZE, SIZE, SIZE, st.integers(1, 512), st.integers(1, 512), st.integers(1, 512))
def test_tiles_never_read_less_than_once(B, D, F, rows, columns, depth):
    chip = CATALOG["TPU v5e"]
    tiled = roofline.tiled_matmul(
        B, D, F, chip, rows=min(rows, B), columns=min(columns, F), depth=min(depth, D)
    )
    assert tiled.roofline.bytes >= roofline.matmul(B, D, F, chip).bytes
    assert tiled.roofline.flops == 2 * B * D * F


@given(st.floats(0, 10), st.floats(0, 10), st.integers(1, 1000))
def test_more_chunks_are_never_slower_nor_faster_than_the_longer_term(math_s, comms_s, chunks):
    now, finer = (roofline.pipelined(math_s, comms_s, n) for n in (chunks, chunks + 1))
    assert max(math_s, comms_s) - 1e-9 <= finer <= now + 1e-9 <= math_s + comms_s + 1e-6
