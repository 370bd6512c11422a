"""Figure of the errors of the collective-time model, by group of measurements."""

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, MATH, NETWORK, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.evidence.measured import COLLECTIVES
from scalingbook_lib.units import percent

ROW, TOP = 20.0, 44.0
TICKS = (0.05, 0.1, 0.2)
SIZES = 4  # groups by size, which come first


def errors() -> Figure:
    """Median and 90th-percentile errors of the collective-time model, by group."""
    found = COLLECTIVES.errors()
    worst = max(found, key=lambda e: e.median)
    return Figure(
        key="gpus.errors",
        alt=f"A row for each of {len(found)} groups of published times, by size, number of GPUs, collective and system. A square marks the median error, and a line leads to the 90th "
        f"percentile. The largest median is {percent(worst.median)}, for {worst.name}.",
        caption=f"Errors of the collective model for {len(COLLECTIVES.points)} published times, by group. "
        "The model has one set of parameters per generation of links. Its worst group, "
        f"{worst.name}, has a median error of {percent(worst.median)}. (Squares are median errors, "
        "and lines end at the 90th percentile. The groups below the gap contain only sizes of 64 "
        "MiB and more.)",
        parts=lambda wide: [_rows(wide)],
    )


def _rows(wide: float) -> Sketch:
    found = COLLECTIVES.errors()
    left, most = 152.0, max(e.p90 for e in found)
    unit = (wide - left - 16) / most
    low = TOP + ROW * len(found) + 12
    shapes: list[Shape] = [Words(x=left, y=14, text="error of the model", align="start", quiet=True)]
    for tick in TICKS:
        x = left + unit * tick
        shapes += [
            Arrow(x0=x, y0=36, x1=x, y1=low, color=IDLE, thick=0.6, heads=0, dashed=True),
            Words(x=x, y=32, text=percent(tick), quiet=True, size=11),
        ]
    for k, e in enumerate(found):
        y = TOP + ROW * k + (12 if k >= SIZES else 0)
        color = NETWORK if k >= SIZES else MATH
        at = left + unit * e.median
        shapes += [
            Words(x=left - 10, y=y + 4, text=e.name, align="end", size=12),
            Arrow(x0=at, y0=y, x1=left + unit * e.p90, y1=y, color=color, thick=2, heads=0),
            Area(x=at - 5, y=y - 5, wide=10, high=10, color=color, shade=1),
        ]
    return Sketch(wide, low + 6, shapes)
