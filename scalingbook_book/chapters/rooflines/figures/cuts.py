"""Figures of tiling one matmul and of sharding it over two chips."""

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import (
    EXPERTS,
    IDLE,
    MATH,
    MEMORY,
    NETWORK,
    Area,
    Arrow,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import roofline
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.units import count, si

SIZE, SIDE = 8192, 512  # of the matrices, and of a tile
TILED = roofline.tiled_matmul(SIZE, SIZE, SIZE, V5E, rows=SIDE, columns=SIDE, depth=SIDE)
ONCE = roofline.matmul(SIZE, SIZE, SIZE, V5E)


def tile() -> Figure:
    """Strips of X and W that one tile of Y reads, and the bytes that tiling moves."""
    read, once = si(TILED.roofline.bytes, "B"), si(ONCE.bytes, "B")
    return Figure(
        key="rooflines.tile",
        alt="X, W and Y as squares. One tile of Y is dark, and the strips that it needs, of X to its left and "
        "of W above it, are colored. The next tile of Y and its strip of W are pale: it needs the same strip "
        f"of X again. Below, two bars: {once} if everything moves once, {read} with tiles of {SIDE}.",
        caption="The strips of X and W that one tile of Y reads. The next tile reads the same strip of X "
        f"again, so with tiles of {SIDE} × {SIDE}, the matmul moves {read} instead of {once}. Larger tiles reduce "
        "this repeated traffic.",
        parts=lambda wide: [
            _strips(wide),
            _bars(wide, {"all once": ONCE.bytes, f"tiles of {SIDE}": TILED.roofline.bytes}),
        ],
    )


def _strips(wide: float) -> Sketch:
    """X to the left of Y and W above it, as in a matmul by hand."""
    side, gap, part = 120.0, 34.0, 20.0
    x0, x1 = wide / 2 - side - gap / 2, wide / 2 + gap / 2
    y0, y1 = 18.0, 18.0 + side + gap - 10
    along, down = x1 + 3 * part, y1 + 2 * part
    shapes: list[Shape] = [
        Area(x=x1, y=y0, color=MEMORY, top="F", left="D", wide=side, high=side, shade=0.08),
        Area(x=x0, y=y1, color=MEMORY, below="D", left="B", wide=side, high=side, shade=0.08),
        Area(x=x1, y=y1, color=MATH, wide=side, high=side, shade=0.08),
        Area(x=along, y=y0, wide=part, high=side, color=MEMORY, shade=0.75),
        Area(x=along + part, y=y0, wide=part, high=side, color=MEMORY, shade=0.25, dashed=True),
        Area(x=x0, y=down, wide=side, high=part, color=MEMORY, shade=0.75),
        Area(x=along, y=down, wide=part, high=part, color=MATH, shade=0.9),
        Area(x=along + part, y=down, wide=part, high=part, color=MATH, shade=0.3, dashed=True),
        Words(x=x1 + 28, y=y0 + 66, text="W", bold=True),
        Words(x=x0 + 60, y=y1 + 96, text="X", bold=True),
        Words(x=x1 + 28, y=y1 + 96, text="Y", bold=True),
        Words(x=x0 + side - 4, y=y0 + 60, text="the strips that\none tile reads", align="end", quiet=True),
        Arrow(x0=x0 + 62, y0=y0 + 84, x1=x0 + 62, y1=down - 3, thick=1),
    ]
    return Sketch(wide, y1 + side + 24, shapes)


def _bars(wide: float, known: dict[str, float]) -> Sketch:
    """Bytes as lengths."""
    left, most = 88.0, max(known.values())
    shapes: list[Shape] = []
    for k, (name, nbytes) in enumerate(known.items()):
        long, y = (wide - 70 - left) * nbytes / most, 6 + 32.0 * k
        shapes.append(Area(x=left, y=y, wide=long, high=24, color=MEMORY, left=name, right=si(nbytes, "B")))
    return Sketch(wide, 72, shapes)


B, D, F = 512, 8192, 8192
LINE = V5E.axis(2)


def cuts() -> Figure:
    """Three ways to shard one matmul over two chips, and the bytes that each sends over the link."""
    sent = {cut: roofline.split_matmul(B, D, F, V5E, LINE, split=cut).bytes for cut in ("B", "F", "D")}
    said = ", ".join(f"{cut} {'none' if not n else si(n, 'B')}" for cut, n in sent.items())
    wide_enough = count(round(roofline.break_even_contraction(V5E, LINE)))
    return Figure(
        key="rooflines.cuts",
        alt="X times W gives Y, three times, with two chips in two colors. Sharded along B, each chip "
        "has half the rows of X and Y and all of W. Sharded along F, it has half the columns of W "
        "and Y and all of X. Sharded along D, it has half of X, half of W, and a partial sum of all "
        "of Y; the two partial sums are added. Bytes over the link when sharded along each "
        f"dimension: {said}.",
        caption="Three ways to shard one matmul over two chips. Along B or F, the chips do not need to "
        "communicate. Along D, each chip has a partial sum of all of Y, and on a TPU v5e, the link "
        f"keeps up only if D is above {wide_enough}.",
        parts=lambda wide: [_cut(wide, cut, nbytes) for cut, nbytes in sent.items()],
    )


def _cut(wide: float, cut: str, nbytes: float) -> Sketch:
    """X · W → Y in the colors of the two chips, and the bytes that cross the link."""
    rows, depth, side = 46.0, 62.0, 62.0
    room = wide > 400
    x = 90.0 if room else 6.0
    y, w, at_y = 26.0, x + depth + 34, x + depth + side + 78
    said = f"{si(nbytes, 'B')} = 2BF bytes\nover the link" if nbytes else "nothing crosses\nthe link"
    shapes: list[Shape] = [
        *_halves(x, y + 8, (depth, rows), {"B": "down", "D": "across"}.get(cut, "both")),
        *_halves(w, y, (side, depth), {"F": "across", "D": "down"}.get(cut, "both")),
        Words(x=x + depth + 17, y=y + 36, text="·"),
        Words(x=w + side + 24, y=y + 36, text="→"),
        Words(x=x + depth / 2, y=16, text="X[B, D]"),
        Words(x=w + side / 2, y=16, text="W[D, F]"),
        Words(x=at_y + 31, y=16, text="Y[B, F]"),
    ]
    if cut == "D":
        shapes += [
            Area(x=at_y, y=y - 2, wide=side, high=30, color=MEMORY, shade=0.15, dashed=True, text="partial"),
            Area(
                x=at_y, y=y + 38, wide=side, high=30, color=EXPERTS, shade=0.15, dashed=True, text="partial"
            ),
            Words(x=at_y + 31, y=y + 37, text="+", color=NETWORK, bold=True),
        ]
    else:
        shapes += _halves(at_y, y + 8, (side, rows), {"B": "down", "F": "across"}[cut])
    if room:
        shapes.append(Words(x=0, y=y + 36, text=f"along {cut}", align="start", bold=True))
        shapes.append(
            Words(x=at_y + side + 40, y=y + 28, text=said, align="start", color=NETWORK if nbytes else IDLE)
        )
    else:
        line = f"along {cut}: {said.replace(chr(10), ' ')}"
        shapes.append(
            Words(x=6, y=y + 90, text=line, align="start", color=NETWORK if nbytes else IDLE, bold=True)
        )
    return Sketch(wide, 104 if room else 126, shapes)


def _halves(x: float, y: float, size: tuple[float, float], way: str) -> list[Shape]:
    """An array in the colors of two chips: split by rows, split by columns, or replicated."""
    wide, high = size
    if way == "both":
        wide, high = wide - 6, high - 6
        return [
            Area(x=x + 6, y=y + 6, wide=wide, high=high, color=EXPERTS, shade=0.45),
            Area(x=x, y=y, wide=wide, high=high, color=MEMORY, shade=0.45),
        ]
    w, h = (wide / 2, high) if way == "across" else (wide, high / 2)
    second = (x + w, y) if way == "across" else (x, y + h)
    return [
        Area(x=x, y=y, wide=w, high=h, color=MEMORY, shade=0.45),
        Area(x=second[0], y=second[1], wide=w, high=h, color=EXPERTS, shade=0.45),
    ]
