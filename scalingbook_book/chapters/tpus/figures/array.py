"""Figures of a systolic array: with many rows, with a small batch, and with sizes that need padding."""

from collections.abc import Sequence
from itertools import accumulate

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, Area, Arrow, Cells, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines import systolic as unit
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.units import BF16, percent

RUN = unit.simulate([[1, 2], [3, 4]], [[5, 6], [7, 8]])
SIDE = unit.peak_of(V5E).side
ROWS = (8, SIDE, round(unit.rows_for(0.9, SIDE)))
CELL = 54.0


def systolic() -> Figure:
    """Two rows past 2 x 2 weights, cycle by cycle."""
    out = "; ".join(", ".join(map(str, _leaving(frame))) or "none" for frame in RUN.frames[RUN.load_cycles :])
    return Figure(
        key="tpus.systolic",
        alt="Four pictures of an array of 2 × 2 cells with the weights 5, 6, 7 and 8, one for each cycle. Rows "
        f"enter from the left, the second number one cycle later. Sums that leave at the bottom, by cycle: {out}.",
        caption="A systolic array, cycle by cycle. Weights stay in place, activations move right, and "
        "partial sums move down. Each activation that enters is used by a whole row of cells, and "
        "no cell reads from memory.",
        parts=lambda wide: [_frames(wide)],
    )


def _leaving(frame: unit.ArrayFrame) -> list[int]:
    """The sums that leave below the last row of cells."""
    return [cell.partial for cell in frame.cells[-1] if cell.busy and cell.partial is not None]


