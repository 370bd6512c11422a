"""Explorer that computes a datasheet's FLOPs/s from cores, matrix units, their sides and the clock rate."""

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Choice,
    Explorer,
    Readout,
    Scale,
    Series,
    Slider,
    View,
)
from scalingbook_lib.machines import Chip, chips, systolic
from scalingbook_lib.machines.systolic import Peak
from scalingbook_lib.units import si

_ONE, _TWO = "one", "two"
_SAME = 0.004  # how far a datasheet may be off the count by rounding


def _peak(*, cores: int, units: int, side: int, clock: float, each: str, chip: str) -> View:
    on = chips.find(chip)
    yours = systolic.peak(cores, units, side, clock, arrays_per_unit=1 if each == _ONE else 2)
    return View(
        _verdict(yours, on),
        (_bars(yours, on),),
        (
            Readout("multiply-adds per cycle", yours.cells, "", f"{yours.cells:,}"),
            Readout("datasheet / yours", yours.datasheet_ratio(on.bf16_flops_per_s), "×"),
            Readout("datasheet / vector unit", *_against_vector(on)),
            Readout(f"{on.name}, documented", 0, "", _documented(on)),
        ),
    )


def _bars(yours: Peak, on: Chip) -> Bars:
    """Your units beside the chip's own two rates."""
    rates = {
        "your units": yours.flops_per_s,
        f"{on.name}, datasheet in bf16": on.bf16_flops_per_s,
        f"{on.name}, vector unit": on.vector_flops_per_s or 0.0,
    }
    known = {name: rate for name, rate in rates.items() if rate}
    return Bars(Scale("rate", "FLOPs/s"), tuple(known), (Series("rate", tuple(known.values()), 0),))


def _against_vector(on: Chip) -> tuple[float, str, str]:
    if on.vector_flops_per_s is None:
        return 0.0, "", "not documented"
    return on.bf16_flops_per_s / on.vector_flops_per_s, "×", ""


def _documented(on: Chip) -> str:
    """A chip's cores, units, side and clock in a few words."""
    units = (on.matrix_units or 0) // (on.cores or 1)
    clock = si(on.clock_hz, "Hz") if on.clock_hz else "unknown clock"
    return f"{on.cores} × {units} of {on.matrix_side}², {clock}"


def _verdict(yours: Peak, on: Chip) -> str:
    ratio = yours.datasheet_ratio(on.bf16_flops_per_s)
    if abs(ratio - 1) < _SAME:
        return f"{yours}, as in {on.name}'s datasheet."
    if abs(ratio - 2) < 2 * _SAME and yours.arrays_per_unit == 1:
        return f"{yours}. {on.name}'s datasheet says twice that, as if every unit consisted of two arrays."
    return f"{yours}. {on.name}'s datasheet says {ratio:.3g} times that."


PEAK = Explorer(
    key="tpus.peak",
    title="Peak FLOPs/s from cores, units and clock",
    question="What number of cores and units, array side and clock explain the FLOPs/s of a datasheet?",
    controls={
        "cores": Slider("cores", 1, 2, 1),
        "units": Slider("matrix units per core", 1, 8, 4),
        "side": Slider("side of a unit", 64, 512, 128, "pow2"),
        "clock": Slider("clock", 5e8, 3e9, 1.5e9, "linear", "Hz", 5e7),
        "each": Choice("multiply-adds per cell and cycle", (_ONE, _TWO)),
        "chip": Choice("datasheet of", tuple(chip.name for chip in chips.TPUS), "TPU v5e"),
    },
    view=_peak,
)
