"""Pictures of many elements stay low and need few SVG elements."""

import xml.etree.ElementTree as ET

import pytest

from scalingbook_book.reader import draw
from scalingbook_book.reader.draw import grid, svg
from scalingbook_book.reader.explorers.view import Cell, Grid, Span, Timeline

LOW_PX = 640  # a figure of it, drawn at 0.66 of its size at least, leaves a laptop room for the controls


def test_many_blocks_are_a_path_a_color_and_one_text_with_all_labels():
    def drawn(count):
        spans = [Span("a", k, k + 1, "<text>" if k == 3 else str(k), k % 2) for k in range(count)]
        return ET.fromstring(draw.panel(Timeline(["a"], spans, "", count), 9000.0))

    few, many = drawn(svg.MANY), drawn(svg.MANY + 1)
    assert "<text>" in [text.text for text in few.iter("text")]
    names = ["<text>" if k == 3 else str(k) for k in range(svg.MANY + 1)]
    assert [text.text for text in list(many.iter("text"))[-1]] == names
    assert len(list(few.iter("rect"))) == svg.MANY
    assert not list(many.iter("rect"))
    tinted = [path.get("d") for path in many.iter("path") if path.get("fill-opacity") == ".38"]
    assert [way.count("M") for way in tinted] == [svg.MANY // 2 + 1, svg.MANY // 2]


@pytest.mark.parametrize("rows", [1, 4, 8, 16])
@pytest.mark.parametrize("width", [draw.WIDE, draw.NARROW])
def test_rows_of_parts_are_low_where_they_are_many_and_a_part_can_still_be_seen(rows, width):
    cells = [[Cell(str(k), 0, "", (0.0, 1.0, 0.0, 0.5)) for k in range(4)] for _ in range(rows)]
    picture = ET.fromstring(draw.panel(Grid("t", [""] * rows, ["a"] * 4, cells), width))
    height = float(picture.get("viewBox").split()[3])
    grounds = [float(box.get("width")) for box in picture.iter("rect") if box.get("rx") == "2"]
    assert min(grounds) >= grid.LEAST_PART - grid.GAP
    assert height < LOW_PX or rows > 12
    assert max(grounds) <= grid.LARGEST