def _frames(wide: float) -> Sketch:
    abreast = 4 if wide > 400 else 2
    frames = RUN.frames[RUN.load_cycles :]
    shapes = [
        shape
        for c, frame in enumerate(frames)
        for shape in _frame(wide / abreast * (c % abreast) + 42, 190.0 * (c // abreast) + 34, c, frame)
    ]
    return Sketch(wide, 190.0 * (len(frames) // abreast), shapes)


def _frame(x: float, y: float, c: int, frame: unit.ArrayFrame) -> list[Shape]:
    shapes: list[Shape] = [Words(x=x + CELL, y=y - 16, text=f"cycle {c}", bold=True)]
    for k, row in enumerate(frame.cells):
        if row[0].busy:
            shapes.append(
                Words(x=x - 30, y=y + CELL * (k + 0.5) + 5, text=f"{row[0].activation}", color=MEMORY)
            )
            level = y + CELL * (k + 0.5)
            shapes.append(Arrow(x0=x - 22, y0=level, x1=x - 3, y1=level, color=MEMORY))
        for n, cell in enumerate(row):
            text = (
                f"{cell.activation} × {cell.weight}\n→ {cell.partial}"
                if cell.busy
                else f"{cell.weight or cell.waiting}"
            )
            color = MATH if cell.busy else IDLE
            left, top = x + CELL * n, y + CELL * k
            shade = 0.4 if cell.busy else 0.05
            shapes.append(
                Area(
                    x=left, y=top, wide=CELL - 2, high=CELL - 2, text=text, color=color, shade=shade, size=12
                )
            )
    low = y + CELL * len(frame.cells)
    for n, cell in enumerate(frame.cells[-1]):
        if cell.busy:
            at = x + CELL * (n + 0.5)
            shapes.append(Arrow(x0=at, y0=low + 1, x1=at, y1=low + 20, color=MATH))
            shapes.append(Words(x=at, y=low + 36, text=f"{cell.partial}", bold=True))
    return shapes


def busy(rows: int, t: int) -> list[float]:
    """The share of cells that multiply in each cycle: cell (k, n) works while 0 <= cycle - k - n < rows."""
    # how many cells lie k + n steps from the corner, summed up, less those whose rows are through
    diagonals = [min(s + 1, 2 * t - 1 - s) for s in range(2 * t - 1)]
    reached = [0, *accumulate(diagonals + [0] * rows)]
    return [(reached[c + 1] - reached[max(0, c + 1 - rows)]) / t**2 for c in range(rows + 2 * t - 2)]


def fill() -> Figure:
    """How busy one tile keeps the array, from the first multiplication to the last."""
    shares = {M: percent(unit.utilization(M, SIDE)) for M in ROWS}
    said = ", ".join(f"{share} with {M:,} rows" for M, share in shares.items())
    return Figure(
        key="tpus.fill",
        alt=f"Busy cells over time, for rows that pass one tile of {SIDE} × {SIDE}. Eight rows make a "
        f"low bump, {SIDE} a triangle, {ROWS[-1]:,} a long plateau. Average fraction of busy cells: "
        f"{said}.",
        caption=f"Busy cells of a {SIDE} × {SIDE} array over time, for a single tile. Filling and draining take the same "
        "time for few rows and for many, so the array is used well only if there are many rows.",
        parts=lambda wide: [_lanes(wide, shares)],
    )


def _lanes(wide: float, shares: dict[int, str]) -> Sketch:
    """A lane for each number of rows: the cells at work as height, all on one clock."""
    left, tall, step = 4.0, 62.0, 32  # cycles a column
    scale = (wide - 8) / (ROWS[-1] + 2 * SIDE)
    shapes: list[Shape] = []
    for k, (M, share) in enumerate(shares.items()):
        base, columns = 92.0 * k + 82, busy(M, SIDE)[step // 2 :: step]
        words = f"{M:,} rows: {share} of cells busy"
        shapes += [
            *(
                Cells(
                    x=left + step * scale * c,
                    y=base - tall * b,
                    rows=[[MATH]],
                    wide=step * scale,
                    high=tall * b,
                    air=0,
                )
                for c, b in enumerate(columns)
            ),
            Arrow(x0=left, y0=base, x1=wide - 4, y1=base, heads=0, thick=0.8),
            Words(x=left, y=base - tall - 8, text=words, align="start", bold=True),
        ]
    ends = f"{ROWS[-1] + 2 * SIDE - 2:,} cycles"
    low = 92.0 * len(shares) + 6
    shapes.append(Words(x=left, y=low, text="height: busy cells", align="start", quiet=True))
    shapes.append(Words(x=wide - 4, y=low, text=ends, align="end", quiet=True))
    return Sketch(wide, 92.0 * len(shares) + 12, shapes)


def padding() -> Figure:
    """Weights and zeros: two arrays, and a matrix in memory."""
    shares = [percent(unit.padding(64, 128, 129, side).useful) for side in (128, 256)]
    kept = unit.storage(20, 200)
    return Figure(
        key="tpus.padding",
        alt=f"W of 128 × 129: with tiles of side 128, a full tile and a second one with a single column, {shares[0]} used; "
        f"with a tile of side 256, {shares[1]} used. Next to it, bf16[20, 200] in tiles of 8 × 128: stored as "
        f"{kept.padded[0]} × {kept.padded[1]}, {percent(kept.useful_bytes / kept.bytes)} used.",
        caption="Partly filled tiles: W[128, 129] in matrix units with sides of 128 and 256, and an array in memory. A single additional "
        "column needs another tile, and its zeros take as much time to multiply and as many bytes "
        "to store as weights would.",
        parts=lambda wide: [_tiles(wide)],
    )


def _tiles(wide: float) -> Sketch:
    size, x = (180.0, 40.0) if wide > 400 else (130.0, 12.0)
    other = x + size + (70 if wide > 400 else 40)
    K, N = 128, 129
    shapes: list[Shape] = []
    for left, side in ((x, 128), (other, 256)):
        held, scale = unit.padding(64, K, N, side), size / 256
        array = f"W[{K}, {N}], " * (wide > 400)
        words = f"{array}tiles of {side}²:\n{percent(held.useful)} used"
        shapes += _held(
            left, 38, (held.n_tiles, held.k_tiles), (side * scale, side * scale), (N * scale, K * scale)
        )
        shapes.append(Words(x=left + size / 2, y=14, text=words))
    top = 38 + size + 50 if wide < 400 else 38.0
    left, scale = (8.0, 320 / 256) if wide < 400 else (other + size + 40, 150 / 256)
    kept = unit.storage(20, 200, BF16)
    rows, columns = kept.padded
    high = 4.0
    shapes += _held(left, top, (columns // 128, rows // 8), (128 * scale, 8 * high), (200 * scale, 20 * high))
    used = f"bf16[20, 200] in HBM:\n{percent(kept.useful_bytes / kept.bytes)} used"
    shapes.append(Words(x=left + 128 * scale, y=top - 24, text=used))
    shapes.append(Words(x=left + 128 * scale, y=top + 3 * 8 * high + 20, text="tiles of 8 × 128", quiet=True))
    return Sketch(wide, (top + 126) if wide < 400 else 46 + size, shapes)


def _held(
    x: float, y: float, tiles: Sequence[int], tile: Sequence[float], used: Sequence[float]
) -> list[Shape]:
    """Tiles across and down, and the part of them that holds numbers."""
    across, down = tile
    outlines = [
        Area(x=x + across * i, y=y + down * j, wide=across, high=down, color=IDLE, shade=0.07, dashed=True)
        for i in range(tiles[0])
        for j in range(tiles[1])
    ]
    return [*outlines, Area(x=x, y=y, wide=used[0], high=used[1], color=MEMORY, shade=0.55)]
