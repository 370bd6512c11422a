"""Explorer of the timeline of an AllGather and a matmul: compute, links and exposed time."""

from dataclasses import replace

from scalingbook_book.reader.explorers.parts import (
    TORI,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    Span,
    Timeline,
    View,
)
from scalingbook_book.reader.figures.shapes import MATH, NETWORK
from scalingbook_lib.machines import Axis, chips
from scalingbook_lib.sharded_matmul.overlap import BACK, LINK, UNIT, OverlapRun, RingMatmul
from scalingbook_lib.units import percent, si

SCHEDULES = {"gather, then multiply": "serial", "ring, one direction": "one", "ring, both directions": "both"}
_WIDTHS = [2.0 ** (e / 4) for e in range(36, 65)]  # local columns, 512 to 65,536
_TITLE = "Timeline of one chip; gaps in the first lane are exposed communication"
_LANES = {UNIT: "computes", LINK: "link →", BACK: "link ←"}
_WHOLE = {UNIT: "matmul", LINK: "all-gather", BACK: "all-gather"}  # without chunks


def _played(layer: RingMatmul, schedule: str) -> OverlapRun:
    """The run of one layer under a schedule."""
    sides = {"one": 1, "both": 2}.get(schedule)
    return layer.on_arrival(sides) if sides else layer.gather_first()


def _timeline(*, schedule: str, B: int, D: int, F: int, n: int, W: float, chip: str) -> View:
    on, how = chips.find(chip), SCHEDULES[schedule]
    layer = RingMatmul(B=B, D=D, F=F / n, axis=Axis(n, True, W, on.hop_s), chip=on)
    now, plain = _played(layer, how), layer.gather_first()
    return View(
        _verdict(layer, schedule, now),
        (_lanes(now, plain, how), _curves(layer, how, now)),
        (
            Readout("time of a layer", now.total_s, "s"),
            Readout("compute", now.math_s, "s"),
            Readout("communication", now.comms_s, "s"),
            Readout("exposed communication", now.exposed_s, "s"),
            Readout("columns per chip", layer.F, "", f"{layer.F:,.0f}"),
            Readout("C/W₁", layer.ratio, "", f"{layer.ratio:,.0f}"),
        ),
    )


def _lanes(now: OverlapRun, plain: OverlapRun, how: str) -> Timeline:
    words = [_WHOLE[t.stage] if how == "serial" else str(t.chunk) for t in now.turns]
    spans = [
        Span(_LANES[t.stage], t.start_s, t.end_s, word, MATH if t.stage == UNIT else NETWORK)
        for t, word in zip(now.turns, words, strict=True)
    ]
    refs = () if now.total_s == plain.total_s else (RefLine("gather first", plain.total_s),)
    end = 1.04 * max(plain.total_s, now.total_s)
    return Timeline(tuple(_LANES.values()), spans, end=end, refs=refs, title=_TITLE)


def _curves(layer: RingMatmul, how: str, now: OverlapRun) -> Chart:
    curves = [
        Curve(name, _WIDTHS, [_waits(layer, width, key) for width in _WIDTHS], k)
        for k, (name, key) in enumerate(SCHEDULES.items())
    ]
    share = 100 * now.exposed_s / now.total_s
    here = min(max(layer.F, _WIDTHS[0]), _WIDTHS[-1])
    marks = [*curves, RefLine("C/W₁", layer.ratio), RefLine("C/2W₁", layer.ratio / 2)]
    return Chart(
        Scale("columns per chip, F/n", "", "pow2", _WIDTHS[0], _WIDTHS[-1]),
        Scale("exposed fraction of the time", "%", low=0, high=100),
        (*marks, Points("", [here], [share], [percent(share / 100)], list(SCHEDULES.values()).index(how))),
    )


def _waits(layer: RingMatmul, columns: float, how: str) -> float:
    """The exposed share of the time, in percent."""
    run = _played(replace(layer, F=columns), how)
    return 100 * run.exposed_s / run.total_s


def _verdict(layer: RingMatmul, schedule: str, now: OverlapRun) -> str:
    said = f"A layer takes {si(now.total_s, 's')}, and {si(now.exposed_s, 's')} of it is exposed"
    columns, edge = f"{layer.F:,.0f} columns", f"{layer.overlap_threshold_F:,.0f}"
    product, hop = si(layer.matmul_s, "s"), si(layer.transfer_s, "s")
    if SCHEDULES[schedule] == "serial":
        best = min(layer.on_arrival(links).total_s for links in (1, 2))
        return f"{said}, which is the whole AllGather. A ring would take {si(best, 's')}."
    if now.exposed_s <= 1e-9 * now.total_s:
        longer = f"The matmul of a chunk ({product}) takes longer than its hop ({hop})"
        return (
            f"{schedule.capitalize()}: no exposed communication. {longer}, because {columns} are more "
            f"than {edge}."
        )
    if SCHEDULES[schedule] == "both" and layer.matmul_s >= layer.transfer_s / 2:
        return (
            f"{said}. The chip waits only for the first hop. After that, two chunks arrive in each hop, "
            "and two matmuls hide the hop."
        )
    more = f"With {edge} or more columns per chip, nothing would be exposed; more rows lengthen both times"
    return f"{said}: a hop takes {hop}, but the matmul of a chunk takes only {product}. {more}."


TIMELINE = Explorer(
    key="profiling.timeline",
    title="Timeline of an AllGather and a matmul",
    question=(
        "In[B, D] is gathered over n chips in whole chunks and multiplied by W[D, F]. How much of the "
        "communication is exposed?"
    ),
    controls={
        "schedule": Choice("schedule", tuple(SCHEDULES), "ring, one direction"),
        "B": Slider("rows B", 512, 65536, 8192, "pow2"),
        "D": Slider("width D", 1024, 16384, 8192, "pow2"),
        "F": Slider("columns F", 1024, 131072, 8192, "pow2"),
        "n": Slider("chips n", 2, 16, 4),
        "W": Slider("link, one direction", 1e10, 4e11, 5e10, "log", "B/s"),
        "chip": Chips("chip", TORI, "TPU v5e"),
    },
    view=_timeline,
)
