"""Explorer of measured matmuls: batch sweeps and their lower bounds."""

import math

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
    pluralize,
)
from scalingbook_lib.evidence.measured import SWEEPS, MatmulSweep, Measured
from scalingbook_lib.units import percent, si

_BATCHES = [2.0 ** (e / 2) for e in range(31)]  # 1 to 32,768, two points an octave


def _measured(*, sweep: str, B: int) -> View:
    seen = SWEEPS[sweep]
    now = min(seen.rows, key=lambda row: abs(math.log(row.batch / B)))
    above, below = seen.attained(above=True), seen.attained(above=False)
    return View(
        _verdict(seen, now, B),
        (_times(seen, now), _shares(seen, now)),
        (
            Readout("measured", now.seconds, "s"),
            Readout("lower bound", now.roofline.lower_s, "s"),
            Readout.percent("attained fraction", now.attained),
            Readout.percent("median below the critical batch", below),
            Readout.percent("median above it", above),
        ),
        columns=2,
    )


def _times(seen: MatmulSweep, now: Measured) -> Chart:
    others = [row for row in seen.rows if row.batch != now.batch]
    return Chart(
        Scale("batch B", "tokens", "log", _BATCHES[0], _BATCHES[-1]),
        Scale("time", "s", "log", seen.bound(1).lower_s / 2),
        (
            Curve("lower bound", _BATCHES, [seen.bound(batch).lower_s for batch in _BATCHES], 0),
            RefLine("critical batch", seen.break_even),
            Points("measured", [row.batch for row in others], [row.seconds for row in others], color=1),
            Points("", [now.batch], [now.seconds], [si(now.seconds, "s")], 2),
        ),
    )


def _shares(seen: MatmulSweep, now: Measured) -> Chart:
    return Chart(
        Scale("batch B", "tokens", "log", _BATCHES[0], _BATCHES[-1]),
        Scale("attained fraction of the roofline", "%", low=0, high=110),
        (
            RefLine("the roofline", 100, axis="y"),
            RefLine("critical batch", seen.break_even),
            Curve("", [row.batch for row in seen.rows], [100 * row.attained for row in seen.rows], 1),
            Points("", [now.batch], [100 * now.attained], [percent(now.attained)], 2),
        ),
    )


def _verdict(seen: MatmulSweep, now: Measured, B: int) -> str:
    tokens = pluralize(now.batch, "token")
    at = f"With {tokens}" if now.batch == B else f"A batch of {B:,} was not measured. With {tokens}"
    best = max(row.attained for row in seen.rows)
    return (
        f"{at}, the {seen.chip.name} took {si(now.seconds, 's')}. At the documented peaks, the matmul would "
        f"take at least {si(now.roofline.lower_s, 's')} ({now.roofline.bound}), so the matmul attained "
        f"{percent(now.attained)} of its roofline. The best of its {len(seen.rows)} measurements "
        f"attained {percent(best)}."
    )


MEASURED = Explorer(
    key="rooflines.measured",
    title="Measured matmuls and their roofline",
    question="How close does a real chip come to the lower bound, and at which batch is the gap widest?",
    controls={
        "sweep": Choice("measured on", tuple(SWEEPS), "H100, bf16, 16,384 wide"),
        "B": Slider("batch B", 1, 32768, 128, "pow2", unit="tokens"),
    },
    view=_measured,
)
