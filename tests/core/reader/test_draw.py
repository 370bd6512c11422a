"""SVG pictures are well-formed, legible, reproducible and safe for any text."""

import itertools
import math
import re
import xml.etree.ElementTree as ET

import pytest
from gallery import PANELS

from scalingbook_book.chapters.explorers import find
from scalingbook_book.reader import draw
from scalingbook_book.reader.draw import axes, labels, palette, svg
from scalingbook_book.reader.explorers.view import (  # fmt: skip
    Bars,
    Cell,
    Chart,
    Curve,
    Grid,
    Points,
    Readout,
    Scale,
    Series,
    View,
)

WIDTHS = (draw.WIDE, draw.NARROW)
BOTH = list(itertools.product(PANELS, WIDTHS))
NS = "{http://www.w3.org/2000/svg}"


def parsed(name, width):
    return ET.fromstring(draw.panel(PANELS[name], width))


def size(root):
    x, y, w, h = map(float, root.get("viewBox").split())
    assert (x, y) == (0, 0)
    return w, h


def texts(root):
    """Every text with its box: left, top, right, bottom."""
    for parent in root.iter():
        for node in parent:
            if node.get("x") is None or node.tag not in ("text", "tspan"):
                continue
            anchor = node.get("text-anchor") or parent.get("text-anchor") or _above(root, parent)
            type_size = float(node.get("font-size") or parent.get("font-size") or svg.SIZE)
            wide = svg.measure(node.text or "", type_size)
            x, y = float(node.get("x")), float(node.get("y"))
            left = x - {"middle": wide / 2, "end": wide}.get(anchor, 0)
            yield node.text, (left, y - 0.75 * type_size, left + wide, y + 0.22 * type_size)


def _above(root, node):
    parents = {child: parent for parent in root.iter() for child in parent}
    while node in parents:
        node = parents[node]
        if node.get("text-anchor"):
            return node.get("text-anchor")
    return None


def coordinates(root):
    """Every point that a shape names; relative moves only shorten what an absolute one began."""
    for node in root.iter():
        if node.tag == "rect":
            x, y, w, h = (float(node.get(k)) for k in ("x", "y", "width", "height"))
            yield from ((x, y), (x + w, y + h))
        for pair in (node.get("points") or "").split():
            yield tuple(map(float, pair.split(",")))
        for command, numbers in re.findall(r"([MLHVQ])([-\d., ]+)", node.get("d") or ""):
            values = [float(v) for v in re.findall(r"-?[\d.]+", numbers)]
            if command == "H":
                yield values[0], 0.0
            elif command == "V":
                yield 0.0, values[0]
            else:
                yield from zip(values[::2], values[1::2], strict=True)


@pytest.mark.parametrize(("name", "width"), BOTH)
def test_every_panel_is_well_formed_and_says_what_it_is(name, width):
    root = parsed(name, width)
    assert root.get("role") == "img"
    assert root.get("aria-label")
    assert size(root)[0] == width


@pytest.mark.parametrize(("name", "width"), BOTH)
def test_nothing_is_drawn_outside_the_picture(name, width):
    root = parsed(name, width)
    wide, high = size(root)
    for x, y in coordinates(root):
        assert -0.1 <= x <= wide + 0.1
        assert -0.1 <= y <= high + 0.1
    for words, (left, top, right, bottom) in texts(root):
        assert left >= -1, words
        assert right <= wide + 1, words
        assert 0 <= top < bottom <= high, words


@pytest.mark.parametrize(("name", "width"), [b for b in BOTH if b[0] not in ("ring", "torus")])
def test_no_text_covers_another(name, width):
    boxes = list(texts(parsed(name, width)))
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        apart = a[2] <= b[0] + 1 or b[2] <= a[0] + 1 or a[3] <= b[1] + 1 or b[3] <= a[1] + 1
        assert apart, f"{one!r} and {other!r}"


