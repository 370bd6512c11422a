"""Explorers of the rounding error of a format, and of the fate of a small update."""

from functools import cache
from random import Random

from scalingbook_book.chapters.lowprecision.case import spoiled
from scalingbook_book.reader.explorers.parts import (
    Chart,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    Scale,
    Slider,
    Switch,
    View,
    sig3,
)
from scalingbook_lib.machines.formats import BF16_ELEMENT, ELEMENTS, FP32_ELEMENT, Format, accumulate
from scalingbook_lib.units import percent

_NAMES = ("E4M3", "E5M2", "int8", "E2M1", "int4")
_BLOCKS = {"the tensor": 0, "128 values": 128, "32 values": 32, "16 values": 16}
_SIZES = [10.0 ** (k / 2) for k in range(2, 11)]
_VALUES = 1024
_START, _STEPS = 1.5, 1000


def _form(element: str, block: int, power: bool) -> Format:
    return Format(name="", element=ELEMENTS[element], block=block, scale=None if power else FP32_ELEMENT)


@cache
def _curve(form: Format, heavy: bool) -> list[float]:
    return [100 * spoiled(form, size, _VALUES, heavy) for size in _SIZES]


def _bench(*, element: str, block: str, power: bool, heavy: bool, outlier: float) -> View:
    one = _form(element, _BLOCKS[block], power)
    now = spoiled(one, outlier, _VALUES, heavy)
    others = [
        Curve(name, _SIZES, _curve(_form(element, size, power), heavy), color)
        for color, (name, size) in enumerate(
            {"one scale per tensor": 0, "one scale per 16 values": 16}.items()
        )
    ]
    chart = Chart(
        Scale("outlier [standard deviations]", "", "log"),
        Scale("RMS error of the other values", "%", "log", 0.3, 130),
        (*others, Points("", [outlier], [100 * now], [percent(now)], 2)),
    )
    tail = (
        "all other values round to zero" if now > 0.9 else f"the error of the other values is {percent(now)}"
    )
    return View(
        f"{element} with one scale for {block}: next to an outlier of {sig3(outlier)} standard deviations, "
        f"{tail}. "
        f"An element takes {one.bytes:.4g} {'byte' if one.bytes == 1 else 'bytes'}.",
        (chart,),
        (
            Readout.percent("error", now),
            Readout("bytes per element", one.bytes, "", f"{one.bytes:.4g}"),
            Readout("representable values", one.element.numbers, "", str(one.element.numbers)),
        ),
    )


BENCH = Explorer(
    key="lowprecision.bench",
    title="Rounding error with an outlier",
    question="How large is the rounding error of a format if one of the values is an outlier?",
    controls={
        "element": Choice("element format", _NAMES, "E4M3"),
        "block": Choice("one scale for", tuple(_BLOCKS), "the tensor"),
        "power": Switch("scales are powers of two"),
        "heavy": Switch("heavy-tailed values"),
        "outlier": Slider("outlier, in standard deviations", 10.0, 100_000.0, 10_000.0, "log"),
    },
    view=_bench,
)


def _walk(*, rate: float, rms: float, weight: float, seed: int) -> View:
    update, half = -rate * rms, BF16_ELEMENT.ulp(weight) / 2
    steps = range(0, _STEPS + 1, 20)
    ways = {
        "nearest": accumulate(BF16_ELEMENT, weight, update, _STEPS),
        "stochastic": accumulate(BF16_ELEMENT, weight, update, _STEPS, Random(seed)),
        "fp32": accumulate(FP32_ELEMENT, weight, update, _STEPS),
    }
    curves = [
        Curve(name, [*steps], [w[k] for k in steps], color) for color, (name, w) in enumerate(ways.items())
    ]
    true = weight + _STEPS * update
    moved = ways["nearest"][-1] != weight
    lost = (
        "every update is lost"
        if not moved
        else f"the weight moves {percent(abs(ways['nearest'][-1] - weight) / (_STEPS * -update))} of the way"
    )
    flat = 0.02 * weight
    chart = Chart(
        Scale("steps"),
        Scale("weight", "", "linear", min(true, weight - flat) - flat, weight + flat),
        curves,
    )
    return View(
        f"An update is {percent(-update / half)} of half the spacing. With rounding to nearest, {lost}. "
        f"With stochastic rounding, the weight ends at {ways['stochastic'][-1]:.4g}; in fp32, it ends at "
        f"{ways['fp32'][-1]:.4g}.",
        (chart,),
        (
            Readout.percent("update / half the spacing", -update / half),
            Readout("half the spacing", half, "", f"{half:.6f}"),
            Readout("rounding to nearest", ways["nearest"][-1], "", f"{ways['nearest'][-1]:.4g}"),
            Readout("stochastic rounding", ways["stochastic"][-1], "", f"{ways['stochastic'][-1]:.4g}"),
        ),
    )


WALK = Explorer(
    key="lowprecision.walk",
    title="A thousand small weight updates",
    question="Do a thousand small updates move a weight in bf16?",
    controls={
        "rate": Slider("learning rate", 1e-5, 1e-2, 5e-4, "log"),
        "rms": Slider("update / learning rate", 0.05, 2.0, 0.2, "log"),
        "weight": Slider("initial weight", 0.02, 4.0, _START, "log"),
        "seed": Slider("random seed", 0, 9, 0),
    },
    view=_walk,
)
