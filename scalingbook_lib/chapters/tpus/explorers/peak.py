"""Which units make up a datasheet's FLOPs/s, and what does a product that fills no tile leave of them?"""

from scalingbook_lib.machines import Chip, chips, systolic
from scalingbook_lib.machines.systolic import Peak
from scalingbook_lib.reader.explorers.parts import (
    Bars,
    Chart,
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
from scalingbook_lib.units import percent, si

_ROWS = 8192  # of X: many, so that tiles alone cost anything
_DEEPEST = 1024
_ONE, _TWO = "one multiply-add", "two"
_SAME = 0.004  # how far a datasheet may be off the count by rounding


def _peak(*, cores: int, units: int, side: int, clock: float, each: str, K: int, N: int, chip: str) -> View:
    on = chips.find(chip)
    yours = systolic.peak(cores, units, side, clock, arrays_per_unit=1 if each == _ONE else 2)
    used = systolic.padding(_ROWS, K, N, side).useful
    return View(
        f"{_verdict(yours, on)} {_padded(yours, K, N, used)}",
        (_bars(yours, on, used), _chart(yours, K, N, used)),
        (
            Readout("multiply-adds a cycle", yours.cells, "", f"{yours.cells:,}"),
            Readout("datasheet : yours", yours.unexplained(on.bf16_flops_per_s), "×"),
            Readout.percent("cells used", used, 3),
            Readout("datasheet : vector unit", *_against_vector(on)),
            Readout(f"{on.name} documents", 0, "", _documented(on)),
        ),
    )


def _bars(yours: Peak, on: Chip, used: float) -> Bars:
    """Your units, all of them and what padding leaves, beside the chip's own two rates."""
    rates = {
        "your units": yours.flops_per_s,
        "of them, padding leaves": used * yours.flops_per_s,
        f"{on.name}, datasheet in bf16": on.bf16_flops_per_s,
        f"{on.name}, vector unit": on.vector_flops_per_s or 0.0,
    }
    known = {name: rate for name, rate in rates.items() if rate}
    return Bars(Scale("rate", "FLOPs/s"), tuple(known), (Series("rate", tuple(known.values()), 0),))


def _chart(yours: Peak, K: int, N: int, used: float) -> Chart:
    """What padding leaves at every depth, and what it would leave of as many cells in other arrays."""
    # the side to compare with: that of the older generations, or of the newer for those
    rate, other = yours.flops_per_s, (128 if yours.side > 128 else 2 * yours.side)
    depths = _depths(min(yours.side, other))
    ours, others = (_left(depths, N, side, rate) for side in (yours.side, other))
    return Chart(
        Scale("depth K", "", "linear", 0, _DEEPEST),
        Scale("rate that padding leaves", "FLOPs/s", "linear", 0, 1.1 * rate),
        (
            Curve(f"side {other}, as many cells", depths, others, 3, dashed=True),
            Curve(f"side {yours.side}", depths, ours, 0),
            Points("your K", [K], [used * rate], ["your K"], 1),
        ),
    )


def _depths(side: int) -> list[int]:
    """Depths along the axis, with both sides of every step."""
    steps = range(side, _DEEPEST, side)
    return sorted({1, *range(16, _DEEPEST + 1, 16), *steps, *(step + 1 for step in steps)})


def _left(depths: list[int], N: int, side: int, rate: float) -> list[float]:
    return [rate * systolic.padding(_ROWS, K, N, side).useful for K in depths]


def _against_vector(on: Chip) -> tuple[float, str, str]:
    if on.vector_flops_per_s is None:
        return 0.0, "", "not documented"
    return on.bf16_flops_per_s / on.vector_flops_per_s, "×", ""


def _documented(on: Chip) -> str:
    """A chip's cores, units, side and clock in a few words."""
    units = (on.matrix_units or 0) // (on.cores or 1)
    clock = si(on.clock_hz, "Hz") if on.clock_hz else "no clock"
    return f"{on.cores} × {units} of {on.matrix_side}², {clock}"


def _verdict(yours: Peak, on: Chip) -> str:
    ratio = yours.unexplained(on.bf16_flops_per_s)
    if abs(ratio - 1) < _SAME:
        return f"{yours}, as {on.name}'s datasheet prints."
    if abs(ratio - 2) < 2 * _SAME and yours.arrays_per_unit == 1:
        return f"{yours}; {on.name}'s datasheet prints twice that, as if every unit were two arrays."
    return f"{yours}; {on.name}'s datasheet prints {ratio:.3g} times that."


def _padded(yours: Peak, K: int, N: int, used: float) -> str:
    if used == 1:
        return f"W[{K:,}, {N:,}] fills whole tiles."
    return f"W[{K:,}, {N:,}] uses {percent(used)} of its tiles: {si(used * yours.flops_per_s, 'FLOPs/s')}."


PEAK = Explorer(
    key="tpus.peak",
    title="The peak, counted",
    question="Which cores, units, sides and clocks explain a datasheet, and what do tiles leave of its rate?",
    controls={
        "cores": Slider("cores", 1, 2, 1),
        "units": Slider("matrix units a core", 1, 8, 4),
        "side": Slider("side of a unit", 64, 512, 128, "pow2"),
        "clock": Slider("clock", 5e8, 3e9, 1.5e9, "linear", "Hz", 5e7),
        "each": Choice("a cell does in a cycle", (_ONE, _TWO)),
        "K": Slider("depth K of W", 1, _DEEPEST, 192),
        "N": Slider("columns N of W", 1, 2048, 1024),
        "chip": Choice("datasheet of", tuple(chip.name for chip in chips.TPUS), "TPU v5e"),
    },
    view=_peak,
)
