"""How often is a number used once it has arrived? Once, once, and as often as there are rows."""

from math import log

from scalingbook_lib import roofline
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.reader.figures.figure import Figure
from scalingbook_lib.reader.figures.shapes import CACHE, MATH, MEMORY, Area, Arrow, Cells, Shape, Words
from scalingbook_lib.reader.figures.sketch import Sketch

B, D, F = 64, 8192, 8192
SIDE = 13.0  # of a part of an array
PARTS = 8  # drawn, in place of thousands
DOT, VECTOR, PRODUCT = roofline.dot(D, V5E), roofline.matvec(D, F, V5E), roofline.matmul(B, D, F, V5E)


def reuse() -> Figure:
    """Three operations, from no reuse to much, on one scale with the chip's ridge."""
    known = [("dot product", DOT), ("vector times matrix", VECTOR), (f"{B} rows times matrix", PRODUCT)]
    marks = [(name, operation.intensity) for name, operation in known]
    said = ", ".join(f"{name} {value:.2g}" for name, value in marks)
    ridge = roofline.ridge(V5E)
    return Figure(
        key="rooflines.reuse",
        alt="Three sketches. In a dot product each number meets one other. In a vector times a matrix each "
        f"weight meets one row. With {B} rows each weight meets all of them. FLOPs for each byte: {said}; "
        f"the ridge of a TPU v5e is {ridge:.0f}.",
        caption="Intensity is reuse: a weight that has arrived earns one multiplication and one addition for "
        "each row that meets it. Only more rows bring an operation nearer to the ridge.",
        parts=lambda wide: [_three(wide), _scale(wide, marks, ridge)],
    )


def _three(wide: float) -> Sketch:
    """The three operations, side by side where there is room."""
    abreast = wide > 400
    across = wide / 3 if abreast else wide
    shapes: list[Shape] = []
    for k, draw in enumerate((_dot, _vector, _rows)):
        x, y = (across * k, 0.0) if abreast else (0.0, 150.0 * k)
        shapes += draw(x + across / 2, y)
    return Sketch(wide, 150.0 if abreast else 450.0, shapes)


def _dot(x: float, y: float) -> list[Shape]:
    high, left, right = y + 32, x - 50, x + 37
    column = [[MEMORY]] * PARTS
    pairs = [
        Arrow(
            x0=left + SIDE + 2,
            y0=high + SIDE * (i + 0.42),
            x1=right - 3,
            y1=high + SIDE * (i + 0.42),
            heads=2,
            thick=1,
        )
        for i in range(PARTS)
    ]
    arrays = [Cells(x=at, y=high, rows=column, wide=SIDE, high=SIDE) for at in (left, right)]
    return [Words(x=x, y=y + 14, text="dot product", bold=True), *arrays, *pairs]


def _vector(x: float, y: float) -> list[Shape]:
    return [Words(x=x, y=y + 14, text="vector × matrix", bold=True), *_product(x, y, 1)]


def _rows(x: float, y: float) -> list[Shape]:
    return [Words(x=x, y=y + 14, text=f"{B} rows × matrix", bold=True), *_product(x, y, 6)]


def _product(x: float, y: float, rows: int) -> list[Shape]:
    """X beside W; arrows from every row of X to one weight."""
    high, left, right = y + 32, x - 108, x + 6
    j, i = 3, 4  # the weight that is watched: row j of W meets column j of X
    weights = [[MATH if (a, b) == (j, i) else MEMORY for b in range(PARTS)] for a in range(PARTS)]
    inputs = [[MATH if b == j else CACHE for b in range(PARTS)] for _ in range(rows)]
    top = high + SIDE * (PARTS - rows) / 2
    to = right + SIDE * i - 1, high + SIDE * (j + 0.42)
    arrows = [
        Arrow(x0=left + SIDE * (j + 1), y0=top + SIDE * (k + 0.42), x1=to[0], y1=to[1], color=MATH, thick=1.1)
        for k in range(rows)
    ]
    return [
        Cells(x=left, y=top, rows=inputs, wide=SIDE, high=SIDE),
        Cells(x=right, y=high, rows=weights, wide=SIDE, high=SIDE),
        *arrows,
    ]


def _scale(wide: float, marks: list[tuple[str, float]], ridge: float) -> Sketch:
    """FLOPs for each byte on a log axis from 0.3 to 500."""
    left, right, y = 12.0, wide - 12, 62.0

    def at(value: float) -> float:
        return left + (right - left) * log(value / 0.3) / log(500 / 0.3)

    shapes: list[Shape] = [Arrow(x0=left, y0=y, x1=right, y1=y, thick=1.2)]
    for k, (name, value) in enumerate(marks):
        up = k % 2 == 0
        shapes.append(Area(x=at(value) - 4, y=y - 4, wide=8, high=8, color=MATH, shade=1))
        words = f"{name}\n{value:.2g}" if up else f"{value:.2g}\n{name}"
        shapes.append(Words(x=max(at(value), left + 64), y=y - 28 if up else y + 20, text=words))
    shapes.append(Arrow(x0=at(ridge), y0=y - 14, x1=at(ridge), y1=y + 14, heads=0, color=MEMORY, thick=3))
    shapes.append(Words(x=right, y=y + 30, text=f"ridge {ridge:.0f}", align="end", color=MEMORY))
    shapes.append(Words(x=right, y=14, text="FLOPs for each byte", align="end", quiet=True))
    return Sketch(wide, 106, shapes)
