"""Rulers, what one outlier does to them, blocks with their scales, and small steps."""

from math import log2
from random import Random

from scalingbook_book.chapters.lowprecision.case import drawn, spoiled, whole
from scalingbook_book.reader.explorers.view import Bars, Chart, Curve, Scale, Series
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import EXPERTS, MATH, MEMORY, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines.formats import (
    BF16_ELEMENT,
    E2M1,
    E4M3,
    E5M2,
    FP8_ROWS,
    FP32_ELEMENT,
    INT8_ELEMENT,
    MXFP8,
    NVFP4,
    Format,
    accumulate,
    relative_rms_error,
)
from scalingbook_lib.units import percent

RULERS = (E5M2, E4M3, E2M1, INT8_ELEMENT)
OCTAVES = 16  # shown below each ruler's end
OUTLIER = 1e4
START, UPDATE, STEPS = 1.5, -1e-4, 1000


def rulers() -> Figure:
    """Which numbers are there?"""
    said = "; ".join(f"{e.name}: {e.numbers} numbers up to {e.largest:g}" for e in RULERS)
    return Figure(
        key="lowprecision.rulers",
        alt=f"Four rulers on a logarithmic axis, each with a line at every positive number, from its largest down by {OCTAVES} doublings. {said}. "
        "The floats' marks repeat from doubling to doubling; int8's crowd at the end.",
        caption=f"The positive numbers of four types, each with its largest at the right edge; the axis shows {OCTAVES} doublings below it. A float has "
        "as many marks in each doubling, an integer most of them in the last.",
        parts=lambda wide: [_rulers(wide)],
    )


def _rulers(wide: float) -> Sketch:
    shapes: list[Shape] = []
    left, right = 2.0, wide - 4
    for k, element in enumerate(RULERS):
        y = 62.0 * k
        told = f"{element.name}: {element.numbers} numbers, up to {element.largest:,.0f}"
        shapes.append(Words(x=left, y=y + 16, text=told, align="start"))
        shapes.append(Area(x=left, y=y + 24, wide=right - left, high=26, color=None, shade=0.03))
        ends = [log2(mark / element.largest) for mark in element.positive_values]
        xs = [right + (right - left) * end / OCTAVES for end in ends if end > -OCTAVES]
        shapes += [Area(x=x - 0.5, y=y + 24, wide=1, high=26, color=MEMORY, shade=0.6) for x in xs]
    return Sketch(wide, 62.0 * len(RULERS), shapes)


def outlier() -> Figure:
    """Whom does one outlier hurt?"""
    forms = {
        "E4M3, one scale": whole(E4M3),
        "int8, one scale": whole(INT8_ELEMENT),
        "FP4, one scale": whole(E2M1),
        "NVFP4, by 16": NVFP4,
    }
    calm = {
        name: relative_rms_error(drawn(4096), form.quantized(drawn(4096))) for name, form in forms.items()
    }
    hurt = {name: spoiled(form, OUTLIER) for name, form in forms.items()}
    series = [
        Series("alone", [100 * e for e in calm.values()], MATH),
        Series("beside an outlier", [100 * e for e in hurt.values()], EXPERTS),
    ]
    said = "; ".join(f"{name}: {percent(calm[name])}, then {percent(hurt[name])}" for name in forms)
    return Figure(
        key="lowprecision.outlier",
        alt=f"Pairs of bars, the error of 4,096 values before and after one value of {OUTLIER:,.0f} standard deviations joins them. {said}.",
        caption="One outlier takes the ruler away from all others. An exponent of four bits does not mind; equal marks, and an exponent of "
        "two bits, lose everything. Small blocks bring the others back.",
        parts=lambda wide: [Bars(Scale("error of the others", "%", "linear", 0, 110), list(forms), series)],
    )


def blocks() -> Figure:
    """What does a scale add to the bytes?"""
    forms = (FP8_ROWS, MXFP8, NVFP4)
    said = "; ".join(
        f"{f.name}: {f.block} elements of {f.element.bits} bits, {_scale_bits(f)} of scale" for f in forms
    )
    return Figure(
        key="lowprecision.blocks",
        alt=f"Three blocks as strips of bits, each with its scale at the end. {said}.",
        caption="A block and its scale, bits as lengths, 128 elements of each. "
        + ", ".join(f"{f.name}: {f.bytes:.7g} bytes an element" for f in forms)
        + ". Shorter blocks fit closer, and cost more scales.",
        parts=lambda wide: [_blocks(wide, forms)],
    )


def _scale_bits(form: Format) -> int:
    return round(8 * form.bytes * form.block - form.element.bits * form.block)


def _blocks(wide: float, forms: tuple[Format, ...]) -> Sketch:
    shapes: list[Shape] = []
    unit = (wide - 4) / max(8 * f.bytes * 128 for f in forms)
    for k, form in enumerate(forms):
        x, y, many = 2.0, 58.0 * k, 128 // form.block
        told = f"{form.name}: {_scale_bits(form)} bits for each {form.block}"
        shapes.append(Words(x=2, y=y + 16, text=told, align="start"))
        for _ in range(many):
            body, scale = unit * form.block * form.element.bits, unit * _scale_bits(form)
            shapes.append(Area(x=x, y=y + 24, wide=body, high=24, color=MEMORY, shade=0.2))
            shapes.append(Area(x=x + body, y=y + 24, wide=scale, high=24, color=EXPERTS, shade=0.8))
            x += body + scale
    return Sketch(wide, 58.0 * len(forms), shapes)


def walk() -> Figure:
    """What becomes of a thousand small steps?"""
    ways = {
        "to the nearest": accumulate(BF16_ELEMENT, START, UPDATE, STEPS),
        "by chance": accumulate(BF16_ELEMENT, START, UPDATE, STEPS, Random(0)),
        "fp32": accumulate(FP32_ELEMENT, START, UPDATE, STEPS),
    }
    steps = [*range(0, STEPS + 1, 10)]
    curves = [
        Curve(name, steps, [values[k] for k in steps], color, dashed=name == "fp32")
        for color, (name, values) in enumerate(ways.items())
    ]
    ends = {name: f"{values[-1]:.4g}" for name, values in ways.items()}
    return Figure(
        key="lowprecision.walk",
        alt=f"A weight that begins at {START} over {STEPS:,} steps: a flat line, a staircase and a straight line. They end at "
        + ", ".join(f"{end} ({name})" for name, end in ends.items())
        + ".",
        caption=f"{STEPS:,} updates of {UPDATE:g}. In bf16, rounded to the nearest, the weight never moves: marks there are {BF16_ELEMENT.ulp(START):.4f} apart. "
        "Rounded by chance it follows, with noise.",
        parts=lambda wide: [Chart(Scale("steps"), Scale("the weight", "", "linear", 1.3, 1.55), curves)],
    )
