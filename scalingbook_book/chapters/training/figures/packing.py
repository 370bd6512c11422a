"""Figure of packing: documents in rows, and the query-key pairs that a document mask leaves."""

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import (
    CACHE,
    IDLE,
    MATH,
    MEMORY,
    NETWORK,
    Area,
    Cells,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.training import pack
from scalingbook_lib.units import percent

ROW, PART = 8192, 512  # tokens of a row, and of a cell of the drawing
DOCUMENTS = tuple(PART * parts for parts in (9, 7, 5, 4, 3, 2))
PACKED = pack(DOCUMENTS, ROW)
FULL = sum(DOCUMENTS) / (ROW * len(DOCUMENTS))  # of rows with one document each
COLORS = dict(zip(DOCUMENTS, (MEMORY, MATH, NETWORK, CACHE, MEMORY, MATH), strict=True))
SHOWN = PACKED.rows[-1]  # the row whose attention is drawn
LEFT = PACKED.attention[-1]


def packed() -> Figure:
    """What packing and the document mask save."""
    return Figure(
        key="training.packed",
        alt=f"{len(DOCUMENTS)} documents in one row each, {percent(FULL)} full; the same documents in {len(PACKED.rows)} rows, "
        f"{percent(1 - PACKED.empty)} full. Below, a row with {len(SHOWN)} documents as a "
        f"grid of queries (down) and keys "
        f"(across): a triangle over the whole row, and {len(SHOWN)} small triangles along its diagonal.",
        caption="Documents before and after packing, and the masks of a packed row. Packing turns "
        f"{len(DOCUMENTS)} rows into {len(PACKED.rows)}. In the last row, the document mask leaves "
        f"{percent(LEFT)} of the query-key pairs. The other pairs would mix documents that have "
        "nothing to do with each other. (Queries down, keys across.)",
        parts=lambda wide: [_rows(wide), _pairs(wide)],
    )


def _rows(wide: float) -> Sketch:
    """Rows of tokens, one document each at the left (on a phone above), together at the right."""
    abreast = wide > 400
    long = (wide - 40) / 2 if abreast else wide - 8
    shapes: list[Shape] = [
        Words(x=4, y=14, text=f"one document per row: {percent(FULL)} full", bold=True, align="start")
    ]
    shapes += _strips([(T,) for T in DOCUMENTS], 4.0, 24.0, long)
    x, y = (wide - long - 4, 0.0) if abreast else (4.0, 24.0 + 22 * len(DOCUMENTS) + 8)
    shapes.append(
        Words(x=x, y=y + 14, text=f"packed: {percent(1 - PACKED.empty)} full", bold=True, align="start")
    )
    shapes += _strips(PACKED.rows, x, y + 24, long)
    return Sketch(wide, 24 + 22 * len(DOCUMENTS) if abreast else y + 24 + 22 * len(PACKED.rows), shapes)


def _strips(
    rows: list[tuple[int, ...]] | tuple[tuple[int, ...], ...], x: float, y: float, long: float
) -> list[Shape]:
    shapes: list[Shape] = []
    for k, row in enumerate(rows):
        shapes.append(Area(x=x, y=y + 22 * k, wide=long, high=18, color=IDLE, shade=0.05, dashed=True))
        start = x
        for T in row:
            shapes.append(
                Area(x=start, y=y + 22 * k, wide=long * T / ROW, high=18, color=COLORS[T], shade=0.5)
            )
            start += long * T / ROW
    return shapes


def _pairs(wide: float) -> Sketch:
    """Queries down, keys across: under the causal mask alone, and within documents."""
    side = 9.0 if wide > 400 else 8.0
    across = side * ROW / PART
    x0, x1 = (wide / 2 - across) / 2, (3 * wide / 2 - across) / 2
    return Sketch(
        wide,
        across + 46,
        [
            Words(x=x0 + across / 2, y=34, text="causal mask only"),
            Words(x=x1 + across / 2, y=34, text="with document mask"),
            Cells(x=x0, y=44, rows=_mask((ROW,)), wide=side, high=side, air=1.0),
            Cells(x=x1, y=44, rows=_mask(SHOWN), wide=side, high=side, air=1.0),
        ],
    )


def _mask(documents: tuple[int, ...]) -> list[list[int | None]]:
    """Which pairs are attended to, in the color of their document."""
    of = [k for k, T in enumerate(documents) for _ in range(T // PART)]
    of += [-1] * (ROW // PART - len(of))
    color = [COLORS.get(T, IDLE) for T in documents]
    return [
        [color[of[i]] if of[i] == of[j] and j <= i and of[i] >= 0 else None for j in range(len(of))]
        for i in range(len(of))
    ]
