"""Low-precision formats follow their standards, and their rounding errors match published values."""

from itertools import pairwise
from math import sqrt
from random import Random

import pytest

from scalingbook_lib import units
from scalingbook_lib.machines import chips, formats
from scalingbook_lib.machines.formats import (
    BF16_ELEMENT,
    E2M1,
    E4M3,
    E5M2,
    ELEMENTS,
    FORMATS,
    FP16_ELEMENT,
    INT8_ELEMENT,
    MXFP4,
    NVFP4,
    Format,
)
from scalingbook_lib.units import BF16, FP4, FP8, INT8

approx = pytest.approx
CHANCE = Random(0)
NORMAL = [CHANCE.gauss(0, 1) for _ in range(4096)]
NARROW = [e for e in ELEMENTS.values() if e.bits <= 8]


@pytest.mark.parametrize(
    ("element", "numbers", "largest", "smallest"),
    [(E4M3, 253, 448, 2**-9), (E5M2, 247, 57_344, 2**-16), (E2M1, 15, 6, 0.5), (INT8_ELEMENT, 255, 127, 1)],
    ids=lambda x: getattr(x, "name", ""),
)
def test_the_values_of_each_format_are_those_of_its_standard(element, numbers, largest, smallest):
    assert (element.numbers, element.positive_values[-1], element.positive_values[0]) == (
        numbers,
        largest,
        smallest,
    )


def test_four_bits_are_seven_numbers_and_their_negatives():
    assert E2M1.positive_values == (0.5, 1, 1.5, 2, 3, 4, 6)


@pytest.mark.parametrize("element", NARROW, ids=lambda e: e.name)
def test_representable_values_round_to_themselves_and_others_to_the_nearest(element):
    assert all(element.nearest(s * x) == s * x for x in element.positive_values for s in (1, -1))
    for a, b in pairwise(element.positive_values):
        assert element.nearest(0.75 * a + 0.25 * b) == a
        assert element.nearest(0.25 * a + 0.75 * b) == b
        assert element.nearest((a + b) / 2) in (a, b)
    assert element.nearest(10 * element.largest) == element.largest


def test_a_format_of_too_many_numbers_lists_none():
    with pytest.raises(ValueError, match="bf16 has too many values to list; use `ulp`"):
        BF16_ELEMENT.numbers


@pytest.mark.parametrize(
    ("name", "nbytes"),
    [
        ("MXFP8", 33 / 32),
        ("MXFP6", 0.78125),
        ("MXFP4", 0.53125),
        ("NVFP4", 0.5625),
        ("fp8 1x128", 1.03125),
        ("fp8 128x128", 1 + 4 / 16_384),
        ("int8 by 256", 1.015625),
    ],
)
def test_scales_have_bytes(name, nbytes):
    assert FORMATS[name].bytes == FORMATS[name].dtype.bytes == nbytes
    assert f"{nbytes:.7g} bytes" in str(FORMATS[name])


@pytest.mark.parametrize(
    ("element", "error"), [(BF16_ELEMENT, 0.0017), (E4M3, 0.026), (E5M2, 0.053), (E2M1, 0.117)]
)
def test_the_relative_error_of_a_float_does_not_depend_on_its_scale(element, error):
    for scale in (1, 1000):
        values = [scale * x for x in NORMAL]
        assert formats.relative_rms_error(
            values, Format(name="", element=element).quantized(values)
        ) == approx(error, rel=0.04)


def test_one_outlier_hurts_integers_and_four_bit_formats_but_not_eight_bit_floats():
    spoiled = [1e4, *NORMAL]

    def rest(one):
        return formats.relative_rms_error(NORMAL, one.quantized(spoiled)[1:])

    whole = {e.name: Format(name="", element=e) for e in (E4M3, INT8_ELEMENT, E2M1)}
    assert rest(whole["E4M3"]) == approx(0.027, abs=0.001)
    assert rest(whole["int8"]) == rest(whole["E2M1"]) == 1
    assert rest(NVFP4) < rest(MXFP4) < 0.16


def test_zeros_and_empty_lists_are_unchanged():
    assert NVFP4.quantized([0.0] * 40) == [0.0] * 40
    assert MXFP4.quantized([]) == []


def test_a_power_of_two_scale_saturates_values_beyond_the_range():
    assert MXFP4.quantized([7.9, 1.0]) == [6, 1]  # 2^2 is in the last binade, so the scale is 1
    assert NVFP4.quantized([7.9, 0.0])[0] == approx(7.9)


def test_small_updates_are_lost_by_nearest_and_kept_by_stochastic_rounding():
    assert formats.accumulate(BF16_ELEMENT, 1.0, -1e-4, 1000)[-1] == 1.0
    ends = [formats.accumulate(BF16_ELEMENT, 1.0, -1e-4, 1000, Random(seed))[-1] for seed in range(20)]
    assert sum(ends) / 20 == approx(0.9, abs=3 * 0.019 / sqrt(20))


@pytest.mark.parametrize(("element", "stops"), [(BF16_ELEMENT, 256), (FP16_ELEMENT, 2048), (E4M3, 16)])
def test_a_sum_of_ones_stops_growing_where_the_ulp_is_two(element, stops):
    assert formats.accumulate(element, 0.0, 1.0, 3000)[-1] == stops
    assert element.ulp(stops) == 2


@pytest.mark.parametrize(
    ("chip", "computes"),
    [("v5e", (INT8,)), ("v5p", (INT8,)), ("TPU7x", (FP8,)), ("H100", (FP8, INT8)), ("B300", (FP8, FP4))],
)
def test_what_is_only_stored_is_computed_in_bf16(chip, computes):
    on = chips.find(chip)
    for dtype in (FP8, INT8, FP4):
        assert formats.compute_dtype(on, dtype) == (dtype if dtype in computes else BF16)


@pytest.mark.parametrize("stored", [units.MXFP8, units.MXFP4, units.NVFP4], ids=str)
def test_block_scaled_types_take_the_bytes_of_their_format_and_multiply_as_their_elements(stored):
    assert stored.bytes == FORMATS[stored.name.upper()].bytes
    element = units.matrix_unit_dtype(stored)
    assert element is units.DTYPES[stored.multiplied]
    assert chips.B200.flops_per_s(stored) == chips.B200.flops_per_s(element)
    with pytest.raises(ValueError, match=f"no {element} rate of V100 is known"):
        chips.V100.flops_per_s(stored)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("bfloat16", "bf16"), ("torch.bfloat16", "bf16"), ("BF-16", "bf16"), ("float16", "fp16"),
        ("half", "fp16"), ("jnp.float32", "fp32"), ("fp8_e4m3", "fp8"), ("float8_e4m3fn", "fp8"),
        ("f8e5m2", "fp8"), ("mxfp4", "mxfp4"), ("NVFP4", "nvfp4"), ("int4", "int4"), ("w8a8", "int8"),
    ],
)  # fmt: skip
def test_types_are_read_as_frameworks_and_checkpoints_write_them(written, name):
    assert units.dtype(written) is units.STORED[name]


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("float64", "the widest is fp32"),
        ("tf32", "tf32 is fp32 in memory, and no rate in tf32 is known here"),
        ("Q4_K_M", "int4 (scales not counted) or nvfp4"),
        ("fp8_e3m4", "write one of fp32, bf16"),
        ("", "write one of fp32, bf16"),
    ],
)
def test_another_type_is_refused_with_the_nearest_by_meaning(written, hint):
    with pytest.raises(ValueError, match=f"^'{written}' is not a data type here") as refused:
        units.dtype(written)
    assert hint in str(refused.value)