@pytest.mark.parametrize("wide", [True, False])
def test_labels_of_the_roofline_stay_apart_wherever_the_slider_is(wide):
    roofline = find("rooflines.roofline")
    for position in range(0, int(roofline.controls["B"].stops[1]), 16):
        for picture in re.findall(r"<svg.*?</svg>", roofline.render({"B": position}, wide=wide).figure):
            for (one, a), (other, b) in itertools.combinations(texts(ET.fromstring(picture)), 2):
                apart = a[2] <= b[0] + 1 or b[2] <= a[0] + 1 or a[3] <= b[1] + 1 or b[3] <= a[1] + 1
                assert apart, f"at {position}: {one!r} and {other!r}"


@pytest.mark.parametrize(("name", "width"), BOTH)
def test_a_picture_is_the_same_to_the_byte_and_lean(name, width):
    drawn = draw.panel(PANELS[name], width)
    assert drawn == draw.panel(PANELS[name], width)
    assert len(drawn) < (20_000 if name == "cells" else 12_500)
    assert "nan" not in drawn
    assert not re.search(r"\binf\b", drawn)


def test_a_chart_of_three_curves_is_at_most_8_kb():
    xs = [1.05**i for i in range(150)]
    curves = [Curve(f"curve {k}", xs, [x * k for x in xs]) for k in (1, 2, 3)]
    assert len(draw.panel(Chart(Scale("x", "", "log"), Scale("y", "s", "log"), curves), draw.WIDE)) <= 8192


EVIL = '<script>alert("x")</script>&\'"]]>\x00\x0b\ud800'


@pytest.mark.parametrize("width", WIDTHS)
def test_text_that_a_reader_typed_stays_text(width):
    panels = (
        Chart(
            Scale(EVIL, EVIL),
            Scale(EVIL),
            (Curve(EVIL, [1, 2], [1, 2]), Points("", [1], [1], [EVIL])),
            title=EVIL,
        ),
        Grid(EVIL, (EVIL,), (EVIL,), [[Cell(EVIL, 0, EVIL)]]),
    )
    for panel in panels:
        drawn = draw.panel(panel, width)
        assert "<script" not in drawn
        ET.fromstring(drawn)
        drawn.encode()
    said = draw.readouts(View("v", (), (Readout(EVIL, 1, text=EVIL),)))
    assert "<script" not in said


def test_readouts_are_pairs_of_term_and_description():
    root = ET.fromstring(
        f"<dl>{draw.readouts(View('v', (), (Readout('time', 1e-3, 's'), Readout('n', 4))))}</dl>"
    )
    assert [(d.find("dt").text, d.find("dd").text) for d in root] == [("time", "1 ms"), ("n", "4")]


def test_panels_side_by_side_are_drawn_narrow():
    view = View("v", (PANELS["chart"], PANELS["log"]), columns=2)
    paired = f'<div class="ex-columns">{draw.figure(view, wide=False)}</div>'
    assert draw.figure(view, wide=True) == paired
    last = View("v", (*view.panels, PANELS["timeline"]), columns=2)
    assert draw.figure(last, wide=True) == paired + draw.panel(PANELS["timeline"], draw.WIDE)


def test_a_logarithmic_axis_says_so():
    assert axes.named(Scale("batch", "tokens", "log"), "tokens") == "batch (tokens, log)"
    assert axes.named(Scale("chips", "", "pow2"), "") == "chips (log)"
    assert axes.named(Scale("time", "s"), "ms") == "time (ms)"
    assert axes.named(Scale("rate (per chip)", "", "log"), "") == "rate (per chip, log)"
    drawn = draw.panel(PANELS["log"], draw.WIDE)
    assert "log) →" in drawn
    assert "log)</text>" in drawn


@pytest.mark.parametrize("width", WIDTHS)
def test_bars_that_all_reach_100_percent_show_their_parts(width):
    parts = (Series("wide", (97.0, 40.0)), Series("narrow", (3.0, 60.0)))
    whole = draw.panel(Bars(Scale("share", "%"), ("a", "b"), parts, stacked=True), width)
    assert ">97%</text>" in whole
    assert ">40%</text>" in whole
    assert ">60%</text>" in whole
    assert ">3%</text>" not in whole  # it does not fit
    assert ">100%<" not in whole
    less = (Series("wide", (97.0, 40.0)), Series("narrow", (3.0, 50.0)))
    assert ">90%</text>" in draw.panel(Bars(Scale("share", "%"), ("a", "b"), less, stacked=True), width)


