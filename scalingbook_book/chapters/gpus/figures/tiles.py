"""Figures of a tiled matmul: reuse of operands in L2, and SMs that are idle in the last wave."""

from math import ceil, sqrt

from scalingbook_book.chapters.gpus.figures.facts import L2, REGISTERS, SMEM, SMS
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import CACHE, MATH, MEMORY, Area, Cells, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import rules
from scalingbook_lib.machines.chips import H100
from scalingbook_lib.units import binary, percent

TILE = 128, 256  # rows and columns of the product that an SM works on
PATCH = 12, 11  # tiles at once
ROWS = (1024, 1152)
COLUMNS = 4096


def intensity(rows: float, columns: float) -> float:
    """FLOPs for each byte of the two strips that a bf16 tile of so many rows and columns reads."""
    return rows * columns / (rows + columns)


def patch() -> Figure:
    """The 132 tiles that run at the same time, the strips they share, and the memories of an H100."""
    alone = intensity(*TILE)
    together = intensity(TILE[0] * PATCH[0], TILE[1] * PATCH[1])
    ridge = rules.ridge(H100)
    return Figure(
        key="gpus.patch",
        alt=f"A rectangle of {PATCH[0]} by {PATCH[1]} tiles of an output matrix, with the strips of its operands at its left and top; one tile and its two strips are highlighted. "
        f"A single tile has {alone:.0f} FLOPs per byte, and the rectangle has {together:.0f}. Beside it are the memories of an H100 with areas by bytes: a large square for HBM and three tiny ones.",
        caption="Arithmetic intensity of one tile and of the rectangle of tiles that all SMs compute at the "
        f"same time. On its own, a tile has an intensity of {alone:.0f} FLOPs per byte, below the "
        f"ridge point of {ridge:.0f}. But the {SMS} SMs share the strips of their operands, and L2 "
        f"reads each strip from HBM once, so the intensity of the whole rectangle, {together:.0f}, "
        "is the one that counts. (The second drawing shows the memories of an H100, with areas by bytes.)",
        parts=lambda wide: (
            [Sketch(wide, 250, [*_tiles(10), *_memories(440)])]
            if wide > 400
            else [Sketch(wide, 250, _tiles(2)), Sketch(wide, 234, _memories(66))]
        ),
    )


def _tiles(x: float) -> list[Shape]:
    high, wide, gap = 13.0, 20.0, 30.0
    top, left = 48.0, x + gap + 10
    watched = 4, 6
    grid = [[CACHE] * PATCH[1]] * PATCH[0]
    tile = Cells(
        x=left + wide * watched[1], y=top + high * watched[0], rows=[[MATH]], wide=wide, high=high, shade=0.9
    )
    right = [[MATH if j == watched[1] else MEMORY for j in range(PATCH[1])]]
    down = [[MATH if i == watched[0] else MEMORY] for i in range(PATCH[0])]
    said = f"one tile: {intensity(*TILE):.0f} FLOPs/byte; all: {intensity(TILE[0] * PATCH[0], TILE[1] * PATCH[1]):.0f}"
    return [
        Cells(x=left, y=top, rows=grid, wide=wide, high=high, shade=0.3),
        tile,
        Cells(x=left, y=top - gap, rows=right, wide=wide, high=gap - 6),
        Cells(x=x + 10, y=top, rows=down, wide=gap - 6, high=high),
        Words(x=left + wide * PATCH[1] / 2, y=14, text="strips of the operands, read once", quiet=True),
        Words(x=left + wide * PATCH[1] + 6, y=top + 14, text="one tile\nper SM", align="start", quiet=True),
        Words(x=left + wide * PATCH[1] / 2, y=top + high * PATCH[0] + 18, text=said),
        Words(
            x=left + wide * PATCH[1] / 2,
            y=top + high * PATCH[0] + 36,
            text=f"ridge point of HBM: {rules.ridge(H100):.0f}",
            quiet=True,
        ),
    ]


def _memories(x: float) -> list[Shape]:
    """Squares with areas by bytes."""
    side = 168.0
    small = {
        "L2": (L2, CACHE),
        "SMEM and L1, all SMs": (SMS * SMEM, MEMORY),
        "registers, all SMs": (SMS * REGISTERS, MEMORY),
    }
    shapes: list[Shape] = [
        Area(x=x, y=8, wide=side, high=side, color=MEMORY, text=f"HBM\n{binary(H100.hbm_bytes)}")
    ]
    for k, (name, (nbytes, color)) in enumerate(small.items()):
        dot, y = side * sqrt(nbytes / H100.hbm_bytes), 188 + 17.0 * k
        shapes += [
            Area(x=x + 2, y=y - dot / 2, wide=dot, high=dot, color=color, shade=1),
            Words(x=x + 14, y=y + 4, text=f"{name}, {binary(nbytes)}", align="start"),
        ]
    return shapes


def busy(rows: int) -> tuple[int, int, float]:
    """Number of tiles of a matmul with that many rows, its waves, and the fraction of SM time that is used."""
    tiles = ceil(rows / TILE[0]) * ceil(COLUMNS / TILE[1])
    waves = ceil(tiles / SMS)
    return tiles, waves, tiles / (waves * SMS)


def waves() -> Figure:
    """The waves of tiles of two matmuls, one of which leaves the second wave almost empty."""
    few, more = (busy(rows) for rows in ROWS)
    return Figure(
        key="gpus.waves",
        alt=f"Two timelines with {SMS} columns, one per SM. {few[0]} tiles fill one wave except for {SMS - few[0]} columns. {more[0]} tiles fill one wave and "
        f"{more[0] - SMS} columns of a second wave, whose other columns are empty.",
        caption=f"Wave quantization: tiles of a matmul on {SMS} SMs over time. With {few[0]} tiles, the SMs "
        f"are busy {percent(few[2])} of the time. With {more[0]}, there are {more[0] - SMS} more "
        f"tiles than SMs, so they take as long as {2 * SMS} tiles, and the SMs are busy only "
        f"{percent(more[2])} of the time. (Tiles of {TILE[0]} × {TILE[1]}, {COLUMNS:,} columns.)",
        parts=lambda wide: [_waves(wide)],
    )


def _waves(wide: float) -> Sketch:
    pitch = (wide - 8) / SMS
    shapes: list[Shape] = []
    y = 0.0
    for rows in ROWS:
        tiles, rounds, share = busy(rows)
        columns = [[MATH if k + wave * SMS < tiles else None for k in range(SMS)] for wave in range(rounds)]
        shapes += [
            Words(x=4, y=y + 16, text=f"{rows:,} rows, {tiles} tiles", align="start", bold=True),
            Words(x=wide - 4, y=y + 16, text=f"{percent(share)} busy", align="end"),
            Cells(x=4, y=y + 26, rows=columns, wide=pitch, high=30, air=min(1.2, pitch / 3)),
        ]
        y += 26 + 30.0 * rounds + 12
    shapes.append(Words(x=4, y=y + 2, text=f"across: {SMS} SMs; down: time", align="start", quiet=True))
    return Sketch(wide, y + 10, shapes)
