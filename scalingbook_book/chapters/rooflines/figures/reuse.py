"""Figure of data reuse in a dot product, a matrix-vector product and a matmul."""

from math import log

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import CACHE, MATH, MEMORY, Area, Arrow, Cells, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import roofline, rules
from scalingbook_lib.machines.chips import V5E

B, D, F = 64, 8192, 8192
SIDE = 13.0  # of a part of an array
PARTS, ROWS = 8, (0, 1, 6)  # drawn, in place of thousands; rows of X in each sketch
OPERATIONS = {
    "dot product": roofline.dot(D, V5E),
    "vector × matrix": roofline.matvec(D, F, V5E),
    f"{B} rows × matrix": roofline.matmul(B, D, F, V5E),
}


def reuse() -> Figure:
    """Three operations with more and more reuse, and their intensities beside the ridge of a v5e."""
    said = ", ".join(f"{name} {t.intensity:.2g}" for name, t in OPERATIONS.items())
    return Figure(
        key="rooflines.reuse",
        alt="Three sketches. In a dot product, each number is multiplied by one other number. In a vector times "
        f"a matrix, each weight is used for one row. With {B} rows, each weight is used for all of them. FLOPs "
        f"per byte: {said}; the ridge of a TPU v5e is {rules.ridge(V5E):.0f}.",
        caption="Data reuse and arithmetic intensity of three operations. A weight that has been loaded can "
        "be used for one multiplication and one addition per row, so only more rows bring the "
        "operation closer to the ridge.",
        parts=lambda wide: [_three(wide), _scale(wide)],
    )


def _flops_per_byte(intensity: float) -> str:
    """The intensity with two significant digits and its unit."""
    number = f"{intensity:.2g}"
    return f"{number} FLOP{'s' * (number != '1')} per byte"


def _three(wide: float) -> Sketch:
    """The three operations, side by side where there is room."""
    abreast = wide > 400
    across = wide / 3 if abreast else wide
    shapes: list[Shape] = []
    for k, (name, t) in enumerate(OPERATIONS.items()):
        x, y = (across * (k + 0.5), 0.0) if abreast else (across / 2, 168.0 * k)
        shapes += [
            Words(x=x, y=y + 14, text=name, bold=True),
            Words(x=x, y=y + 32, text=_flops_per_byte(t.intensity), color=MATH),
            *(_dot(x, y + 46) if k == 0 else _product(x, y + 46, ROWS[k])),
        ]
    return Sketch(wide, 154.0 if abreast else 492.0, shapes)


def _dot(x: float, high: float) -> list[Shape]:
    left, right, column = x - 50, x + 37, [[MEMORY]] * PARTS
    arrays = [Cells(x=at, y=high, rows=column, wide=SIDE, high=SIDE) for at in (left, right)]
    levels = [high + SIDE * (i + 0.42) for i in range(PARTS)]
    pairs = [Arrow(x0=left + SIDE + 2, y0=y, x1=right - 3, y1=y, heads=2, thick=1) for y in levels]
    return [*arrays, *pairs]


def _product(x: float, high: float, rows: int) -> list[Shape]:
    """X beside W; arrows from every row of X to one weight."""
    left, right = x - 108, x + 6
    j, i = 3, 4  # the weight that is watched: row j of W meets column j of X
    weights = [[MATH if (a, b) == (j, i) else MEMORY for b in range(PARTS)] for a in range(PARTS)]
    inputs = [[MATH if b == j else CACHE for b in range(PARTS)] for _ in range(rows)]
    top = high + SIDE * (PARTS - rows) / 2
    start, end, y = left + SIDE * (j + 1), right + SIDE * i - 1, high + SIDE * (j + 0.42)
    levels = [top + SIDE * (k + 0.42) for k in range(rows)]
    return [
        Cells(x=left, y=top, rows=inputs, wide=SIDE, high=SIDE),
        Cells(x=right, y=high, rows=weights, wide=SIDE, high=SIDE),
        *(Arrow(x0=start, y0=level, x1=end, y1=y, color=MATH, thick=1.1) for level in levels),
    ]


def _scale(wide: float) -> Sketch:
    """FLOPs per byte on a log axis from 0.3 to 500."""
    left, right, y, ridge = 12.0, wide - 12, 36.0, rules.ridge(V5E)

    def at(value: float) -> float:
        return left + (right - left) * log(value / 0.3) / log(500 / 0.3)

    shapes: list[Shape] = [Arrow(x0=left, y0=y, x1=right, y1=y, thick=1.2)]
    for t in OPERATIONS.values():
        x = at(t.intensity)
        shapes.append(Area(x=x - 4, y=y - 4, wide=8, high=8, color=MATH, shade=1))
        shapes.append(Words(x=x, y=y - 12, text=f"{t.intensity:.2g}", color=MATH, bold=True))
    shapes.append(Arrow(x0=at(ridge), y0=y - 10, x1=at(ridge), y1=y + 10, heads=0, color=MEMORY, thick=3))
    shapes.append(Words(x=at(ridge), y=y - 15, text=f"ridge {ridge:.0f}", color=MEMORY, bold=True))
    shapes.append(Words(x=left, y=y + 22, text="FLOPs per byte (log) →", align="start", quiet=True))
    return Sketch(wide, 64, shapes)
