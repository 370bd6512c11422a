"""What does double buffering hide? Two lanes of a time line."""

from scalingbook_book.reader.explorers.parts import (
    Explorer,
    Readout,
    RefLine,
    Slider,
    Span,
    Switch,
    Timeline,
    View,
)
from scalingbook_lib import roofline
from scalingbook_lib.units import percent, si

_MEMORY, _MATH = "copy", "compute"


def _overlap(*, math_us: int, memory_us: int, chunks: int, buffered: bool) -> View:
    math_s, memory_s = math_us * 1e-6, memory_us * 1e-6
    copies, sums = _lanes(math_s / chunks, memory_s / chunks, chunks, buffered)
    took = sums[-1].end
    least, most = max(math_s, memory_s), math_s + memory_s
    assert abs(took - (roofline.pipelined(math_s, memory_s, chunks) if buffered else most)) < 1e-12
    bounds = (RefLine("larger", least), RefLine("sum", most))
    timeline = Timeline((_MEMORY, _MATH), (*copies, *sums), end=1.02 * most, refs=bounds)
    over, hidden = took / least - 1, (most - took) / min(math_s, memory_s)
    pieces = f"{chunks} chunk{'s' * (chunks > 1)}"
    return View(
        f"In {pieces} the operation takes {si(took, 's')}, {percent(over)} more than its longer half alone.",
        (timeline,),
        (
            Readout("time", took, "s"),
            Readout("lower bound: the larger", least, "s"),
            Readout("upper bound: the sum", most, "s"),
            Readout.percent("hidden", hidden),
        ),
    )


def _lanes(math_s: float, copy_s: float, chunks: int, buffered: bool) -> tuple[list[Span], list[Span]]:
    """Every chunk's copy and its computation; with one buffer the next copy waits for the computation."""
    copies: list[Span] = []
    sums: list[Span] = []
    free, done = 0.0, 0.0  # when the copier may start again, when the unit is done
    for chunk in range(chunks):
        label, color = str(chunk + 1) if chunks <= 12 else "", chunk % 2
        copies.append(Span(_MEMORY, free, free + copy_s, label, color))
        start = max(free + copy_s, done)
        sums.append(Span(_MATH, start, start + math_s, label, color))
        free, done = (max(free + copy_s, start), start + math_s) if buffered else (start + math_s,) * 2
    return copies, sums


OVERLAP = Explorer(
    key="rooflines.overlap",
    title="Overlap: copy one chunk, compute the one before",
    question="How close to the larger of the two times does an operation come when it is cut into chunks?",
    controls={
        "math_us": Slider("arithmetic", 1, 400, 44, unit="µs"),
        "memory_us": Slider("moving bytes", 1, 400, 166, unit="µs"),
        "chunks": Slider("chunks", 1, 64, 2),
        "buffered": Switch("two buffers that take turns", True),
    },
    view=_overlap,
)
