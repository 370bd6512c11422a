"""Figure of two published series of matmul kernels: the ceiling of each step and the measured rate."""

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import (
    CACHE,
    EXPERTS,
    IDLE,
    MATH,
    MEMORY,
    Area,
    Arrow,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.evidence.kernel_ladders import Rung
from scalingbook_lib.evidence.kernel_ladders import ladder as steps_of
from scalingbook_lib.machines.chips import B200, H100
from scalingbook_lib.units import percent

_COLORS = {"CUDA cores": EXPERTS, "L2": CACHE, "latency": MEMORY, "waves": IDLE, "SMEM": MEMORY}
_TICKS = (0.25, 0.5, 0.75, 1.0)
_ROOMY = 400


def ladder() -> Figure:
    """The steps from a naive matmul to near-peak on H100 and B200: ceilings as frames, measurements as bars."""
    one, two = steps_of(H100), steps_of(B200)
    above = [rung.step for rung in (*one, *two) if rung.reached > rung.ceiling]
    quoted = ", ".join(f"“{step}”" for step in above)
    beyond = f" (Ceilings are estimates: for {quoted}, the measured bar is longer.)" if above else ""
    return Figure(
        key="gpus.ladder",
        alt=f"Two groups of horizontal bars in percent of the peak. In each row, a wide bar is the ceiling of a kernel and a narrow bar inside it is the measured rate. On the H100, {len(one)} "
        f"steps rise from {percent(one[0].reached)} to {percent(one[-1].reached)}: the ceilings are set by the CUDA cores, then by L2, and finally by the last wave. On the B200, {len(two)} steps rise from "
        f"{percent(two[0].reached)} to {percent(two[-1].reached)}: latency sets the first two ceilings, and the last wave sets the others.",
        caption="Two published series of bf16 matmul kernels. Wide bars are ceilings computed from the tile and its stages, "
        "the narrow bars inside them are measured, and the labels say what sets the ceiling. A step that changes the tile names its rows and columns. On the H100, a larger tile raises the ceiling that L2 sets, until a "
        f"cluster removes it. On the B200, the largest step is the pipeline, which hides the latency of the loads.{beyond}",
        parts=lambda wide: [_rows(wide)],
    )


def _rows(wide: float) -> Sketch:
    roomy = wide > _ROOMY
    left, right = (188.0, wide - 182.0) if roomy else (4.0, wide - 6.0)
    unit, pitch = right - left, 26.0 if roomy else 40.0
    shapes: list[Shape] = []
    y = 8.0
    for chip in (H100, B200):
        rungs = steps_of(chip)
        shapes.append(
            Words(x=4, y=y + 12, text=f"{chip.name}, {chip.bf16_flops_per_s / 1e12:,.0f} TFLOPs/s", align="start", bold=True)
        )  # fmt: skip
        shapes.append(
            Words(x=right + 8 if roomy else right, y=y + 12, text="measured of ceiling, set by", align="start" if roomy else "end", quiet=True, size=12 if roomy else 11)
        )  # fmt: skip
        y += 24
        low = y + pitch * len(rungs)
        for tick in _TICKS:
            x = left + unit * tick
            align = "middle" if tick < 1 else "start" if roomy else "end"
            text = percent(tick) if tick < 1 else "100% of peak" if roomy else "of peak"
            x = x if tick < 1 or not roomy else x - 16
            shapes.append(Words(x=x, y=low + 14, text=text, quiet=True, size=11, align=align))
        for rung, label in zip(rungs, _labels(rungs), strict=True):
            top, high = (y, pitch) if roomy else (y + 18, pitch - 18)  # below the words of a narrow row
            shapes += [
                Arrow(x0=x, y0=top, x1=x, y1=top + high, color=IDLE, thick=0.6, heads=0)
                for x in (left + unit * tick for tick in _TICKS)
            ]
            shapes += _bar(rung, label, left, y, unit, right, roomy=roomy)
            y += pitch
        y += 30
    return Sketch(wide, y - 10, shapes)


def _labels(rungs: tuple[Rung, ...]) -> list[str]:
    """The names of the steps, with the rows and columns of the tile where they change."""
    tiles = [(rung.tile.rows, rung.tile.columns) if rung.tile else None for rung in rungs]
    return [
        rung.step if tile is None or tile == before else f"{rung.step}, {tile[0]} × {tile[1]}"
        for rung, tile, before in zip(rungs, tiles, [None, *tiles[:-1]], strict=True)
    ]


def _bar(
    rung: Rung, label: str, left: float, y: float, unit: float, right: float, *, roomy: bool
) -> list[Shape]:
    """The ceiling as a light bar with the measured rate inside, and its label next to it or above."""
    top, high = (y + 4, 18.0) if roomy else (y + 20, 16.0)
    said = f"{percent(rung.reached)} of {percent(rung.ceiling)}, {rung.bound}"
    bars: list[Shape] = [
        Area(x=left, y=top, wide=unit * rung.ceiling, high=high, color=_COLORS[rung.bound], shade=0.22),
        Area(x=left, y=top + 4, wide=unit * rung.reached, high=high - 8, color=MATH, shade=0.8),
    ]
    if roomy:
        return [
            *bars,
            Words(x=left - 8, y=top + 13, text=label, align="end"),
            Words(x=right + 8, y=top + 13, text=said, align="start", quiet=True, size=12),
        ]
    return [
        *bars,
        Words(x=left, y=y + 14, text=label, align="start", size=12),
        Words(x=right, y=y + 14, text=said, align="end", quiet=True, size=11),
    ]
