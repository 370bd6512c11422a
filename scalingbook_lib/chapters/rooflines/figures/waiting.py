"""The opening's matmul: its bytes as areas, its two times on one clock."""

from scalingbook_lib import roofline
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.reader.figures.figure import Figure
from scalingbook_lib.reader.figures.shapes import IDLE, MATH, MEMORY, Area, Shape, Words
from scalingbook_lib.reader.figures.sketch import Sketch
from scalingbook_lib.units import percent, si

B, D, F = 64, 8192, 8192
PRODUCT = roofline.matmul(B, D, F, V5E)


def wait() -> Figure:
    """Why does a healthy chip stand idle for three quarters of a matmul?"""
    share = percent(PRODUCT.math_s / PRODUCT.lower_s)
    return Figure(
        key="rooflines.wait",
        alt=f"Above, arrays drawn by their bytes: W is a large square of {si(2 * D * F, 'B')}, X and Y are "
        f"slivers of {si(2 * B * D, 'B')} each. Below, two lanes on one clock: the memory is busy for "
        f"{si(PRODUCT.memory_s, 's')}, the arithmetic for {si(PRODUCT.math_s, 's')} and then waits.",
        caption="The weights are nearly all of the bytes, and the bytes are the work: the arithmetic is done "
        f"in {share} of the time that W needs to arrive. (TPU v5e, bf16, {B} rows.)",
        parts=lambda wide: [_bytes(wide), _clock(wide)],
    )


def _bytes(wide: float) -> Sketch:
    """X, W and Y with areas as their bytes."""
    side, top = (190.0 if wide > 400 else 150.0), 30.0
    thin = max(side * B / D, 2.5)
    left = wide / 2 - side / 2
    arrays: list[Shape] = [
        Area(
            x=left,
            y=top,
            wide=side,
            high=side,
            color=MEMORY,
            text=f"W[D, F]\n{si(2 * D * F, 'B')}",
            top=f"F = {F}",
        ),
        Area(x=left - 50, y=top, wide=thin, high=side, color=MEMORY, shade=0.8),
        Area(x=left + side + 50 - thin, y=top, wide=thin, high=side, color=MEMORY, shade=0.8),
        Words(x=left - 50, y=top + side + 18, text=f"X[B, D]\n{si(2 * B * D, 'B')}"),
        Words(x=left + side + 50, y=top + side + 18, text=f"Y[B, F]\n{si(2 * B * F, 'B')}"),
    ]
    return Sketch(wide, top + side + 42, arrays)


def _clock(wide: float) -> Sketch:
    """Both lanes from 0 to the end of the longer."""
    left, right = 82.0, wide - 12
    end = left + (right - left) * PRODUCT.math_s / PRODUCT.memory_s
    lanes = [
        Area(
            x=left,
            y=6,
            wide=right - left,
            high=30,
            color=MEMORY,
            text=si(PRODUCT.memory_s, "s"),
            left="memory",
        ),
        Area(
            x=left,
            y=44,
            wide=end - left,
            high=30,
            color=MATH,
            text=si(PRODUCT.math_s, "s"),
            left="arithmetic",
        ),
        Area(x=end, y=44, wide=right - end, high=30, color=IDLE, shade=0.05, dashed=True, text="waits"),
    ]
    return Sketch(wide, 82, lanes)
