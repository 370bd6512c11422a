"""Devices are drawn with their blocks, replicas included, and only wrong ones are marked."""

import math
from collections import Counter

import pytest

from scalingbook_book.reader.figures.placement import (
    SIDE,
    Compared,
    Placed,
    Values,
    answered,
    asked,
    placed,
    spread,
)
from scalingbook_book.reader.figures.shapes import Area, BlockRow
from scalingbook_lib.notation import Mesh, parse

GRID = Mesh(X=2, Y=4)
SHAPES = {1: (64,), 2: (64, 32), 3: (8, 64, 32), 4: (16, 8, 64, 32)}
TEXTS = (
    "A[I, J]", "A[I_X, J]", "A[I, J_Y]", "A[I_Y, J_X]", "A[I_XY, J]", "A[I, J_YX]", "A[I_XY]", "A[I]",
    "A[N, I_X, J]", "A[I_X, S, J_Y]", "A[I, S, J, K_XY]",
)  # fmt: skip


def array(text, mesh=GRID):
    return placed(text, mesh, SHAPES[len(parse(text).dims)])


def sketch(figure, wide=680):
    (drawn,) = figure.parts(wide)
    return drawn


def words(figure, wide=680):
    return [word.text for shape in sketch(figure, wide).shapes for word in shape.words()]


def marked(figure, sign="✗ "):
    return {text.removeprefix(sign) for text in words(figure) if text.startswith(sign)}


def fills(figure, wide=680):
    """The filled parts of all squares: their color and shade, width and height."""
    _, *painted = (shape for shape in sketch(figure, wide).shapes if isinstance(shape, BlockRow))
    return [((color, one.shade), long, one.high) for one in painted for _, _, long, color in one.stretches]


@pytest.mark.parametrize("wide", [680, 340])
@pytest.mark.parametrize("text", TEXTS)
def test_each_block_is_drawn_as_often_as_it_is_replicated(text, wide):
    a, copies = array(text), parse(text).replicas(GRID)
    labels = Counter(word for word in words(asked(GRID, [a]), wide) if word.startswith("A["))
    looks = Counter(look for look, _, _ in fills(asked(GRID, [a]), wide))
    assert set(labels) == {a.label(block) for block in a.blocks}
    assert [*labels.values()] == [*looks.values()] == [copies] * (GRID.devices // copies)


@pytest.mark.parametrize("text", TEXTS)
def test_a_square_is_filled_by_the_share_that_a_device_holds(text):
    a = array(text)
    share = math.prod(end - start for start, end in a.blocks[0]) / math.prod(a.shape)
    for _, long, high in fills(asked(GRID, [a])):
        assert math.isclose(long * high / SIDE**2, share)


def test_an_answer_is_drawn_beside_what_is_given_and_said_in_words():
    figure = asked(GRID, [array("A[I_X, J]"), array("W[I, J_Y]")], [array("C[I_X, J_Y]")])
    assert "X=1, Y=2: holds A[32:64, :], W[:, 16:24]; must return C[32:64, 16:24]." in figure.alt
    assert words(figure).count("must return") == words(figure).count("holds") == 8
    assert "the block of C[I_X, J_Y] that it must return" in figure.caption
    assert "must return" not in words(asked(GRID, [array("A[I_X, J]")]))


def test_summands_are_no_equal_blocks():
    figure = spread(GRID, [array("A[I_X, J]"), array("A[I, J]{U_Y}")])
    assert "X=0, Y=1: as A[I_X, J] A[0:32, :]; as A[I, J]{U_Y} summand of A[:, :]." in figure.alt
    assert words(figure).count("summand of A[:, :]") == len(fills(figure)) == 8


@pytest.mark.parametrize("text", TEXTS)
def test_a_right_answer_marks_nothing(text):
    a = array(text)
    figure = answered(GRID, Compared(a, a, (Values(right=True),) * 8))
    assert not marked(figure)
    assert len(marked(figure, "✓ ")) == 8
    assert not any(shape.dashed for shape in sketch(figure).shapes if isinstance(shape, Area))


def test_a_wrong_order_of_axes_marks_the_devices_that_differ():
    found = Compared(array("A[I_YX, J]"), array("A[I_XY, J]"), (Values(right=True),) * 8)
    differ = {f"X={x}, Y={y}" for x in range(2) for y in range(4) if 4 * x + y != 2 * y + x}
    assert marked(answered(GRID, found)) == differ
    assert found.right.count(False) == len(differ) == 6


def test_numbers_of_another_block_are_drawn_as_that_block():
    c = array("C[I_X, J_Y]")
    values = [Values(right=True)] * 8
    values[1] = Values(False, c.blocks[2], "1 2 3 …", "4 5 6 …")
    values[6] = Values(False, None, "7 8 9 …", "0 0 0 …")
    figure = answered(GRID, Compared(c, c, tuple(values)))
    assert marked(figure) == {"X=0, Y=1", "X=1, Y=2"}
    assert "X=0, Y=1 is wrong: holds the values of C[0:32, 16:24] (1 2 3 …)" in figure.alt
    assert "X=1, Y=2 is wrong: holds wrong values in C[32:64, 16:24] (7 8 9 …)" in figure.alt
    assert "the 2 devices that are wrong" in figure.caption


def test_a_result_of_another_shape_or_on_one_device_is_wrong_everywhere():
    right, values = array("A[I_X, J]"), (Values(right=True),) * 8
    other = placed("A[I_X, J]", GRID, (32, 32))
    assert len(marked(answered(GRID, Compared(other, right, values)))) == 8
    alone = Placed("A", right.shape, (((0, 64), (0, 32)), *(None,) * 7))
    assert len(marked(answered(GRID, Compared(alone, right, values)))) == 8
    assert words(answered(GRID, Compared(alone, right, values))).count("nothing") == 7


@pytest.mark.parametrize("wide", [680, 340])
@pytest.mark.parametrize("mesh", [Mesh(X=1), Mesh(X=3), Mesh(X=4), Mesh(data=2, model=8)])
def test_any_mesh_and_any_size_can_be_drawn(mesh, wide):
    axis = mesh.axes[0]
    text = f"Weights[I_{axis}, J, K, L]" if len(axis) == 1 else f"Weights[I_{{{axis}}}, J, K, L]"
    a = placed(text, mesh, (7 * 2**20, 5, 3 * 2**20, 2**30))
    result = Placed("result", (), ((),) * mesh.devices)
    sketch(asked(mesh, [a], [result]), wide)
    sketch(
        answered(mesh, Compared(a, a, (Values(False, None, "-1.23e+10 " * 3, "0 …"),) * mesh.devices)), wide
    )
