"""What does a tile re-read, and what does a split exchange? Two ways to cut one matmul."""

import math
from itertools import pairwise

from scalingbook_book.reader.explorers.parts import (
    WITH_TORUS,
    WITH_VMEM,
    Bars,
    Cell,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Grid,
    Points,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    Switch,
    View,
)
from scalingbook_lib import roofline
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.units import count, si

_SHOWN = 8  # tiles drawn along each side
_SIZE = 8192  # of X, W and Y
_SIDES = sorted(_SIZE / (k * 2**e) for k in (1, 3) for e in range(11 - k))  # 8 to 8,192: whole tiles


# Tiles


def _tiles(*, rows: int, columns: int, depth: int, chip: str) -> View:
    on = chips.find(chip)

    def tiled(rows: float, columns: float) -> roofline.TiledMatmul:
        sides = {"rows": rows, "columns": columns, "depth": depth}
        return roofline.tiled_matmul(_SIZE, _SIZE, _SIZE, on, **sides)  # type: ignore[arg-type]

    now = tiled(rows, columns)
    square = [tiled(side, side) for side in _SIDES]
    read = now.roofline.bytes / (2 * 3 * _SIZE**2)
    fits = [t.roofline.memory_s if t.fits else math.nan for t in square]
    too_large = [
        math.nan if t.fits and after.fits else t.roofline.memory_s
        for t, after in pairwise([*square, square[-1]])
    ]
    side = 2 * rows * columns / (rows + columns)  # of the square tile with the same intensity
    chart = Chart(
        Scale("side of a square tile", "", "log", _SIDES[0], _SIDES[-1]),
        Scale("time", "s", "log"),
        (
            Curve("HBM", _SIDES, fits, 0),
            Curve("too large for VMEM", _SIDES, too_large, 0, dashed=True),
            Curve("math", _SIDES, [t.roofline.math_s for t in square], 1),
            RefLine("2 · ridge", roofline.square_tile(on)),
            Points("your tile", [side], [now.roofline.lower_s], ["your tile"], 2),
        ),
    )
    return View(
        _tiles_verdict(rows, columns, now, read, on),
        (_tile_map(rows, columns), chart),
        (
            Readout("intensity", now.roofline.intensity, "FLOPs/byte"),
            Readout("ridge", now.roofline.ridge, "FLOPs/byte"),
            Readout("bytes read and written", now.roofline.bytes, "B"),
            Readout.binary("VMEM needed", now.vmem_bytes),
            Readout.percent("share of VMEM", now.vmem_fraction or 0),
        ),
        columns=2,
    )


def _tile_map(rows: int, columns: int) -> Grid:
    """Y as tiles, at most 8 by 8 of them, with the strips of X on their left and those of W above."""
    down, across = math.ceil(_SIZE / rows), math.ceil(_SIZE / columns)
    high, wide = min(down, _SHOWN), min(across, _SHOWN)
    marked = (min(2, high - 1), min(4, wide - 1))
    cells = [[Cell(level=0), *(_strip(i == marked[1], "W") for i in range(wide))]]
    cells += [
        [_strip(j == marked[0], "X"), *(_tile((j, i) == marked) for i in range(wide))] for j in range(high)
    ]
    more = f", {high} × {wide} shown" if (down, across) != (high, wide) else ""
    return Grid(f"Y in {down:,} × {across:,} tiles{more}", (), (), cells)


def _strip(read: bool, name: str) -> Cell:
    return Cell(name if read else "", 3, level=1.0 if read else 0.25)


def _tile(marked: bool) -> Cell:
    return Cell("Y" if marked else "", 2 if marked else 0, level=1.0 if marked else 0.25)


def _tiles_verdict(rows: int, columns: int, now: roofline.TiledMatmul, read: float, on: Chip) -> str:
    fit = "and they fit in VMEM" if now.fits else "but they do not fit in VMEM"
    return (
        f"Tiles of {rows:,} × {columns:,} move {read:.3g} times the bytes of the three matrices: "
        f"{now.roofline.bound} on {on.name}, {fit}."
    )


