"""Figures of the three resources: compute time, data-movement time, and memory capacity."""

from scalingbook_book.reader.explorers.view import Span
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.lanes import lanes
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import roofline
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.units import BF16, binary, si

B, D, F = 24, 8192, 8192
FEW = roofline.matmul(B, D, F, V5E)
ROWS, COLUMNS = 65_536, 131_072  # of weights that fill a v5e in bf16
ARRAY = BF16.bytes * ROWS * COLUMNS


def resources() -> Figure:
    """Two resources take time; the third decides whether the program runs at all."""
    chip, array = binary(V5E.hbm_bytes), binary(ARRAY)
    return Figure(
        key="intro.resources",
        alt=f"One TPU v5e. Two timelines on one scale: multiplying {B} tokens by a weight matrix takes "
        f"{si(FEW.math_s, 's')} of compute and {si(FEW.memory_s, 's')} of data movement. Below, a memory of "
        f"{chip} and three arrays of {array} that do not all fit: weights, gradients, new weights.",
        caption="The three resources of a chip: compute, data movement and memory capacity. Compute and "
        "data movement take time, and a step takes at least as long as the longer of the two. "
        "Memory capacity decides whether the program runs at all. (TPU v5e. Both parts are to "
        "scale.)",
        parts=lambda wide: [_time(wide), _room(wide)],
    )


def _time(wide: float) -> Sketch:
    """The two timelines of one matmul."""
    spans = (
        Span("compute", 0, FEW.math_s, f"{si(FEW.math_s, 's')}, then idle", MATH),
        Span("HBM traffic", 0, FEW.memory_s, si(FEW.memory_s, "s"), MEMORY),
    )
    return lanes(wide, spans, title=f"time of X[{B}, {D}] · W[{D}, {F}]")


def _room(wide: float) -> Sketch:
    """A memory, and three arrays that are each as large as it."""
    left = 100.0
    each, high = (wide - left - 10) / 3 - 8, 56.0
    said = f"{binary(V5E.hbm_bytes)} of HBM, three arrays of {binary(ARRAY)}"
    shapes: list[Shape] = [
        Words(x=2, y=16, text="memory", bold=True, align="start"),
        Words(
            x=wide - 10,
            y=16,
            text=said,
            align="end",
            quiet=True,
        ),
        Area(x=left - 5, y=28, wide=each + 10, high=high + 10, color=None, shade=0, left="HBM"),
    ]
    for k, name in enumerate(("w", "gradient", "new w")):
        shapes.append(
            Area(
                x=left + k * (each + 10),
                y=33,
                wide=each,
                high=high,
                color=MEMORY if k == 0 else IDLE,
                shade=0.3 if k == 0 else 0.06,
                dashed=k > 0,
                text=f"{name}\n{binary(ARRAY)}",
            )
        )
    return Sketch(wide, 104, shapes)
