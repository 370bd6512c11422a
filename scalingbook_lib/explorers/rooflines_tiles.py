"""What does a tile re-read, and what does a split exchange? Two ways to cut one matmul."""

import math

from scalingbook_lib import chips, roofline
from scalingbook_lib.chips import Chip
from scalingbook_lib.explorers.controls import Choice, Slider, Switch
from scalingbook_lib.explorers.explorer import Explorer
from scalingbook_lib.explorers.view import (
    Bars,
    Cell,
    Chart,
    Curve,
    Grid,
    Points,
    Readout,
    RefLine,
    Scale,
    Series,
    View,
)  # fmt: skip
from scalingbook_lib.units import binary, count, percent, si

_WITH_VMEM = tuple(name for name, chip in chips.CATALOGUE.items() if chip.vmem_bytes)
_SHOWN = 8  # tiles drawn along each side
_SIDES = [2.0 ** (3 + e / 2) for e in range(21)]  # 8 to 8,192


# Tiles


def _tiles(rows: int, columns: int, depth: int, chip: str) -> View:
    on, size = chips.find(chip), 8192

    def tiled(rows: float, columns: float) -> roofline.TiledMatmul:
        sides = {"rows": min(rows, size), "columns": min(columns, size)}
        return roofline.tiled_matmul(size, size, size, on, **sides, depth=depth)  # type: ignore[arg-type]

    now = tiled(rows, columns)
    square = [tiled(side, side) for side in _SIDES]
    read = now.roofline.bytes / (2 * 3 * size**2)
    chart = Chart(
        Scale("side of a square tile", "", "log", _SIDES[0], _SIDES[-1]),
        Scale("time", "s", "log"),
        (
            Curve("HBM", _SIDES, [t.roofline.memory_s for t in square], 0),
            Curve("math", _SIDES, [t.roofline.math_s for t in square], 1),
            RefLine("2 · ridge", roofline.square_tile(on)),
            Points("your tile", [math.sqrt(rows * columns)], [now.roofline.lower_s], ["your tile"], 2),
        ),
    )
    return View(
        _tiles_verdict(rows, columns, now, read, on),
        (_tile_map(rows, columns, size), chart),
        (
            Readout("intensity", now.roofline.intensity, "FLOPs/byte"),
            Readout("ridge", now.roofline.ridge, "FLOPs/byte"),
            Readout("bytes read and written", now.roofline.bytes, "B"),
            Readout("VMEM needed", now.vmem_bytes, "B", binary(now.vmem_bytes)),
            Readout("share of VMEM", now.vmem_fraction or 0, "", percent(now.vmem_fraction or 0)),
        ),
        columns=2,
    )


def _tile_map(rows: int, columns: int, size: int) -> Grid:
    """Y as tiles, at most 8 by 8 of them, one marked; its row shares a strip of X, its column one of W."""
    down, across = math.ceil(size / rows), math.ceil(size / columns)
    cells = [[_tile(i, j) for j in range(min(across, _SHOWN))] for i in range(min(down, _SHOWN))]
    more = f", its corner of {_SHOWN} × {_SHOWN}" if max(down, across) > _SHOWN else ""
    return Grid(f"Y in {down:,} × {across:,} tiles{more}", (), (), cells)


def _tile(i: int, j: int) -> Cell:
    if i == 0 and j == 0:
        return Cell("", 2, "this tile reads one strip of X and one of W")
    return Cell("", 0, "", level=0.35 if i == 0 or j == 0 else 0.12)


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
        "chip": Choice("chip", _WITH_VMEM, "TPU v5e"),
    },
    view=_tiles,
)


# Two chips or more

_WITH_TORUS = tuple(name for name, chip in chips.CATALOGUE.items() if chip.torus)
_SPLITS = {
    "B (rows of X)": "B", "D (summed over)": "D", "F (columns of W)": "F",
}  # fmt: skip


def _split(B: int, D: int, F: int, split: str, n: int, sharded: bool, chip: str) -> View:
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
    many = [roofline.contraction_split(B, width, F, on, axis, keep_sharded=sharded) for width in widths]  # type: ignore[arg-type]
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
            Readout("W of the axis, both ways", axis.bytes_per_s, "B/s"),
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
        "chip": Choice("chip", _WITH_TORUS, "TPU v5e"),
    },
    view=_split,
)
