"""How far off does a format write, and what becomes of a small update?"""

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
        for color, (name, size) in enumerate({"one scale": 0, "16 values": 16}.items())
    ]
    chart = Chart(
        Scale("the outlier, in standard deviations", "", "log"),
        Scale("error of all others", "%", "log", 0.3, 130),
        (*others, Points("", [outlier], [100 * now], [percent(now)], 2)),
    )
    tail = "the others are gone" if now > 0.9 else f"the others are off by {percent(now)}"
    return View(
        f"{element}, a scale for {block}: beside an outlier of {sig3(outlier)} standard deviations {tail}; "
        f"{one.bytes:.4g} {'byte' if one.bytes == 1 else 'bytes'} an element.",
        (chart,),
        (
            Readout.percent("error", now),
            Readout("bytes an element", one.bytes, "", f"{one.bytes:.4g}"),
            Readout("numbers of the element", one.element.numbers, "", str(one.element.numbers)),
        ),
    )


BENCH = Explorer(
    key="lowprecision.bench",
    title="A ruler and its scale",
    question="How far off does a format write, with an outlier among the values?",
    controls={
        "element": Choice("element", _NAMES, "E4M3"),
        "block": Choice("a scale for", tuple(_BLOCKS), "the tensor"),
        "power": Switch("scales are powers of two"),
        "heavy": Switch("heavy tails"),
        "outlier": Slider("the outlier, in standard deviations", 10.0, 100_000.0, 10_000.0, "log"),
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
        "is lost every time"
        if not moved
        else f"leaves {percent(abs(ways['nearest'][-1] - weight) / (_STEPS * -update))} of the way"
    )
    flat = 0.02 * weight
    chart = Chart(
        Scale("steps"),
        Scale("the weight", "", "linear", min(true, weight - flat) - flat, weight + flat),
        curves,
    )
    return View(
        f"A step is {percent(-update / half)} of half a mark: to the nearest, it {lost}. "
        f"By chance, the weight ends at {ways['stochastic'][-1]:.4g}, in fp32 at {ways['fp32'][-1]:.4g}.",
        (chart,),
        (
            Readout.percent("a step, of half a mark", -update / half),
            Readout("half a mark", half, "", f"{half:.6f}"),
            Readout("nearest", ways["nearest"][-1], "", f"{ways['nearest'][-1]:.4g}"),
            Readout("stochastic", ways["stochastic"][-1], "", f"{ways['stochastic'][-1]:.4g}"),
        ),
    )


WALK = Explorer(
    key="lowprecision.walk",
    title="A thousand small steps",
    question="Do a thousand small updates move a weight in bf16?",
    controls={
        "rate": Slider("learning rate", 1e-5, 1e-2, 5e-4, "log"),
        "rms": Slider("update before the rate", 0.05, 2.0, 0.2, "log"),
        "weight": Slider("the weight at the start", 0.02, 4.0, _START, "log"),
        "seed": Slider("throw of the dice", 0, 9, 0),
    },
    view=_walk,
)
