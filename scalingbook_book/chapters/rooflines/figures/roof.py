"""Figures of the roofline plot, the critical batch size, and the ridges of ten chips."""

from collections.abc import Callable

from scalingbook_book.reader.explorers import scales
from scalingbook_book.reader.explorers.view import Band, Chart, Curve, Points, RefLine, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import roofline, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import V5E, V6E
from scalingbook_lib.units import si

D, F = 8192, 8192
SHOWN = {  # with where its name stands beside its dot
    "dot product": (roofline.dot(D, V5E), 10, 13),
    "64 rows": (roofline.matmul(64, D, F, V5E), -12, 30),
    "1,024 rows": (roofline.matmul(1024, D, F, V5E), -4, -11),
}


def roof() -> Figure:
    """Rooflines of v5e and v6e with three operations, and the two ways to raise the attainable rate."""
    at = ", ".join(f"{name} {si(t.attained_flops_per_s, 'FLOPs/s')}" for name, (t, *_) in SHOWN.items())
    return Figure(
        key="rooflines.roof",
        alt="Attainable FLOPs/s over arithmetic intensity, both logarithmic. For a TPU v5e, a sloped line set by "
        f"memory bandwidth rises to the ridge at {rules.ridge(V5E):.0f} FLOPs per byte and becomes a flat roof, "
        "the peak. A TPU v6e, dashed, has a higher roof and its ridge at "
        f"{rules.ridge(V6E):.0f}. On the v5e: {at}.",
        caption="Rooflines of TPU v5e and v6e, with three operations. Memory bandwidth sets the slope, and "
        "peak compute sets the flat roof. An operation on the slope can become faster in two ways: "
        "more reuse moves it to the right, and more bandwidth raises the slope.",
        parts=lambda wide: [_roof(wide)],
    )


def _roof(wide: float) -> Sketch:
    """Slopes, roofs, operations and two arrows, on two log axes."""
    high, left = 300.0, 14.0
    x, y = _axis(0.25, 8000, left, wide - 10), _axis(1.5e11, 2.2e15, high - 26, 14)
    shapes: list[Shape] = []
    for chip, dashed, up in ((V5E, False, 18), (V6E, True, -8)):
        ridge, peak = rules.ridge(chip), chip.bf16_flops_per_s
        line = {"heads": 0, "dashed": dashed, "thick": 1.6 if dashed else 3.2}
        low = roofline.attainable(0.25, chip)
        shapes += [
            Arrow(x0=x(0.25), y0=y(low), x1=x(ridge), y1=y(peak), color=MEMORY, **line),
            Arrow(x0=x(ridge), y0=y(peak), x1=x(8000), y1=y(peak), color=MATH, **line),
            Arrow(x0=x(ridge), y0=y(peak), x1=x(ridge), y1=high - 26, heads=0, dashed=True, thick=0.8),
            Words(
                x=x(8000),
                y=y(peak) + up,
                text=f"{chip.name[4:]}: {si(peak, 'FLOPs/s') if wide > 400 else si(peak)}",
                align="end",
            ),
            Words(x=x(ridge) + (2 if up > 0 else 24), y=high - 10, text=f"{ridge:.0f}", align="end"),
        ]
    for name, (t, right, down) in SHOWN.items():
        px, py = x(t.intensity), y(t.attained_flops_per_s)
        shapes += [
            Area(x=px - 5, y=py - 5, wide=10, high=10, color=None, shade=0.9),
            Words(x=px + right, y=py + down, text=name, align="start"),
        ]
    px, py = x(6), y(roofline.attainable(6, V5E))
    shapes += [
        Arrow(x0=left, y0=high - 26, x1=wide - 4, y1=high - 26, thick=1),
        Words(x=left, y=high - 10, text="FLOPs per byte (log) →", align="start", quiet=True),
        Words(x=left, y=16, text="↑ attainable FLOPs/s (log)", align="start", quiet=True),
        Arrow(x0=px, y0=py - 4, x1=px, y1=py - 52),
        Words(x=px - 7, y=py - 34, text="more\nbandwidth", align="end"),
        Arrow(x0=px + 5, y0=py + 4, x1=px + 62, y1=py + 4),
        Words(x=px + 10, y=py + 22, text="more reuse", align="start"),
    ]
    return Sketch(wide, high, shapes)


