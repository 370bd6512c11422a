"""Explorer of the hierarchical roofline: all memories and links of a chip in one plot."""

from scalingbook_book.reader.explorers.parts import (
    WITH_TORUS,
    Bars,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    Scale,
    Series,
    Slider,
    View,
)
from scalingbook_lib import roofline
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.units import BF16, percent, si

_LOWEST, _HIGHEST = 1.0, 1e6  # FLOPs per byte


def _levels(*, B: int, D: int, F: int, n: int, weights: str, crosses: str, chip: str) -> View:
    on = chips.find(chip)
    rates = _rates(on, n)
    moved = _moved(B, D, F, n=n, host="PCIe" if weights != "HBM" else "", crosses=crosses)
    for level in moved:
        if level not in rates:
            raise ValueError(
                f"{on.name} has no documented {level} bandwidth; choose another chip or another level"
            )
    flops = 2 * B * D * F / n
    took = roofline.Ladder(flops / on.flops_per_s(BF16), {lv: moved[lv] / rates[lv] for lv in moved})
    bars = Bars(Scale("time", "s"), tuple(took.terms), (Series("time", tuple(took.terms.values()), 0),))
    reached = took.math_s / took.lower_s
    return View(
        _verdict(took, reached),
        (_plot(on, rates, flops, moved), bars),
        (
            Readout("lower bound", took.lower_s, "s"),
            Readout.percent("fraction of peak", reached),
            *(Readout(f"FLOPs per byte of {lv}", flops / moved[lv], "FLOPs/byte") for lv in moved),
        ),
    )


def _rates(on: Chip, n: int) -> dict[str, float]:
    """Bandwidth of each level in bytes/s; for ICI, that of an axis of `n` chips, ring or line."""
    return {
        level: on.axis(n).bytes_per_s if level == "ICI" and n > 1 else rate
        for level, rate in roofline.levels(on).items()
    }


def _moved(B: int, D: int, F: int, *, n: int, host: str, crosses: str) -> dict[str, float]:
    """Bytes that one chip moves at each level, in bf16: X, W, Y and the AllReduce of partial sums."""
    moved = {"HBM": 2 * (B * D / n + D * F / n + B * F)}
    if n > 1:
        moved[crosses] = 2 * (1 - 1 / n) * 2 * B * F  # AllReduce of the partial sums
    if host:
        moved[host] = 2 * D * F / n
    return moved


def _plot(on: Chip, rates: dict[str, float], flops: float, moved: dict[str, float]) -> Chart:
    peak = on.flops_per_s(BF16)
    ridges = {level: peak / rate for level, rate in rates.items()}
    slopes = [
        Curve(level, [_LOWEST, ridge], [_LOWEST * rates[level], peak], i % 6)
        for i, (level, ridge) in enumerate(ridges.items())
    ]
    dots = [
        _dot(i, flops, moved[level], peak, rates[level]) for i, level in enumerate(rates) if level in moved
    ]
    flat = Curve("peak", [min(ridges.values()), _HIGHEST], [peak, peak], 5)
    return Chart(
        Scale("FLOPs per byte of that level", "FLOPs/byte", "log", _LOWEST, _HIGHEST),
        Scale("attainable rate", "FLOPs/s", "log", 1e9, 1e16),
        (flat, *slopes, *dots),
    )


def _dot(color: int, flops: float, nbytes: float, peak: float, rate: float) -> Points:
    attainable = min(peak, flops / nbytes * rate)
    return Points("", [flops / nbytes], [attainable], [si(attainable, "FLOPs/s")], color)


def _verdict(took: roofline.Ladder, reached: float) -> str:
    if took.slowest == "math":
        return f"Compute-bound: compute takes {si(took.math_s, 's')}, longer than any memory or link."
    bound = (
        "Memory-bound"
        if took.slowest == "HBM"
        else "Limited by PCIe"
        if took.slowest == "PCIe"
        else "Network-bound"
    )
    return (
        f"{bound}: {took.slowest} takes {si(took.lower_s, 's')} and compute takes "
        f"{si(took.math_s, 's')}, so the chip attains at most {percent(reached)} of its peak."
    )


LEVELS = Explorer(
    key="rooflines.levels",
    title="Hierarchical roofline: several memories and links",
    question="The contracting dimension of a matmul is sharded over n chips. Which level limits each chip?",
    controls={
        "B": Slider("tokens B", 1, 65536, 512, "pow2"),
        "D": Slider("width D, all chips", 256, 131072, 32768, "pow2"),
        "F": Slider("width F", 256, 131072, 8192, "pow2"),
        "n": Slider("chips n", 1, 16, 16, "pow2"),
        "weights": Choice("weights come from", ("HBM", "the host, over PCIe"), "HBM"),
        "crosses": Choice("partial sums cross", ("ICI", "DCN"), "ICI"),
        "chip": Chips("chip", WITH_TORUS, "TPU v5e"),
    },
    view=_levels,
)
