"""Figures are to scale and show an order of events that is possible."""

import math
import re
from typing import Any

import pytest

from scalingbook_book.chapters import explorers
from scalingbook_book.chapters.inference.figures import steps
from scalingbook_book.chapters.intro.figures import ring, wall
from scalingbook_book.chapters.sharding.figures import deeper
from scalingbook_book.chapters.training.figures import schedules
from scalingbook_book.chapters.transformers.figures import block, memory
from scalingbook_book.reader import draw
from scalingbook_book.reader.draw import labels
from scalingbook_book.reader.explorers.view import Bars, Chart, Curve, RefLine, Scale, Series
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, Area, Cells, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import models
from scalingbook_lib.models import arithmetic

WIDTHS = [draw.WIDE, draw.NARROW]


def sketches(figure: Figure, wide: float) -> list[Sketch]:
    return [part for part in figure.parts(wide) if isinstance(part, Sketch)]


def shapes(figure: Figure, wide: float, kind: type) -> list[Any]:
    return [shape for part in sketches(figure, wide) for shape in part.shapes if isinstance(shape, kind)]


@pytest.mark.parametrize("wide", WIDTHS)
def test_the_openings_bars_are_to_scale_and_the_enlarged_ones_say_by_how_much(wide):
    figure = wall.wall()
    bars = [area for area in shapes(figure, wide, Area) if area.color == MATH]
    whole, few, few_enlarged, *_ = bars
    assert few.wide / whole.wide == pytest.approx(wall.STEPS[1].math_s / wall.STEPS[0].math_s)
    assert few_enlarged.wide / few.wide == pytest.approx(wall.TIMES)
    factors = [word.text for word in shapes(figure, wide, Words) if word.text.startswith("×")]
    assert factors == [f"× {wall.TIMES}"] * 2
    assert f"{wall.TIMES} times" in figure.caption
    waits = [area for area in shapes(figure, wide, Area) if area.color == IDLE]
    end = max(area.x + area.wide for area in waits)
    assert end < whole.x + whole.wide - 10  # else, at a glance, nothing was gained


@pytest.mark.parametrize("wide", WIDTHS)
def test_a_matmul_starts_after_what_it_needs(wide):
    compiled, trained = (
        {area.text: area for area in part.shapes if isinstance(area, Area)}
        for part in sketches(ring.order(), wide)
    )
    for areas in (compiled, trained):
        dw, sent = areas["dw"], areas["AllReduce of dw"]
        assert dw.x + dw.wide <= sent.x + 1e-9
    sent, y = compiled["AllReduce of dw"], compiled["y"]
    assert sent.x + sent.wide <= y.x + 1e-9  # the compiler hides it behind nothing
    y, dw, dx = (trained[name] for name in ("y", "dw", "dx"))
    assert y.x + y.wide <= dw.x + 1e-9  # in training, the loss, and so dy, comes from y
    assert dw.x < dx.x < trained["AllReduce of dw"].x + trained["AllReduce of dw"].wide


@pytest.mark.parametrize("wide", WIDTHS)
def test_caches_are_as_wide_as_their_bytes(wide):
    kept = [cells for cells in shapes(memory.heads(), wide, Cells) if cells.rows[0][0] != MATH]
    made = memory.kinds("Llama 3 70B")
    nbytes = [arithmetic.kv_cache(made[kind], 1).bytes_per_token for kind in ("MHA", "GQA", "MQA", "MLA")]
    per_byte = [cells.wide * len(cells.rows[0]) / n for cells, n in zip(kept, nbytes, strict=True)]
    assert per_byte == pytest.approx([per_byte[0]] * 4)


@pytest.mark.parametrize("wide", WIDTHS)
def test_reading_and_writing_are_on_one_scale(wide):
    prompt, *writing = shapes(steps.two_phases(), wide, Cells)
    long = prompt.wide * len(prompt.rows[0])
    read = long / next(cells.wide for cells in writing if cells.rows == [[MEMORY]])
    whole = steps.inference.prefill(steps.LLAMA, steps.SIXTEEN, steps.NARROW, P=steps.P).total_s
    assert read == pytest.approx(whole / steps.step_of(1).total_s)


def test_the_way_that_the_compiler_chose_is_marked():
    words = [
        word.text for part in sketches(deeper.omits(), draw.WIDE) for s in part.shapes for word in s.words()
    ]
    assert sum("chosen by XLA" in word for word in words) == len(deeper.CHOSEN)


