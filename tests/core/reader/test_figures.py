"""Figures are drawn from the library alone, are reproducible and legible, or are refused."""

import re
import xml.etree.ElementTree as ET

import pytest

from scalingbook_book.chapters import figures
from scalingbook_book.reader.figures.shapes import Area, Arrow, Brace, Cells, Words
from scalingbook_book.reader.figures.sketch import Sketch

KEYS = tuple(figures.catalog())


@pytest.mark.parametrize("key", KEYS)
def test_every_figure_has_picture_alt_and_caption(key):
    figure = figures.find(key)
    assert figure.key == key
    for wide in (True, False):
        drawn = figure.picture(wide=wide)
        ET.fromstring(f"<figure>{drawn}</figure>")
        assert drawn == figure.picture(wide=wide)
    assert len(figure.alt) > 60
    assert figure.alt.endswith((".", "?"))
    assert len(figure.caption) > 40
    assert figure.caption.endswith((".", "?", ")"))


@pytest.mark.parametrize("key", KEYS)
def test_a_caption_is_true_in_the_dark_and_on_a_phone(key):
    """Brown, purple and lightness change with the theme, and a phone stacks what is side by side."""
    said = figures.find(key).caption
    assert not re.search(r"\b(brown|purple|violet|yellow|gold|pink|light|dark)\b", said, re.IGNORECASE)
    assert not re.search(r"\bon the (left|right)\b|\((left|right)\)", said, re.IGNORECASE)


@pytest.mark.parametrize("key", KEYS)
def test_a_strict_policy_lets_every_figure_through(key):
    assert not re.search(r"<style|\sstyle=|<script|\son\w+=|href=", figures.find(key).html())


def test_an_unknown_figure_is_refused_by_the_known_ones():
    with pytest.raises(LookupError, match=r"there are rooflines\.wait"):
        figures.find("rooflines.nothing")
    with pytest.raises(LookupError, match=r"rooflines\.wait"):
        figures.find("nowhere")


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ([Words(x=50, y=20, text="one"), Words(x=55, y=22, text="two")], "lies on"),
        ([Words(x=5, y=20, text="a long sentence")], "leaves the plane"),
        ([Words(x=50, y=20, text="one", size=8)], "nobody reads"),
        ([Area(x=40, y=10, wide=20, high=20, text="wide words")], "wider than its area"),
        ([Area(x=10, y=10, wide=20, high=20, left="D")], "leaves the plane"),
        ([Area(x=90, y=10, wide=20, high=20)], "leaves the plane"),
    ],
)
def test_illegible_sketches_are_refused(shapes, said):
    with pytest.raises(ValueError, match=said):
        Sketch(100, 50, shapes)


def test_subscripts_stand_lower_and_the_line_goes_on_at_its_height():
    drawn = Words(x=0, y=20, text="T_{math} < T_{memory}").svg()
    down = [float(d) for d in re.findall(r'dy="([-\d.]+)"', drawn)]
    assert len(down) == 4
    assert sum(down) == 0
    assert Words(x=0, y=0, text="T_{m}").box()[2] < Words(x=0, y=0, text="Tmm").box()[2]


def test_an_arrow_ends_where_it_is_told():
    head = re.search(r'points="([-\d.]+),([-\d.]+) ', Arrow(x0=0, y0=0, x1=30, y1=40).svg())
    assert (float(head[1]), float(head[2])) == (30, 40)
    assert Arrow(x0=0, y0=0, x1=9, y1=0, heads=0).svg().count("polygon") == 0
    assert Arrow(x0=0, y0=0, x1=9, y1=0, heads=2, bend=0.2).svg().count("polygon") == 2


def test_cells_of_one_color_share_a_path():
    drawn = Cells(x=0, y=0, rows=[[0, 1], [0, None]], wide=10, high=10).svg()
    assert (drawn.count("<path"), drawn.count("M")) == (3, 4)


def test_a_brace_carries_its_text():
    assert [w.text for w in Brace(x0=0, x1=40, y=10, text="D").words()] == ["D"]
    assert list(Brace(x0=0, x1=40, y=10).words()) == []