def _axis(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """From a value to its place on a log axis."""
    many = scales.project("log", low, high, start, end)
    return lambda value: many([value])[0]


def batch() -> Figure:
    """Memory time and compute time of one matmul over its batch, which cross at the critical batch size."""
    exact, thumb = rules.matmul_critical_batch(D, F, V5E), rules.ridge(V5E)
    return Figure(
        key="rooflines.batch",
        alt="Time over batch, both logarithmic, for weights of 8,192 by 8,192 on a TPU v5e. Memory time is "
        "nearly constant and rises a little at the end. Compute time rises from far below and crosses it at "
        f"{exact:.0f} rows. The area between the curves to the left of the crossing is shaded.",
        caption="Memory time and compute time of a matmul against its batch. To the left of the crossing, "
        "the matmul takes as long as reading W, and additional rows are nearly free. The crossing "
        f"is at {exact:.0f} rows; the rule of thumb, which neglects X and Y, says {thumb:.0f}.",
        parts=lambda _: [_times(exact)],
    )


def _times(exact: float) -> Chart:
    rows = [2.0 ** (e / 4) for e in range(49)]
    times = [roofline.matmul(b, D, F, V5E) for b in rows]  # type: ignore[arg-type]
    memory, math = [t.memory_s for t in times], [t.math_s for t in times]
    free = [b for b in rows if b < exact]
    return Chart(
        Scale("rows B", "", "pow2", rows[0], rows[-1]),
        Scale("time", "s", "log"),
        (
            Band("compute idle", free, math[: len(free)], memory[: len(free)], IDLE),
            Curve("memory", rows, memory, MEMORY),
            Curve("compute", rows, math, MATH),
            RefLine(f"B = {exact:.0f}", exact),
            Points("", [64], [roofline.matmul(64, D, F, V5E).lower_s], ["64 rows"], MEMORY),
        ),
    )


TPUS = (chips.V3, chips.V4, chips.V5E, chips.V5P, chips.V6E, chips.TPU7X)
GPUS = (chips.A100, chips.H100, chips.H200, chips.B200)


def ridges() -> Figure:
    """Ridge points of ten chips on one logarithmic axis."""
    known = sorted((*TPUS, *GPUS), key=rules.ridge)
    said = ", ".join(f"{chip.name} {rules.ridge(chip):.0f}" for chip in known)
    return Figure(
        key="rooflines.ridges",
        alt=f"Ridge points of ten chips on one logarithmic axis of FLOPs per byte, in bf16 from HBM: {said}.",
        caption="Ridge points of ten chips, in bf16 from HBM. A newer chip does not always have a higher "
        "ridge point. The H200, which is an H100 with faster memory, has a lower one. (Blue: TPUs. Orange: "
        "GPUs.)",
        parts=lambda wide: [_ridges(wide, known)],
    )


def _ridges(wide: float, known: list[chips.Chip]) -> Sketch:
    """A row for each chip, with a square at its ridge point."""
    left, step = 88.0, 24.0
    x = _axis(100, 700, left, wide - 30)
    shapes: list[Shape] = [
        Words(x=left, y=12, text="ridge point in FLOPs per byte (log) →", align="start", quiet=True)
    ]
    for k, chip in enumerate(known):
        at, y, tpu = x(rules.ridge(chip)), 30 + step * k, chip in TPUS
        shapes += [
            Arrow(x0=left, y0=y, x1=at, y1=y, heads=0, thick=0.8, dashed=True),
            Area(x=at - 6, y=y - 6, wide=12, high=12, color=MEMORY if tpu else MATH, shade=0.9),
            Words(x=left - 8, y=y + 4.5, text=chip.name, align="end", color=MEMORY if tpu else MATH),
            Words(x=at + 11, y=y + 4.5, text=f"{rules.ridge(chip):.0f}", align="start"),
        ]
    return Sketch(wide, 26 + step * len(known), shapes)
