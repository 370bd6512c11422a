"""Figure of the errors of the collective-time model, by group of measurements."""

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, MATH, NETWORK, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.evidence.measured import COLLECTIVES
from scalingbook_lib.units import percent

ROW, TOP, AIR = 20.0, 44.0, 24.0  # of a row, above the first one, and of a heading
TICKS = (0.0, 0.05, 0.1, 0.2)
BY_SIZE = "by size"  # the only kind of group that contains all sizes
COLLECTIVE_NAMES = ("all-gather", "reduce-scatter", "all-to-all", "all-reduce")


def _kind(name: str) -> str:
    """What the measurements of a group have in common."""
    if "iB" in name:
        return BY_SIZE
    if name.endswith("chips"):
        return "by number of chips"
    return "by collective" if name in COLLECTIVE_NAMES else "by GPU"


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
        "and lines end at the 90th percentile. Groups other than those by size "
        "contain only sizes of 64 MiB and more.)",
        parts=lambda wide: [_rows(wide)],
    )


def _rows(wide: float) -> Sketch:
    found = COLLECTIVES.errors()
    left, most = 152.0, max(e.p90 for e in found)
    unit = (wide - left - 16) / most
    kinds = [_kind(e.name) for e in found]
    low = TOP + ROW * len(found) + AIR * len(set(kinds))
    shapes: list[Shape] = [Words(x=left, y=14, text="error of the model", align="start", quiet=True)]
    for tick in TICKS:
        x = left + unit * tick
        shapes += [
            Arrow(x0=x, y0=36, x1=x, y1=low, color=IDLE, thick=0.6, heads=0, dashed=True),
            Words(x=x, y=32, text=percent(tick), quiet=True, size=11),
        ]
    y = TOP - ROW
    for k, (e, kind) in enumerate(zip(found, kinds, strict=True)):
        y += ROW
        if not k or kind != kinds[k - 1]:
            shapes.append(Words(x=4, y=y + 5, text=kind, align="start", bold=True, size=12))
            y += AIR
        color = MATH if kind == BY_SIZE else NETWORK
        at = left + unit * e.median
        shapes += [
            Words(x=left - 10, y=y + 4, text=e.name, align="end", size=12),
            Arrow(x0=at, y0=y, x1=left + unit * e.p90, y1=y, color=color, thick=2, heads=0),
            Area(x=at - 5, y=y - 5, wide=10, high=10, color=color, shade=1),
        ]
    return Sketch(wide, low + 6, shapes)
