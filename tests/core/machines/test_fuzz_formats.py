"""Rounding agrees with ml_dtypes, which JAX uses, for all 8-bit values and random ones."""

import pytest

from scalingbook_lib.machines.formats import BF16_ELEMENT, E2M1, E2M3, E3M2, E4M3, E5M2, FP16_ELEMENT

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")
KINDS = {
    E4M3: "float8_e4m3fn", E5M2: "float8_e5m2", E3M2: "float6_e3m2fn", E2M3: "float6_e2m3fn",
    E2M1: "float4_e2m1fn", BF16_ELEMENT: "bfloat16", FP16_ELEMENT: None,
}  # fmt: skip


@pytest.mark.parametrize(("element", "name"), KINDS.items(), ids=lambda x: getattr(x, "name", ""))
def test_rounding_is_that_of_ml_dtypes(element, name):
    kind = getattr(ml_dtypes, name) if name else np.float16
    draws = np.random.default_rng(0)
    values = (draws.normal(size=2000) * 2.0 ** draws.integers(-9, 2, size=2000)).astype(np.float32)
    values = np.clip(values, -element.largest, element.largest)
    assert [element.nearest(float(x)) for x in values] == values.astype(kind).astype(np.float64).tolist()
    if element.bits <= 8:
        marks = np.array(element.positive_values)
        assert marks.astype(kind).astype(np.float64).tolist() == marks.tolist()
