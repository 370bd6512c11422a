"""Explorers of tiling one matmul on a chip, and of sharding it over several chips."""

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
            Curve("memory", _SIDES, fits, 0),
            Curve("too large for VMEM", _SIDES, too_large, 0, dashed=True),
            Curve("compute", _SIDES, [t.roofline.math_s for t in square], 1),
            RefLine("2 × ridge", roofline.square_tile(on)),
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
            Readout.percent("fraction of VMEM", now.vmem_fraction or 0),
        ),
        columns=2,
    )


def _tile_map(rows: int, columns: int) -> Grid:
    """Y as a grid of at most 8 × 8 tiles, with the strips of X to the left and those of W above."""
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
    fit = "Their buffers fit in VMEM." if now.fits else "But their buffers do not fit in VMEM."
    return (
        f"{now.roofline.bound.capitalize()} on {on.name}: with tiles of {rows:,} × {columns:,}, HBM "
        f"traffic is {read:.3g} times the bytes of the three matrices. {fit}"
    )


TILES = Explorer(
    key="rooflines.tiles",
    title="Tile size and HBM traffic",
    question="How large must the tiles of X[8192, 8192] · W[8192, 8192] be, and when do they stop fitting?",
    controls={
        "rows": Slider("tile rows", 8, 8192, 256, "pow2"),
        "columns": Slider("tile columns", 8, 8192, 256, "pow2"),
        "depth": Slider("depth of a step", 64, 8192, 512, "pow2"),
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
        [f"along {name[0]}" for name in cases],
        (
            Series("compute on each chip", [t.math_s for t in cases.values()], 2),
            Series("communication", [t.comms_s for t in cases.values()], 3),
        ),
    )
    widths = [2.0 ** (8 + e / 2) for e in range(19)]
    many = [roofline.split_matmul(B, wide, F, on, axis, split="D", keep_sharded=sharded) for wide in widths]
    chart = Chart(
        Scale("width D", "", "log", widths[0], widths[-1]),
        Scale("time, sharded along D", "s", "log"),
        (
            Curve("compute", widths, [t.math_s for t in many], 2),
            Curve("communication", widths, [t.comms_s for t in many], 3),
            *([RefLine("threshold", threshold)] if widths[0] < threshold < widths[-1] else []),
            *([RefLine("your D", D)] if _SPLITS[split] == "D" else []),
        ),
    )
    return View(
        _split_verdict(_SPLITS[split], D, n, now, threshold),
        (bars, chart),
        (
            Readout("compute on each chip", now.math_s, "s"),
            Readout("communication", now.comms_s, "s"),
            Readout("bytes into each chip", now.bytes, "B"),
            Readout("threshold of D", threshold, "", count(round(threshold))),
            Readout("bandwidth into each chip", axis.bytes_per_s, "B/s"),
        ),
        columns=2,
    )


def _split_verdict(split: str, D: int, n: int, now: roofline.Roofline, threshold: float) -> str:
    if split != "D":
        return (
            f"Sharded along {split}, the matmul needs no communication, and the {n} chips take "
            f"{si(now.math_s, 's')}."
        )
    side = "above" if now.bound == "compute-bound" else "below"
    return (
        f"{now.bound.capitalize()}: sharded along D, the chips have to sum their partial results for Y "
        f"over the links. D = {D:,} is {side} the threshold of {threshold:,.0f}, which does not depend "
        "on B or F."
    )


SPLIT = Explorer(
    key="rooflines.split",
    title="Sharding one matmul: which dimension?",
    question="How do B, D and F affect the compute time and the communication time?",
    controls={
        "split": Choice("sharded along", tuple(_SPLITS), "D (summed over)"),
        "B": Slider("tokens B", 1, 65536, 512, "pow2"),
        "D": Slider("width D", 256, 131072, 8192, "pow2"),
        "F": Slider("width F", 256, 131072, 8192, "pow2"),
        "n": Slider("chips n", 2, 16, 2, "pow2"),
        "sharded": Switch("result may remain sharded", False),
        "chip": Chips("chip", WITH_TORUS, "TPU v5e"),
    },
    view=_split,
)
