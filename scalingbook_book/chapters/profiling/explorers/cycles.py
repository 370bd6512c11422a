"""Explorer that compares the compiler's estimates for matmuls with the roofline."""

from scalingbook_book.reader.explorers.parts import (
    Chart,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    View,
)
from scalingbook_lib.evidence.compiled.cycles import ESTIMATES, WIDTH, Estimates
from scalingbook_lib.units import binary, percent, si

_FEW, _MANY = 8, 4096
_AXIS = Scale("rows M", "", "pow2", _FEW, _MANY)


def _cycles(*, machine: str, M: int) -> View:
    kept = ESTIMATES[machine]
    return View(
        _verdict(kept, M),
        (_times(kept, M), _ratios(kept, M)),
        (
            Readout("estimated cycles", kept.cycles[M], "", f"{kept.cycles[M]:,}"),
            Readout("estimated time", kept.seconds(M), "s"),
            Readout("clock", kept.clock_hz, "Hz", si(kept.clock_hz, "Hz")),
            Readout("roofline", kept.bound(M).lower_s, "s"),
            Readout("estimate over roofline", kept.ratio_to_roofline(M), "×"),
            Readout("knee of the estimate", kept.knee, "", f"{kept.knee:.0f} rows"),
            Readout("knee of the roofline", kept.critical_batch, "", f"{kept.critical_batch:.0f} rows"),
        ),
        columns=2,
    )


def _times(kept: Estimates, M: int) -> Chart:
    rows = list(kept.cycles)
    seconds = [kept.seconds(m) for m in rows]
    bounds = [kept.bound(m).lower_s for m in rows]
    return Chart(
        _AXIS,
        Scale("time", "s", "log", 0.7 * min(seconds + bounds), 1.6 * max(seconds + bounds)),
        (
            Curve("roofline", rows, bounds, 0),
            Curve("compiler", rows, seconds, 1),
            RefLine("C/W", kept.critical_batch),
            Points("", [M], [kept.seconds(M)], [si(kept.seconds(M), "s")], 1),
        ),
        title=f"X[M, {WIDTH:,}] · W[{WIDTH:,}, {WIDTH:,}]",
    )


def _ratios(kept: Estimates, M: int) -> Chart:
    rows = list(kept.cycles)
    return Chart(
        _AXIS,
        Scale("estimate over roofline", "×", low=0, high=2),
        (
            RefLine("the roofline", 1, "y"),
            RefLine("C/W", kept.critical_batch),
            Curve("", rows, [kept.ratio_to_roofline(m) for m in rows], 1),
            Points("", [M], [kept.ratio_to_roofline(M)], [f"{kept.ratio_to_roofline(M):.3g} ×"], 1),
        ),
        title="Estimate relative to the roofline",
    )


def _verdict(kept: Estimates, M: int) -> str:
    said = (
        f"For {M:,} rows, the compiler estimates {kept.cycles[M]:,} cycles, or "
        f"{si(kept.seconds(M), 's')}. That is {kept.ratio_to_roofline(M):.3g} times the roofline."
    )
    return f"{said} {_ahead(kept) if kept.prefetched else _knees(kept)}"


def _ahead(kept: Estimates) -> str:
    """The sentence about a kernel whose estimate leaves out the copy of its weights."""
    size = binary(WIDTH * WIDTH * kept.dtype.bytes)
    return (
        f"With few rows, the estimate is below the roofline, which no program can beat. The {size} of W "
        "fit in VMEM and are copied there first, and the estimate for the kernel leaves out this copy."
    )


def _knees(kept: Estimates) -> str:
    peak = percent(1 / kept.ratio_to_roofline(_MANY))
    rate, most = si(kept.bytes_per_s, "B/s"), si(kept.chip.hbm_bytes_per_s, "B/s")
    return (
        f"It assumes that {_FEW} rows read W at {rate} of {most}, and that {_MANY:,} rows compute at "
        f"{peak} of the peak. So its knee is at {kept.knee:.0f} rows; by the datasheet, it is at "
        f"{kept.critical_batch:.0f}."
    )


CYCLES = Explorer(
    key="profiling.cycles",
    title="The compiler's estimate and the roofline",
    question="Is the knee of the compiler's estimate at the same number of rows as the knee of the roofline?",
    controls={
        "machine": Choice("chip and data type", tuple(ESTIMATES), "TPU v5e, bf16"),
        "M": Slider("rows M", _FEW, _MANY, 256, "pow2"),
    },
    view=_cycles,
)
