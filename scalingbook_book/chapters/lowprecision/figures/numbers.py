"""Figures of representable values, the effect of one outlier, blocks with scales, and small updates."""

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
OCTAVES = 16  # shown below each format's largest value
OUTLIER = 1e4
START, UPDATE, STEPS = 1.5, -1e-4, 1000


def rulers() -> Figure:
    """The representable values of four formats."""
    said = "; ".join(f"{e.name}: {e.numbers} values up to {e.largest:g}" for e in RULERS)
    return Figure(
        key="lowprecision.rulers",
        alt=f"Four formats on logarithmic axes, each with a line at every positive representable value, from the largest down over {OCTAVES} binades. {said}. "
        "The lines of the floating-point formats repeat from binade to binade; those of int8 crowd at the right end.",
        caption="The positive representable values of four formats. The largest is at the right edge. A floating-point format "
        "has the same number of values in each binade. An integer format has most of its values in the last one.",
        parts=lambda wide: [_rulers(wide)],
    )


def _rulers(wide: float) -> Sketch:
    shapes: list[Shape] = []
    left, right = 2.0, wide - 4
    for k, element in enumerate(RULERS):
        y = 62.0 * k
        told = f"{element.name}: {element.numbers} values, up to {element.largest:,.0f}"
        shapes.append(Words(x=left, y=y + 16, text=told, align="start"))
        shapes.append(Area(x=left, y=y + 24, wide=right - left, high=26, color=None, shade=0.03))
        ends = [log2(mark / element.largest) for mark in element.positive_values]
        xs = [right + (right - left) * end / OCTAVES for end in ends if end > -OCTAVES]
        shapes += [Area(x=x - 0.5, y=y + 24, wide=1, high=26, color=MEMORY, shade=0.6) for x in xs]
    foot = 62.0 * len(RULERS)
    label = f"{OCTAVES} binades below the largest value (log) →"
    shapes.append(Words(x=right, y=foot + 6, text=label, align="end", quiet=True))
    return Sketch(wide, foot + 12, shapes)


def outlier() -> Figure:
    """How one outlier affects the error of the other values."""
    forms = {
        "E4M3, one scale": whole(E4M3),
        "int8, one scale": whole(INT8_ELEMENT),
        "FP4, one scale": whole(E2M1),
        "NVFP4, blocks of 16": NVFP4,
    }
    calm = {
        name: relative_rms_error(drawn(4096), form.quantized(drawn(4096))) for name, form in forms.items()
    }
    hurt = {name: spoiled(form, OUTLIER) for name, form in forms.items()}
    series = [
        Series("without an outlier", [100 * e for e in calm.values()], MATH),
        Series("with an outlier", [100 * e for e in hurt.values()], EXPERTS),
    ]
    said = "; ".join(f"{name}: {percent(calm[name])}, then {percent(hurt[name])}" for name in forms)
    return Figure(
        key="lowprecision.outlier",
        alt=f"Pairs of bars: the error of 4,096 values before and after one value of {OUTLIER:,.0f} standard deviations joins them. {said}.",
        caption="Rounding error of 4,096 values, without and with one outlier, in four formats. The outlier "
        "stretches the scale of all other values. E4M3, with its four bits of exponent, is hardly "
        "affected. Int8, with equal spacing, and FP4, with two bits of exponent, round all other "
        "values to zero. With small blocks that have their own scales, only the outlier's block is "
        "affected.",
        parts=lambda wide: [
            Bars(Scale("RMS error of the other values", "%", "linear", 0, 110), list(forms), series)
        ],
    )


def blocks() -> Figure:
    """The bytes that scales add to a block."""
    forms = (FP8_ROWS, MXFP8, NVFP4)
    said = "; ".join(
        f"{f.name}: {f.block} elements of {f.element.bits} bits, {_scale_bits(f)} of scale" for f in forms
    )
    return Figure(
        key="lowprecision.blocks",
        alt=f"Three blocks as strips of bits, each with its scale at the end. {said}.",
        caption="128 elements of three formats with their scales, which are the short pieces. Shorter blocks follow the "
        "values more closely, but they need more scales. Bytes per element, scales included: "
        + ", ".join(f"{f.bytes:.7g} in {f.name}" for f in forms)
        + ". (Lengths are proportional to bits.)",
        parts=lambda wide: [_blocks(wide, forms)],
    )


def _scale_bits(form: Format) -> int:
    return round(8 * form.bytes * form.block - form.element.bits * form.block)


def _blocks(wide: float, forms: tuple[Format, ...]) -> Sketch:
    shapes: list[Shape] = []
    unit = (wide - 4) / max(8 * f.bytes * 128 for f in forms)
    for k, form in enumerate(forms):
        x, y, many = 2.0, 58.0 * k, 128 // form.block
        told = f"{form.name}: a scale of {_scale_bits(form)} bits per {form.block} elements"
        shapes.append(Words(x=2, y=y + 16, text=told, align="start"))
        for _ in range(many):
            body, scale = unit * form.block * form.element.bits, unit * _scale_bits(form)
            shapes.append(Area(x=x, y=y + 24, wide=body, high=24, color=MEMORY, shade=0.2))
            shapes.append(Area(x=x + body, y=y + 24, wide=scale, high=24, color=EXPERTS, shade=0.8))
            x += body + scale
    return Sketch(wide, 58.0 * len(forms), shapes)


def walk() -> Figure:
    """What a thousand small updates do to a weight."""
    ways = {
        "to nearest": accumulate(BF16_ELEMENT, START, UPDATE, STEPS),
        "stochastic": accumulate(BF16_ELEMENT, START, UPDATE, STEPS, Random(0)),
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
        alt=f"A weight that starts at {START}, over {STEPS:,} steps: a flat line, a staircase and a straight line. They end at "
        + ", ".join(f"{end} ({name})" for name, end in ends.items())
        + ".",
        caption=f"A weight under {STEPS:,} small updates: in bf16 with rounding to nearest, it never moves, "
        f"because representable values are {BF16_ELEMENT.ulp(START):.4f} apart. With stochastic "
        f"rounding, it follows the exact value with some noise. (Each update is −{-UPDATE:g}.)",
        parts=lambda wide: [Chart(Scale("steps"), Scale("weight", "", "linear", 1.3, 1.55), curves)],
    )
