"""Figures of what has grown from one TPU generation to the next, and what has not kept up."""

from math import log

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import MATH, MEMORY, NETWORK, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines import chips

FIGURES = (
    ("FLOPs/s", "bf16_flops_per_s", MATH),
    ("HBM", "hbm_bytes_per_s", MEMORY),
    ("one link", "link_bytes_per_s", NETWORK),
)
GROWN = {
    name: [getattr(chip, figure) / getattr(chips.TPUS[0], figure) for chip in chips.TPUS]
    for name, figure, _ in FIGURES
}


def growth() -> Figure:
    """Three figures over those of v2, generation by generation, on a log axis."""
    flops, hbm, link = (grown[-1] for grown in GROWN.values())
    return Figure(
        key="tpus.growth",
        alt="Three lines over seven generations, v2 to TPU7x, as multiples of v2 on a logarithmic axis. FLOPs/s have grown "
        f"by a factor of {flops:.0f}, the bandwidth of HBM by {hbm:.1f}, and that of a link by {link:.1f}.",
        caption="Growth of compute and bandwidth since v2, on a logarithmic axis. The gap between the line "
        "for FLOPs/s and each of the other two shows how much the corresponding ridge point has grown: by a factor of "
        f"{flops / hbm:.1f} for HBM and {flops / link:.0f} for a link. Communication that could be "
        "hidden on v2 may be exposed today.",
        parts=lambda wide: [_lines(wide)],
    )


def _lines(wide: float) -> Sketch:
    left, right, low, high = 38.0, wide - 94, 240.0, 32.0
    most = max(GROWN["FLOPs/s"])
    names = [chip.name.removeprefix("TPU ") for chip in chips.TPUS]
    xs = [left + (right - left) * k / (len(names) - 1) for k in range(len(names))]
    shapes: list[Shape] = [
        Words(x=x, y=low + 32, text=name, quiet=True) for x, name in zip(xs, names, strict=True)
    ]
    for grown, (name, _, color) in zip(GROWN.values(), FIGURES, strict=True):
        ys = [low - (low - high) * log(value) / log(most) for value in grown]
        shapes += [
            Arrow(x0=xs[k], y0=ys[k], x1=xs[k + 1], y1=ys[k + 1], heads=0, color=color, thick=2.4)
            for k in range(len(xs) - 1)
        ]
        shapes += [
            Area(x=x - 3, y=y - 3, wide=6, high=6, color=color, shade=1) for x, y in zip(xs, ys, strict=True)
        ]
        words = f"{name}\n× {grown[-1]:.{1 if grown[-1] < 20 else 0}f}"
        shapes.append(Words(x=right + 12, y=ys[-1], text=words, align="start", color=color, bold=True))
    shapes.append(Arrow(x0=left, y0=low + 12, x1=right, y1=low + 12, heads=0, thick=1))
    for value in (1, 10):
        tick = low - (low - high) * log(value) / log(most)
        shapes.append(Words(x=left - 10, y=tick + 5, text=f"{value}×", align="end", quiet=True))
    shapes.append(Words(x=4, y=12, text="relative to v2, log scale", align="start", quiet=True))
    return Sketch(wide, low + 42, shapes)
