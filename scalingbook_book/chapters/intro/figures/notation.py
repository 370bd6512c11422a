"""Figures of the notation: the sizes of a layer, four ways to count link bandwidth, six sharded arrays."""

from scalingbook_book.reader.draw.svg import measure
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import (
    CACHE,
    IDLE,
    MATH,
    MEMORY,
    NETWORK,
    Area,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.shards import extent, sharded, subscripted
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines.chips import H100, V5P, Chip
from scalingbook_lib.notation import Mesh, parse
from scalingbook_lib.units import si

SQUARE, ROWS = Mesh(X=2, Y=2), 8
WRITTEN = {
    "A[I, J]": "replicated",
    "A[I_X, J]": "rows over X",
    "A[I_X, J_Y]": "rows X, columns Y",
    "A[I_XY, J]": "rows over X and Y",
    "A[I, J]{U_X}": "partial sums over X",
    "A[I, J_X]": "columns over X",
}
PRODUCT = ("A[I, J_X]", "B[J_X, K]", "C[I, K]{U_X}")
HIGH = extent(SQUARE, 34)[1]
SIDE = {"D": 58.0, "NH": 58.0, "KH": 20.0, "F": 112.0, "T": 42.0, "S": 84.0, "V": 166.0}  # schematic
LAYER = (  # name, what goes down, what goes across, color
    ("activations", "T", "D", CACHE),
    ("queries", "D", "NH", MEMORY),
    ("keys", "D", "KH", MEMORY),
    ("values", "D", "KH", MEMORY),
    ("scores, N times", "T", "S", IDLE),
    ("output", "NH", "D", MEMORY),
    ("up, gate", "D", "F", MATH),
    ("down", "F", "D", MATH),
    ("key cache", "S", "KH", CACHE),
    ("value cache", "S", "KH", CACHE),
    ("unembedding", "D", "V", IDLE),
)


def letters() -> Figure:
    """The sizes of a layer, as sides of its arrays."""
    return Figure(
        key="intro.letters",
        alt="The arrays of a layer as rectangles with letters at their sides: activations T by D; queries D by NH, "
        "keys and values D by KH; scores T by S for each of N heads; output NH by D; up and gate D by F, down F by D; "
        "caches S by KH; unembedding D by V.",
        caption="The arrays of one layer, with the letter of each size at its side. There are K key-value heads, and each is "
        "shared by G = N/K of the N query heads. A model has L such layers; a batch has B tokens. (Not to scale.)",
        parts=lambda wide: [_layer(wide)],
    )


def _layer(wide: float) -> Sketch:
    """The arrays from left to right, in as many rows as it takes."""
    shapes: list[Shape] = []
    x, y, deep = 0.0, 0.0, 0.0
    for name, down, across, color in LAYER:
        high, long = SIDE[down], SIDE[across]
        room = max(long + 34, measure(name) + 10)
        if x + room > wide:
            x, y, deep = 0.0, y + deep + 46, 0.0
        left = x + (room - long) / 2 + 8
        shapes.append(
            Area(x=left, y=y + 20, wide=long, high=high, top=across, left=down, below=name, color=color)
        )
        x, deep = x + room + 6, max(deep, high)
    return Sketch(wide, y + deep + 42, shapes)


def links() -> Figure:
    """The bandwidth of one link, and what it adds up to: per axis, per chip, and per chip in both directions."""
    counts = {chip: _counts(chip) for chip in (V5P, H100)}
    told = {chip: [si(rate, "B/s") for rate in rates.values()] for chip, rates in counts.items()}
    return Figure(
        key="intro.links",
        alt=f"Bars for two chips. A {V5P.name}: one link in one direction {told[V5P][0]}, an axis {told[V5P][1]}, all six "
        f"links in one direction {told[V5P][2]}, in both {told[V5P][3]}. An {H100.name}: one link {told[H100][0]}, all "
        f"{H100.links} links in one direction {told[H100][1]}, in both {told[H100][2]}.",
        caption=f"The bandwidth of a {V5P.name} and of an {H100.name}, counted in several ways: in one "
        "direction, except for the last bar. Vendors quote the last bar, while this book starts from one link, so "
        f"{told[V5P][3]} and {told[V5P][0]} describe the same {V5P.name}. Before you divide by a "
        "bandwidth, find out which of these it is.",
        parts=lambda wide: [_links(wide, counts)],
    )


def _counts(chip: Chip) -> dict[str, float]:
    """The bandwidth of a chip's links in bytes/s, from one link in one direction up to all links in both."""
    one, every = chip.link_bytes_per_s, chip.links * chip.link_bytes_per_s
    axis = {"W_{ici}: one axis of a ring": 2 * one} if chip is V5P else {}
    whole = "W_{dom}: all links" if chip is H100 else "all links"
    return {"W_{1}: one link": one} | axis | {whole: every, "both directions": 2 * every}


def _links(wide: float, counts: dict[Chip, dict[str, float]]) -> Sketch:
    """A group of bars for each chip, on one scale."""
    left, longest = (214.0 if wide > 400 else 176.0), max(max(rates.values()) for rates in counts.values())
    scale = (wide - left - 78) / longest
    shapes: list[Shape] = []
    y = 0.0
    for chip, rates in counts.items():
        shapes.append(Words(x=2, y=y + 14, text=f"{chip.name}, {chip.links} links", bold=True, align="start"))
        for name, rate in rates.items():
            y += 30
            bar = Area(
                x=left, y=y - 6, wide=scale * rate, high=20, color=NETWORK, shade=0.5, right=si(rate, "B/s")
            )
            shapes += [Words(x=left - 8, y=y + 9, text=name, align="end"), bar]
        y += 40
    return Sketch(wide, y - 16, shapes)


def written() -> Figure:
    """Six shardings of an array on four chips, what each chip holds, and a matmul."""
    return Figure(
        key="intro.written",
        alt="Six groups of two by two squares, X down and Y across, one square for each chip, each filled with the "
        "shard of an array that it holds: the whole array; the upper or the lower half; a quarter; a quarter of the rows; "
        "a partial sum of the whole; the left or the right half. Below, columns of A times the matching rows of B give "
        "partial sums of all of C.",
        caption=f"Six shardings of an {ROWS} × {ROWS} array on the mesh X=2, Y=2 (X down, Y across), and a "
        "sharded matmul. Each color is a chip, and the local shape is written below. A mesh axis "
        "that shards no dimension replicates the array; one that shards the dimension that a matmul "
        "sums over leaves partial sums.",
        parts=lambda wide: [_written(wide), _product(wide)],
    )


def _written(wide: float) -> Sketch:
    """Three groups abreast, or two."""
    columns, deep = (3 if wide > 400 else 2), HIGH + 58
    shapes: list[Shape] = []
    for k, (text, said) in enumerate(WRITTEN.items()):
        x, y = wide / columns * (k % columns + 0.5), k // columns * (deep + 10)
        shapes += [*_array(text, x, y), Words(x=x, y=y + deep - 2, text=said, quiet=True, size=12)]
    return Sketch(wide, -(-len(WRITTEN) // columns) * (deep + 10), shapes)


def _product(wide: float) -> Sketch:
    """A matmul whose contracting dimension is sharded: its operands, and what each chip holds of the result."""
    shapes: list[Shape] = []
    for k, (text, sign) in enumerate(zip(PRODUCT, ("·", "→", ""), strict=True)):
        x = wide * (2 * k + 1) / 6
        shapes += _array(text, x, 0)
        if sign:
            shapes.append(Words(x=x + wide / 6, y=HIGH / 2 + 28, text=sign, size=16))
    return Sketch(wide, HIGH + 48, shapes)


def _array(text: str, x: float, y: float) -> list[Shape]:
    """An array over its squares, its local shape below."""
    shape = " × ".join(map(str, parse(text).local_shape(SQUARE, I=ROWS, J=ROWS, K=ROWS)))
    return [
        Words(x=x, y=y + 14, text=subscripted(text), bold=True),
        *sharded(text, SQUARE, x=x - HIGH / 2, y=y + 24, side=34),
        Words(x=x, y=y + HIGH + 41, text=shape),
    ]
