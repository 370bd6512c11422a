"""Figures of matmuls by their indices: one forward, two backward, and what a causal mask leaves."""

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import CACHE, IDLE, MATH, MEMORY, Area, Cells, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.models import arithmetic

SIDES = {"B": 34.0, "D": 46.0, "F": 72.0}  # of the drawing
PRODUCT = arithmetic.einsum("BD,DF->BF", B=8, D=8, F=8)
TWICE = arithmetic.einsum("BD,DF->BF", B=16, D=16, F=16)


def product() -> Figure:
    """What is counted in a matmul, and how it grows."""
    work = TWICE.flops // PRODUCT.flops
    data = 4
    return Figure(
        key="transformers.product",
        alt="X, with rows B and columns D, times W, with rows D and columns F, gives Y, with rows B and columns F. "
        "One row of X and one column of W are highlighted, and so is the element of Y that they produce: a dot product of "
        "2 D FLOPs.",
        caption="A matmul as B × F dot products. Every element of Y is one dot product and takes 2D FLOPs. "
        f"A matmul that is twice as large in every dimension takes {work} times the FLOPs on {data} "
        "times the data.",
        parts=lambda wide: [_lit(wide)],
    )


def _lit(wide: float) -> Sketch:
    """X, W and Y in parts; a row, a column, and the element that they produce."""
    side = 15.0 if wide > 400 else 11.0
    rows, inner, columns, row, column = 4, 6, 8, 1, 5
    x = [[MATH if j == row else MEMORY for _ in range(inner)] for j in range(rows)]
    w = [[MATH if i == column else MEMORY for i in range(columns)] for _ in range(inner)]
    y = [[MATH if (j, i) == (row, column) else None for i in range(columns)] for j in range(rows)]
    shapes: list[Shape] = []
    room = (wide - side * (inner + 2 * columns)) / 4
    left, middle = room, 34 + side * inner / 2
    for name, cells, sign in (("X[B, D]", x, "×"), ("W[D, F]", w, "="), ("Y[B, F]", y, "")):
        high, across = side * len(cells), side * len(cells[0])
        shapes.append(Cells(x=left, y=middle - high / 2, rows=cells, wide=side, high=side))
        shapes.append(Words(x=left + across / 2, y=middle - high / 2 - 8, text=name))
        left += across + room
        if sign:
            shapes.append(Words(x=left - room / 2, y=middle + 5, text=sign))
    return Sketch(wide, 40 + side * inner, shapes)


def backward() -> Figure:
    """Three matmuls over the same three indices."""
    counts = [PRODUCT, *PRODUCT.backward]
    assert len({each.flops for each in counts}) == 1
    return Figure(
        key="transformers.backward",
        alt="Three matmuls of rectangles with sides B, D and F. Forward, X times W sums over D. The "
        "gradient of W, X transposed times the gradient of Y, sums over B. The gradient of X, the "
        "gradient of Y times W transposed, sums over F. The label under each is 2 B D F.",
        caption="The three matmuls of a training step for Y = X · W. Each of them sums over a different "
        "index, but all three take the same FLOPs. The backward pass therefore takes twice the "
        f"FLOPs of the forward pass, so a training step takes {len(counts)} times those of a forward "
        "pass.",
        parts=lambda wide: [_three(wide)],
    )


def _three(wide: float) -> Sketch:
    """Forward, gradient of W, gradient of X; what is summed over carries the color of arithmetic."""
    products = (
        ("forward: sum over D", ("X", "B", "D"), ("W", "D", "F"), ("Y", "B", "F")),
        ("gradient of W: sum over B", ("Xᵀ", "D", "B"), ("Ȳ", "B", "F"), ("W̄", "D", "F")),
        ("gradient of X: sum over F", ("Ȳ", "B", "F"), ("Wᵀ", "F", "D"), ("X̄", "B", "D")),
    )
    abreast = wide > 400
    scale = 0.8 if abreast else 0.95
    across, down = (wide / 3, 0.0) if abreast else (0.0, 158.0)
    shapes: list[Shape] = []
    for k, (title, *arrays) in enumerate(products):
        left, top = across * k, down * k
        room = (wide / 3 if abreast else wide) - scale * sum(SIDES[c] for _, _, c in arrays)
        shapes.append(Words(x=left + (wide / 3 if abreast else wide) / 2, y=top + 14, text=title, bold=True))
        x = left + room / 4
        for i, (name, r, c) in enumerate(arrays):
            color = MEMORY if i < 2 else CACHE
            area = Area(
                x=x, y=top + 90 - scale * SIDES[r] / 2, wide=scale * SIDES[c], high=scale * SIDES[r],
                text=name, top=f"[{r}, {c}]", color=color,
            )  # fmt: skip
            shapes.append(area)
            x += scale * SIDES[c] + room / 4
            if i < 2:
                sign = Words(x=x - room / 8, y=top + 95, text="×="[i], bold=True)
                shapes.append(sign)
        shapes.append(
            Words(x=left + (wide / 3 if abreast else wide) / 2, y=top + 148, text="2BDF", color=MATH)
        )
    return Sketch(wide, 156.0 if abreast else 158 * 3 - 4, shapes)


def causal() -> Figure:
    """What a mask saves, and what skipping blocks saves."""
    blocks = 4
    done = (blocks + 1) / (2 * blocks)
    return Figure(
        key="transformers.causal",
        alt="Three squares of queries against keys. Without a mask, every pair is computed. With a "
        f"causal mask, every pair is computed too, and half of them are overwritten. In {blocks} "
        f"blocks of queries, each with the keys up to its end, {done:.3f} of the pairs are computed.",
        caption="FLOPs of causal attention relative to attention without a mask. With a mask, the scores of "
        "later keys are computed and then overwritten (gray). Only skipping whole blocks of keys "
        f"saves FLOPs: the compiler counts 1, 1 and {done:g}. (Queries down, keys across.)",
        parts=lambda wide: [_squares(wide, blocks, done)],
    )


def _squares(wide: float, blocks: int, done: float) -> Sketch:
    n = 16
    side = 11.0 if wide > 400 else 6.0
    every = [[MATH] * n for _ in range(n)]
    masked = [[MATH if key <= query else IDLE for key in range(n)] for query in range(n)]
    size = n // blocks
    cut = [[_kind(query, key, size) for key in range(n)] for query in range(n)]
    shapes: list[Shape] = []
    for k, (name, cells, share) in enumerate(
        (("no mask", every, 1.0), ("mask", masked, 1.0), (f"{blocks} blocks", cut, done))
    ):
        middle = wide * (2 * k + 1) / 6
        shapes.append(Words(x=middle, y=14, text=name, bold=True))
        shapes.append(Cells(x=middle - side * n / 2, y=26, rows=cells, wide=side, high=side, air=1))
        shapes.append(Words(x=middle, y=26 + side * n + 18, text=f"{share:g} × FLOPs"))
    return Sketch(wide, 52 + side * n, shapes)


def _kind(query: int, key: int, size: int) -> int | None:
    """Useful, computed in vain, or skipped."""
    if key <= query:
        return MATH
    return IDLE if key < (query // size + 1) * size else None
