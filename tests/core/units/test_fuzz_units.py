"""`parse` returns a number or raises ValueError for any text, and reads back what the formatters write."""

import contextlib
import math

import pytest

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from scalingbook_lib.units import Quantity, binary, parse, si  # noqa: E402

NUMBERISH = st.text(st.sampled_from("0123456789.,_-+eE^*×·x/ µμkKMGTPiBbs%⁻⁰²⁹FLOPstoken"), max_size=20)
SIZES = st.floats(1e-9, 1e18, allow_nan=False)


@given(st.one_of(NUMBERISH, st.text(max_size=30)))
def test_nothing_but_value_error_escapes(text):
    with contextlib.suppress(ValueError):
        quantity = parse(text)
        assert isinstance(quantity, Quantity)
        assert math.isfinite(quantity.value)


@given(SIZES, st.sampled_from(["s", "B", "B/s", "FLOP/s", "tokens"]))
def test_what_si_writes_is_read_back_to_its_figures(value, unit):
    assert parse(si(value, unit)) == Quantity(pytest.approx(value, rel=5.1e-3), unit)


@given(st.floats(1e-3, 1e24))
def test_what_binary_writes_is_read_back_to_its_figures(nbytes):
    assert parse(binary(nbytes)) == Quantity(pytest.approx(nbytes, rel=6e-4), "B")


@given(SIZES)
def test_si_never_writes_a_thousand_of_a_prefix_below_the_largest(value):
    number, unit = si(value, "s").split()
    assert float(number.replace(",", "")) < 1000 or unit == "days"
