"""A result prints as one line of named terms with units, and a debugger still shows its fields."""

from dataclasses import dataclass

import pytest

from scalingbook_lib import roofline
from scalingbook_lib.machines import chips
from scalingbook_lib.units import Result, term


@dataclass(frozen=True, slots=True)
class Distance(Result):
    metres: float

    def __str__(self):
        return f"{self.metres} metres"


class Printer:
    """The one method of IPython's pretty printer that a result uses."""

    def __init__(self):
        self.written = ""

    def text(self, words):
        self.written += words


def test_a_notebook_shows_str_of_a_result():
    Distance(3)._repr_pretty_(printer := Printer(), cycle=False)
    assert printer.written == "3 metres"


def test_a_dataclass_repr_does_not_come_before_the_sentence():
    """IPython walks the classes and takes the first that has either method in its own dictionary."""
    first = next(c for c in Distance.__mro__ if {"__repr__", "_repr_pretty_"} & vars(c).keys())
    assert "_repr_pretty_" in vars(first)


def test_a_result_that_contains_itself_prints_its_class_name():
    Distance(3)._repr_pretty_(printer := Printer(), cycle=True)
    assert printer.written == "Distance"


def test_a_debugger_shows_the_fields():
    assert repr(Distance(3)) == "Distance(metres=3)"


def test_a_result_has_no_attributes_besides_its_fields():
    with pytest.raises((AttributeError, TypeError)):
        object.__setattr__(Distance(3), "feet", 10)


@pytest.mark.parametrize(
    "result",
    [
        chips.V5E,
        chips.Slice.of(chips.V5P, "4x4x8"),
        chips.Slice.of(chips.V5E, "4x8").mesh(X=4, Y=8),
        roofline.matmul(64, 8192, 8192, chips.V5E),
        roofline.rule_of_thumb_batch(1024, 1024, chips.V5E),
        roofline.tiled_matmul(64, 64, 64, chips.V5E, rows=8, columns=8, depth=8),
        roofline.ladder(1e12, {"HBM": 1e9}, chips.V5E),
    ],
    ids=lambda result: type(result).__name__,
)
def test_every_result_prints_as_one_line(result):
    assert isinstance(result, Result)
    assert "\n" not in str(result)
    assert str(result) != repr(result)


@dataclass(frozen=True, slots=True)
class Timed(Result):
    name: str
    latency_s: float
    hops: int
    line = "total_s", "hops"

    @property
    def total_s(self):
        return 2 * self.latency_s


def test_a_result_prints_its_name_and_its_terms_with_their_units():
    assert str(Timed("AllGather", 1.5e-6, 4)) == "AllGather: total 3 µs, hops 4"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("hbm_bytes_per_s", 8.2e11, "HBM 820 GB/s"),
        ("read_bytes", 16e9, "read 16 GB"),
        ("math_share", 0.256, "math 26%"),
        ("bytes", 2e9, "bytes 2 GB"),
        ("tokens", 4096, "tokens 4,096"),
    ],
)
def test_a_term_takes_its_unit_from_the_end_of_its_name(name, value, text):
    assert term(name, value) == text