def test_curves_are_cut_at_the_box_where_they_cross_it():
    ((xs, ys),) = axes.within([0.0, 100.0], [0.0, 100.0], (25, 0, 75, 100))
    assert xs == pytest.approx([25, 75], abs=0.1)
    assert ys == pytest.approx([25, 75], abs=0.1)
    assert axes.within([0.0, 1.0], [500.0, 500.0], (0, 0, 100, 100)) == []
    inside = ([1.0, 2.0], [3.0, 4.0])
    assert axes.within(*inside, (0, 0, 9, 9)) == [inside]
    assert len(axes.within([0.0, 5.0, 10.0], [5.0, 50.0, 5.0], (0, 0, 10, 10))) == 2


def test_gaps_split_a_curve():
    nan = math.nan
    assert axes.pieces([1, 2, 3, 4], [1, nan, 3, 4]) == [([1], [1]), ([3, 4], [3, 4])]
    assert axes.pieces([1], [math.inf]) == []


def test_a_label_takes_the_first_free_place_and_none_where_all_are_taken():
    placer = labels.Placer((0, 0, 100, 100), [([0.0, 100.0], [50.0, 50.0])])
    assert placer.place(40, [(10, 52, 0), (10, 40, 1)]) == (10, 40)  # the first would cover the line
    assert placer.place(40, [(20, 40, 0)]) is None  # a label stands there
    assert placer.place(40, [(90, 80, 0)]) is None  # outside


# Colours: linear light as (r, g, b); the two common kinds of colour blindness after Machado and others (2009)

SEEN = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deuteranopia": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
}


def linear(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]


def contrast(one, other):
    low, high = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (linear(one), linear(other)))
    return (high + 0.05) / (low + 0.05)


def oklab(color, eye):
    r, g, b = (min(max(sum(map(math.prod, zip(row, linear(color), strict=True))), 0), 1) for row in SEEN[eye])
    l, m, s = (
        math.cbrt(x * r + y * g + z * b)
        for x, y, z in ((0.4122, 0.5363, 0.0514), (0.2119, 0.6807, 0.1074), (0.0883, 0.2817, 0.6300))
    )
    return (
        0.2105 * l + 0.7936 * m - 0.0041 * s,
        1.9780 * l - 2.4286 * m + 0.4506 * s,
        0.0259 * l + 0.7828 * m - 0.8087 * s,
    )


@pytest.mark.parametrize(("colors", "ground"), [(palette.LIGHT, "#ffffff"), (palette.DARK, "#121212")])
def test_every_color_has_enough_contrast_for_text(colors, ground):
    assert min(contrast(c, ground) for c in colors) >= 4.5


@pytest.mark.parametrize("eye", SEEN)
@pytest.mark.parametrize("colors", [palette.LIGHT, palette.DARK])
def test_colors_stay_distinct_for_color_blind_readers(colors, eye):
    for one, other in itertools.combinations(colors, 2):
        assert math.dist(oklab(one, eye), oklab(other, eye)) > 0.08, (one, other)


def test_text_is_cut_to_its_room():
    assert svg.fit("short", 100) == "short"
    assert svg.fit("a rather long label", 60).endswith("…")
    assert svg.measure(svg.fit("a rather long label", 60)) <= 60
    assert svg.fit("label", 1) == ""


def test_a_column_s_label_may_have_lines():
    drawn = draw.panel(Grid("", ("a",), ("first\ntoken", "all"), [[Cell("1"), Cell("2")]]), 340.0)
    assert ">first<" in drawn
    assert ">token<" in drawn


def test_a_long_heading_takes_more_lines_and_loses_no_word():
    words = "All schedules that these numbers allow, and how much memory each of them takes"
    lines, high = svg.title(words, 340)
    shown = [re.sub("<.*?>", "", line) for line in lines]
    assert (" ".join(shown), len(shown)) == (words, 2)
    assert max(svg.measure(line, svg.SIZE * svg.BOLD) for line in shown) <= 340
    assert (svg.title("", 340), high) == (([], 0.0), 41.0)