TILES = Explorer(
    key="rooflines.tiles",
    title="Tiles: how often the inputs are read",
    question="How large must a tile of X[8192, 8192] · W[8192, 8192] be, and when does it no longer fit?",
    controls={
        "rows": Slider("rows of a tile", 8, 8192, 256, "pow2"),
        "columns": Slider("columns of a tile", 8, 8192, 256, "pow2"),
        "depth": Slider("depth of one step", 64, 8192, 512, "pow2"),
        "chip": Chips("chip", WITH_VMEM, "TPU v5e"),
    },
    view=_tiles,
)


# Two chips or more

_SPLITS = {
    "B (rows of X)": "B",
    "D (summed over)": "D",
    "F (columns of W)": "F",
}


def _split(*, B: int, D: int, F: int, split: str, n: int, sharded: bool, chip: str) -> View:
    on = chips.find(chip)
    axis = on.axis(n)
    cases = {
        name: roofline.split_matmul(B, D, F, on, axis, split=dimension, keep_sharded=sharded)  # type: ignore[arg-type]
        for name, dimension in _SPLITS.items()
    }
    now, threshold = cases[split], roofline.break_even_contraction(on, axis, keep_sharded=sharded)
    bars = Bars(
        Scale("time", "s"),
        [f"split {name[0]}" for name in cases],
        (
            Series("math on each chip", [t.math_s for t in cases.values()], 2),
            Series("exchange over the links", [t.comms_s for t in cases.values()], 3),
        ),
    )
    widths = [2.0 ** (8 + e / 2) for e in range(19)]
    many = [roofline.split_matmul(B, wide, F, on, axis, split="D", keep_sharded=sharded) for wide in widths]
    chart = Chart(
        Scale("width D", "", "log", widths[0], widths[-1]),
        Scale("time, D split", "s", "log"),
        (
            Curve("math", widths, [t.math_s for t in many], 2),
            Curve("exchange", widths, [t.comms_s for t in many], 3),
            *([RefLine("break-even D", threshold)] if widths[0] < threshold < widths[-1] else []),
            *([RefLine("your D", D)] if _SPLITS[split] == "D" else []),
        ),
    )
    return View(
        _split_verdict(_SPLITS[split], D, n, now, threshold),
        (bars, chart),
        (
            Readout("math on each chip", now.math_s, "s"),
            Readout("exchange", now.comms_s, "s"),
            Readout("bytes into each chip", now.bytes, "B"),
            Readout("break-even D", threshold, "", count(round(threshold))),
            Readout("a chip receives", axis.bytes_per_s, "B/s"),
        ),
        columns=2,
    )


def _split_verdict(split: str, D: int, n: int, now: roofline.Roofline, threshold: float) -> str:
    if split != "D":
        return f"Split over {split}, the {n} chips exchange nothing and take {si(now.math_s, 's')}."
    side = "above" if now.bound == "compute-bound" else "below"
    return (
        f"Split over D, the sums cross the links: D = {D:,} is {side} the break-even of {threshold:,.0f}, "
        f"whatever B and F are, so the matmul is {now.bound}."
    )


SPLIT = Explorer(
    key="rooflines.split",
    title="One matmul on several chips: which dimension to split",
    question="What do B, D and F do to the time of the arithmetic, and what to the time of the exchange?",
    controls={
        "split": Choice("split", tuple(_SPLITS), "D (summed over)"),
        "B": Slider("tokens B", 1, 65536, 512, "pow2"),
        "D": Slider("width D", 256, 131072, 8192, "pow2"),
        "F": Slider("width F", 256, 131072, 8192, "pow2"),
        "n": Slider("chips on the axis", 2, 16, 2, "pow2"),
        "sharded": Switch("the result may stay split", False),
        "chip": Chips("chip", WITH_TORUS, "TPU v5e"),
    },
    view=_split,
)
