"""Views and panels refuse what cannot be drawn, and scales have round ticks."""

import math

import pytest

from scalingbook_book.reader.explorers import scales
from scalingbook_book.reader.explorers.view import (  # fmt: skip
    Band,
    Bars,
    Cell,
    Chart,
    Curve,
    Grid,
    Link,
    Network,
    Node,
    Points,
    Readout,
    RefLine,
    Regions,
    Scale,
    Series,
    Span,
    Timeline,
    View,
    colored,
)

LINE = Curve("line", [1, 2], [1, 2])


def chart(*marks, x=None, y=None):
    return Chart(x or Scale("x"), y or Scale("y"), marks)


REFUSED = {
    "150 xs but 149 ys": lambda: Curve("c", [1] * 150, [1] * 149),
    "2 xs but 1 labels": lambda: Points("p", [1, 2], [1, 2], ["one"]),
    "2 xs but 2 low but 1 high": lambda: Band("b", [1, 2], [1, 2], [1]),
    "'z' is not an axis": lambda: RefLine("r", 1, axis="z"),
    "'cubic' is not a scale": lambda: Scale("x", scale="cubic"),
    "a log axis cannot reach 0": lambda: Scale("x", scale="log", low=0),
    "cannot end at inf": lambda: Scale("x", high=math.inf),
    "low 5 is not below high 5": lambda: Scale("x", low=5, high=5),
    "nothing to draw": lambda: chart(),
    "-2 has no place on a log axis": lambda: chart(
        Curve("c", [1, 2, 3], [math.nan, -2, 3]), y=Scale("y", "", "log")
    ),
    "0 has no place on a pow2 axis": lambda: chart(RefLine("r", 0), LINE, x=Scale("x", "", "pow2")),
    "no data and no ends": lambda: chart(Curve("c", [math.nan], [1])).ranges(),
    "2 rows of 1 cells": lambda: Regions(("a",), [1, 2], [1, 2, 3], [[0]]),
    "a cell names region 1": lambda: Regions(("a",), [1, 2], [1, 2], [[1]]),
    "at least one label and one series": lambda: Bars(Scale("t"), (), ()),
    "a bar needs a value of 0 or more": lambda: Bars(Scale("t"), ("a",), (Series("s", [-1]),)),
    "1 labels but 2 values": lambda: Bars(Scale("t"), ("a",), (Series("s", [1, 2]),)),
    "lengths do not add up on a log axis": lambda: Bars(
        Scale("t", "", "log"), ("a",), (Series("s", [1]),), stacked=True
    ),
    "every row needs the same number": lambda: Grid("g", (), (), [[Cell()], [Cell(), Cell()]]),
    "1 column labels for 2 columns": lambda: Grid("g", (), ("a",), [[Cell(), Cell()]]),
    "no lane 'b'": lambda: Timeline(("a",), (Span("b", 0, 1),)),
    "2 to 1 is not an interval": lambda: Span("a", 2, 1),
    "there are nodes 0 to 0": lambda: Network([Node("n", 0, 0)], [Link(0, 1)]),
    "x and y go from 0 to 1": lambda: Network([Node("n", 2, 0)]),
    "needs a verdict": lambda: View("", ()),
    "at least one frame": lambda: View("v", (), frames=0),
    "one or two columns, not 1 and 3": lambda: View("v", (), columns=3),
}


@pytest.mark.parametrize("says", REFUSED)
def test_what_cannot_be_drawn_is_refused_with_a_sentence(says):
    with pytest.raises(ValueError, match=says.replace("(", r"\(")):
        REFUSED[says]()


def test_an_axis_spans_its_data_and_keeps_the_ends_it_was_given():
    (x0, x1), (y0, y1) = chart(Curve("c", [5, 9], [2, 4])).ranges()
    assert (x0, x1) == (5, 9)
    assert y0 == 0
    assert 4 < y1 < 4.5
    fixed = chart(Curve("c", [5, 9], [2, 4]), x=Scale("x", low=0, high=100), y=Scale("y", low=1))
    assert fixed.ranges()[0] == (0, 100)
    assert fixed.ranges()[1][0] == 1