def test_the_block_diagram_has_the_weights_of_a_layer():
    model = models.find("Llama 3 70B")
    texts = [word.text for area in shapes(block.block(), draw.NARROW, Area) for word in area.words()]
    brackets = [text.rpartition("[")[2] for text in texts if text.endswith("]")]
    products = [re.findall("[A-Z]", inside) for inside in brackets if "B" not in inside and len(inside) > 2]
    each_layer = sum(math.prod(getattr(model, size) for size in sizes) for sizes in products)
    counted = arithmetic.params(model)
    assert model.L * each_layer == counted["attention"] + counted["mlp"]


def test_the_block_diagram_has_the_parameters_and_flops_of_a_layer():
    model, B, T = models.find("Llama 3 70B"), 2, 512
    sizes = {"B": B, "T": T, "S": T} | {size: getattr(model, size) for size in "DFNKH"}

    def value(formula: str) -> int:
        """A product of letters, such as 2BTD(N + 2K)H."""
        return eval(re.sub(r"(?<=[\w)])(?=[A-Z(])", "*", formula or "0"), sizes)

    rows = [*block.ATTENTION, *block.MLP]
    counted, forward = arithmetic.params(model), arithmetic.flops(model, B, T)
    weights = model.L * sum(value(row.parameters) for row in rows)
    assert weights == counted["attention"] + counted["mlp"] + counted["norms"] - model.D  # the last norm
    assert model.L * sum(value(row.flops) for row in rows) == forward.total - forward["unembedding"]
    assert all(value(row.flops) == sum(map(value, row.each)) for row in rows if row.each)


def test_the_schedules_say_what_they_cost():
    words = [word.text for figure in schedules.FIGURES for word in shapes(figure(), draw.WIDE, Words)]
    told = [word for word in words if ": idle" in word]
    weights = [word for word in words if word.startswith("weights of")]
    assert told[-2:] == ["DualPipe: idle 7.7%", "DualPipe-V: idle 11%"]
    assert "ZB-H2: idle 11%, 0% without a barrier" in told
    assert dict(zip(told, weights, strict=True)) == {
        line: "weights of 2 stages" if line.startswith("DualPipe:") else "weights of 1 stage" for line in told
    }


@pytest.mark.parametrize("wide", WIDTHS)
def test_the_bars_of_activations_are_to_scale(wide):
    """The activations that a stage keeps fill their part of the outline, which is all microbatches."""
    for figure in schedules.FIGURES:
        bars = [area.wide for area in shapes(figure(), wide, Area) if area.high == schedules.BAR]
        kept = [w.text.split()[1] for w in shapes(figure(), wide, Words) if w.text.startswith("activations")]
        parts = [part / whole for part, whole in zip(bars[1::4], bars[::4], strict=True)]
        assert parts == pytest.approx([float(each) / schedules.M for each in kept])


def test_the_explorer_says_that_dualpipe_doubles_the_weights():
    view = explorers.find("training.pipeline").evaluate(schedule="DualPipe")
    assert "twice as many" in view.verdict
    assert any(
        "twice the weights" in label
        for panel in view.panels
        if isinstance(panel, Bars)
        for label in panel.labels
    )


def test_no_line_joins_two_slices_that_exist():
    view = explorers.find("training.experts").evaluate()
    assert not [
        mark
        for panel in view.panels
        if isinstance(panel, Chart)
        for mark in panel.marks
        if isinstance(mark, Curve)
    ]


def test_a_label_does_not_lie_on_a_reference_line():
    line = ([0.0, 400.0], [100.0, 100.0])
    placer = labels.Placer((0, 0, 400, 200), [line], refs=[(199, 0, 201, 200)])
    x, _ = placer.place(80, labels.along(line, 80, placer.box)) or (0, 0)
    assert x + 80 <= 199 or x >= 201


def test_a_bars_value_stands_above_a_reference_line():
    bars = Bars(Scale("bytes", "B"), ("a",), (Series("one", (2e9,), MATH),), refs=(RefLine("HBM", 2.1e9),))
    drawn = draw.panel(bars, draw.WIDE)
    assert drawn.index(">2 GB</text>") > drawn.index("stroke-dasharray")
    assert "paint-order" in drawn[: drawn.index(">2 GB</text>")]


def test_a_long_name_of_a_bar_is_written_on_two_lines():
    name = "4. gather A over Y, slice B over Y, gather C over Y"
    series = [Series(str(k), (1.0,), k) for k in range(3)]
    drawn = draw.panel(Bars(Scale("time", "s"), (name,), series), draw.WIDE)
    assert "…" not in drawn
