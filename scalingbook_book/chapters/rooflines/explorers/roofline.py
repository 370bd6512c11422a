"""Explorer of the roofline plot: one matmul on two chips."""

from scalingbook_book.reader.explorers.parts import (
    CHIPS_WITH_FLOPS,
    Bars,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
    pluralize,
)
from scalingbook_lib import roofline
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.units import DType, dtype, percent, si

_LOWEST, _HIGHEST = 1.0, 1e5  # FLOPs per byte


# The roofline, two chips side by side


def _two_rooflines(*, B: int, D: int, F: int, numbers: str, level: str, left: str, right: str) -> View:
    kind = dtype(numbers)
    on = [chips.find(left)] if left == right else [chips.find(left), chips.find(right)]
    times = [roofline.matmul(B, D, F, chip, kind, bytes_per_s=_rate(chip, level)) for chip in on]
    chart = Chart(
        Scale("arithmetic intensity", "FLOPs/byte", "log", _LOWEST, _HIGHEST),
        Scale("attainable rate", "FLOPs/s", "log", 1e10, _top(on, kind)),
        (
            *(_roof(chip, kind, t) for chip, t in zip(on, times, strict=True)),
            *(_operation(t, color) for color, t in enumerate(times)),
            RefLine("this matmul", times[0].intensity),
        ),
    )
    return View(
        _two_verdicts(B, on, times),
        (chart, _two_bars(on, times)),
        (
            Readout("intensity", times[0].intensity, "FLOPs/byte"),
            *(Readout(f"{c.name}: ridge", t.ridge, "FLOPs/byte") for c, t in zip(on, times, strict=True)),
        ),
    )


def _top(on: list[Chip], kind: DType) -> float:
    """Upper end of the axis in FLOPs/s: 1e16 for most chips, 1e18 for a wafer or Rubin in fp4."""
    return 1e16 if max(chip.flops_per_s(kind) for chip in on) < 1e16 else 1e18


def _rate(chip: Chip, level: str) -> float:
    rates = roofline.levels(chip)
    if level not in rates:
        raise ValueError(f"{chip.name} has no documented {level} bandwidth; choose one of {', '.join(rates)}")
    return rates[level]


def _roof(chip: Chip, kind: DType, time: roofline.Roofline) -> Curve:
    """Roofline of `chip` in FLOPs/s; on log axes it is two straight lines, so three points are exact."""
    xs = [_LOWEST, time.ridge, _HIGHEST]
    return Curve(chip.name, xs, [roofline.attainable(x, chip, kind, time.bytes_per_s) for x in xs])


def _operation(time: roofline.Roofline, color: int) -> Points:
    rate = time.attained_flops_per_s
    return Points("", [time.intensity], [rate], [si(rate, "FLOPs/s")], color)


def _two_bars(on: list[Chip], times: list[roofline.Roofline]) -> Bars:
    return Bars(
        Scale("time", "s"),
        [chip.name for chip in on],
        (
            Series("compute", [t.math_s for t in times], 2),
            Series("memory", [t.memory_s for t in times], 3),
        ),
    )


def _two_verdicts(B: int, on: list[Chip], times: list[roofline.Roofline]) -> str:
    said = f"With {pluralize(B, 'token')}, this matmul is {times[0].bound} on "
    share = percent(times[0].attained_fraction)
    first = f"it reaches at most {share} of the peak"
    if len(on) == 1:
        return f"{said}the {on[0].name}: {first} and takes at least {si(times[0].lower_s, 's')}."
    alike = times[0].bound == times[1].bound
    said += "both chips" if alike else f"the {on[0].name} and {times[1].bound} on the {on[1].name}"
    second = percent(times[1].attained_fraction)
    said += (
        f": {first} on the {on[0].name} and at most {second} on the {on[1].name}"
        if alike
        else f": it reaches at most {share} and {second} of the peak, respectively"
    )
    ratio = times[0].lower_s / times[1].lower_s
    faster, by = (on[1], ratio) if ratio > 1 else (on[0], 1 / ratio)
    return (
        f"{said}. The {faster.name} is {by:.3g} times as fast."
        if by > 1
        else f"{said}. Both chips take equally long."
    )


ROOFLINE = Explorer(
    key="rooflines.roofline",
    title="Roofline plot of one matmul on two chips",
    question="What limits the matmul X[B, D] · W[D, F] on each chip, and how much of the peak can it attain?",
    controls={
        "B": Slider("tokens B", 1, 16384, 64, "log"),
        "D": Slider("width D", 256, 32768, 8192, "pow2"),
        "F": Slider("width F", 256, 131072, 32768, "pow2"),
        "numbers": Choice("data type", ("bf16", "fp16", "int8", "fp8", "fp4"), "bf16"),
        "level": Choice("operands come from", ("HBM", "VMEM", "ICI", "PCIe", "DCN"), "HBM"),
        "left": Chips("first chip", CHIPS_WITH_FLOPS, "TPU v5e"),
        "right": Chips("second chip", CHIPS_WITH_FLOPS, "TPU v6e"),
    },
    view=_two_rooflines,
)
