"""Figure of the first example's step on 256, 6,144 and 8,960 chips: compute shrinks, the AllReduce does not."""

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, MATH, NETWORK, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines import Slice
from scalingbook_lib.machines.chips import V5P
from scalingbook_lib.roofline import scaling
from scalingbook_lib.units import count, si

P, B = 8e9, 2**21
SLICES = ("4x8x8", "16x16x24", "16x20x28")  # the second is the largest job that Google Cloud schedules
STEPS = [scaling.data_parallel(P, B, Slice.of(V5P, shape).chips, V5P, axes=3) for shape in SLICES]
KNEE = count(round(scaling.knee(B, V5P, axes=3)))
HIGH = 30.0  # of a bar
TIMES = 8  # how much longer the short bars are drawn beside themselves


def wall() -> Figure:
    """Three steps on one time scale: 24 times the chips make the step 13 times as fast."""
    few, many, most = STEPS
    told = "; ".join(
        f"{count(step.chips)} chips: {si(step.math_s, 's')} of compute, {si(step.exposed_s, 's')} of waiting"
        for step in STEPS
    )
    return Figure(
        key="intro.wall",
        alt=f"Three steps as bars on one time scale, with the two short ones drawn again {TIMES} times as long. {told}. "
        f"A line between the first and the second bar says that beyond {KNEE} chips, every chip waits.",
        caption=f"One training step on {few.chips:,}, {many.chips:,} and {most.chips:,} chips. With {many.chips / few.chips:.0f} times as "
        f"many chips, the step is {few.total_s / many.total_s:.1f} times as fast. All {count(most.chips)} "
        f"chips of a pod would save only another {si(many.total_s - most.total_s, 's')}: adding "
        "chips shrinks each chip's compute, but not the time of the AllReduce that sums the "
        "gradients. (TPU v5p, 8 billion parameters, 2 million tokens per batch, three torus axes. "
        f"The bars are to scale; the two short ones are repeated {TIMES} times as long.)",
        parts=lambda wide: [_clocks(wide)],
    )


def _clocks(wide: float) -> Sketch:
    """The three bars on one scale, and the lower two again, enlarged."""
    beside = wide > 400  # names stand beside the bars, or above them
    left, right = (108.0, wide - 64) if beside else (2.0, wide - 64)
    above, between = (0.0, 42.0) if beside else (22.0, 36.0)
    shapes: list[Shape] = []
    rows = [6 + above + k * (HIGH + 14 + above) + between * (k > 0) for k in range(len(STEPS))]
    for y, step in zip(rows, STEPS, strict=True):
        x, level = (left - 8, y + HIGH / 2 + 4.5) if beside else (left, y - 8)
        align = "end" if beside else "start"
        shapes.append(Words(x=x, y=level, text=f"{count(step.chips)} chips", bold=True, align=align))
        shapes += _bar(step, left, y, (right - left) / STEPS[0].total_s)
        if step.exposed_s:
            shapes += _enlarged(step, left, y, right)
    first, level = si(STEPS[0].total_s, "s"), 6 + above + HIGH / 2 + 4.5
    shapes.append(Words(x=(left + right) / 2, y=level, text="compute"))
    shapes.append(Words(x=right + 6, y=level, text=first, align="start", bold=True))
    line = 6 + above + HIGH + 38
    shapes.append(Arrow(x0=2, y0=line, x1=wide - 2, y1=line, heads=0, dashed=True, thick=1.2, color=NETWORK))
    said = f"beyond {KNEE} chips, every chip waits"
    shapes.append(Words(x=wide - 4, y=line - 8, text=said, align="end", color=NETWORK))
    return Sketch(wide, rows[-1] + HIGH + 4, shapes)


def _bar(step: scaling.ScalingStep, left: float, y: float, scale: float) -> list[Shape]:
    """Compute, then waiting, drawn `scale` units wide per second."""
    works, waits = scale * step.math_s, scale * step.exposed_s
    bar: list[Shape] = [Area(x=left, y=y, wide=works, high=HIGH, color=MATH)]
    if waits:
        bar.append(Area(x=left + works, y=y, wide=waits, high=HIGH, color=IDLE, shade=0.06, dashed=True))
    return bar


def _enlarged(step: scaling.ScalingStep, left: float, y: float, right: float) -> list[Shape]:
    """The same bar `TIMES` times as long, with its numbers, and the factor between the two."""
    start = left + (right - left) * 0.26
    scale = TIMES * (right - left) / STEPS[0].total_s
    works, waits = scale * step.math_s, scale * step.exposed_s
    end = left + (right - left) * step.total_s / STEPS[0].total_s
    lens = [
        Arrow(x0=end + 4, y0=y + h, x1=start - 4, y1=y + h, heads=0, dashed=True, thick=0.8)
        for h in (1, HIGH - 1)
    ]
    level, waited = y + HIGH / 2 + 4.5, f"{'waits ' * (waits > 110)}{si(step.exposed_s, 's')}"
    worked, total = si(step.math_s, "s") if works > 54 else "", si(step.total_s, "s")
    return [
        *lens,
        Words(x=(end + start) / 2, y=level, text=f"× {TIMES}", bold=True),
        *_bar(step, start, y, scale),
        Words(x=start + works / 2, y=level, text=worked),
        Words(x=start + works + waits / 2, y=level, text=waited),
        Words(x=start + works + waits + 6, y=level, text=total, bold=True, align="start"),
    ]
