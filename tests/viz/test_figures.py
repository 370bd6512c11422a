"""The kernel's pictures hold the view's data, to the number."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
sys.path.insert(0, str(Path(__file__).parents[1] / "core"))

from gallery import PANELS

from scalingbook_lib.chapters.explorers import find
from scalingbook_lib.reader.explorers.view import Curve, Points, Span, Timeline, View
from scalingbook_lib.viz import figures, style


def axes(*names, columns=1):
    fig = figures.draw(View("v", [PANELS[n] for n in names], columns=columns))
    fig.canvas.draw()
    return fig.axes


@pytest.mark.parametrize("name", PANELS)
def test_every_panel_is_drawn_with_its_title(name):
    (ax,) = axes(name)
    assert ax.get_title(loc="left") == PANELS[name].title
    assert ax.has_data() or ax.patches


@pytest.mark.parametrize("name", ["chart", "log"])
def test_lines_hold_the_data_of_curves_and_points(name):
    panel = PANELS[name]
    (ax,) = axes(name)
    drawn = {line.get_label(): line for line in ax.lines}
    for mark in panel.marks:
        if isinstance(mark, Curve | Points):
            assert list(drawn[mark.label].get_xdata()) == list(mark.xs)
            assert list(drawn[mark.label].get_ydata()) == pytest.approx(list(mark.ys), nan_ok=True)
    assert (ax.get_xlim(), ax.get_ylim()) == tuple(map(pytest.approx, panel.ranges()))
    assert ax.get_xscale() == ("linear" if panel.x.scale == "linear" else "log")


def test_bars_are_as_long_as_their_values():
    (ax,) = axes("grouped")
    widths = [[bar.get_width() for bar in group] for group in ax.containers]
    assert widths == [list(s.values) for s in PANELS["grouped"].series]


def test_stacked_bars_begin_where_the_one_before_ends():
    (ax,) = axes("stacked")
    first, second = ax.containers
    assert [b.get_x() for b in second] == pytest.approx([b.get_width() for b in first])


def test_spans_last_as_long_as_they_do():
    (ax,) = axes("timeline")
    spans = [v for group in ax.containers for b in group for v in (b.get_x(), b.get_x() + b.get_width())]
    assert spans == pytest.approx([v for s in PANELS["timeline"].spans for v in (s.start, s.end)])


def test_a_label_that_does_not_fit_its_span_is_left_out():
    spans = Span("a", 0, 9, "long enough"), Span("a", 9, 9.2, "too long"), Span("a", 9.2, 10)
    ax = figures.draw(View("v", [Timeline(("a",), spans)])).axes[0]
    assert [text.get_text() for text in ax.texts] == ["long enough"]


def test_ticks_are_those_of_the_page():
    (ax,) = axes("log")
    assert [t.get_text() for t in ax.get_yticklabels()] == ["1\u202fT", "10\u202fT", "100\u202fT", "1\u202fP"]
    assert ax.get_xlabel() == "intensity (FLOPs/byte)"


def test_panels_stand_in_the_columns_of_the_view():
    assert len(axes("chart", "log", "grid", columns=2)) == 4
    assert len(axes("chart", "log")) == 2


def test_the_roof_is_flat_at_peak():
    roof = figures.draw(find("rooflines.roofline").evaluate()).axes[0].lines[0]
    assert roof.get_ydata()[-1] == 1.97e14


def test_the_style_leaves_matplotlib_as_it_was():
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    axes("chart")
    assert dict(mpl.rcParams) == before
    assert style.color(7) == style.color(1)


def test_devices_are_smaller_where_they_stand_close():
    side = {}
    for shape in ("2x2x1", "4x4x8", "4x4x256"):
        fig = figures.draw(find("tpus.slices").evaluate(shape=shape))
        side[shape] = fig.axes[0].lines[0].get_markersize()
    assert side["2x2x1"] == 26 > side["4x4x8"] > side["4x4x256"] > 0