@pytest.mark.parametrize("kind", scales.KINDS)
def test_an_axis_of_one_value_still_has_two_ends(kind):
    for ends in ({}, {"low": 8}, {"high": 8}):
        low, high = Scale("x", "", kind, **ends).span([[8, 8]], upright=False)
        assert low < high
        assert low <= 8 <= high


def test_the_shortest_bar_is_seen_on_an_axis_without_a_zero():
    bars = Bars(Scale("t", scale="log"), ("a", "b", "none"), (Series("s", [3, 800, 0]),))
    assert bars.range()[0] == pytest.approx(0.3)
    assert bars.range()[1] >= 800


def test_colors_cycle_in_order_and_reference_lines_take_none():
    marks = colored(chart(LINE, RefLine("r", 1), Curve("own", [1], [1], color=4), Curve("next", [1], [1])))
    assert [c for m, c in marks if not isinstance(m, RefLine)] == [0, 4, 1]


def test_views_of_equal_values_are_equal():
    make = lambda: View("v", (chart(Curve("c", [1, 2], [3, 4])),), (Readout("r", 1.5, "s"),))  # noqa: E731
    assert make() == make()


@pytest.mark.parametrize(
    ("value", "unit", "kind", "text"),
    [
        (4.36e-5, "s", "linear", "43.6 µs"),
        (8192, "tokens", "log", "8,192 tokens"),
        (2**34, "B", "pow2", "16 GiB"),
        (1.6e10, "B", "linear", "16 GB"),
        (240, "FLOPs/byte", "linear", "240 FLOPs/byte"),
        (1.97e14, "FLOPs/s", "linear", "197 TFLOPs/s"),
        (7, "", "linear", "7"),
        (math.inf, "tokens", "linear", "inf tokens"),
        (1.5, "×", "linear", "1.5×"),
    ],
)
def test_values_are_written_with_their_units(value, unit, kind, text):
    assert scales.written(value, unit, kind=kind) == text


def test_a_readout_is_its_number_unless_it_has_words():
    assert str(Readout("time", 1.66e-4, "s")) == "166 µs"
    assert str(Readout("share", 0.27, text="27%")) == "27%"


SPANS = [(1, 1e4), (1e9, 1e15), (20, 300), (1e-7, 1e-3), (3, 4), (1, 2**20), (0.5, 0.501), (2.7e8, 5.2e13)]


@pytest.mark.parametrize("kind", scales.KINDS)
@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("most", [3, 5, 9])
def test_ticks_are_round_few_and_within_the_axis(kind, span, most):
    ticks = scales.ticks(kind, *span, most)
    assert len(ticks) <= most + (kind == "linear")
    assert ticks == sorted(set(ticks))
    assert all(span[0] * (1 - 1e-6) <= t <= span[1] * (1 + 1e-6) for t in ticks)
    if kind == "linear":
        assert len(ticks) >= 2
    if kind == "log" and span[1] >= 1000 * span[0]:
        assert ticks == [10.0 ** round(math.log10(t)) for t in ticks] != []
    texts, _ = scales.tick_texts(ticks, kind, "s")
    assert len(texts) == len(ticks)


def test_decades_are_written_with_prefixes():
    assert scales.tick_texts([1e12, 1e13, 1e15], "log", "FLOPs/s") == (
        ["1\u202fT", "10\u202fT", "1\u202fP"],
        "FLOPs/s",
    )
    assert scales.tick_texts([1e-6, 1e-3], "log", "s") == (["1 µs", "1 ms"], "")
    assert scales.tick_texts([0, 5e-3, 1e-2], "linear", "s") == (["0", "5", "10"], "ms")
    assert scales.tick_texts([1, 1024], "pow2", "tokens") == (["1", "1,024"], "tokens")
    assert scales.tick_texts([1024, 2**20], "pow2", "tokens") == (["1 Ki", "1 Mi"], "tokens")


@pytest.mark.parametrize("kind", scales.KINDS)
def test_projection_puts_the_ends_at_the_ends(kind):
    project = scales.project(kind, 2, 512, 40, 600)
    assert project([2, 512]) == pytest.approx([40, 600])
    middle = 257 if kind == "linear" else 32
    assert project([middle]) == pytest.approx([320])
