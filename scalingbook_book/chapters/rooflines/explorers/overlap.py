"""Explorer of overlap: a timeline of copies and computation with one or two buffers."""

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
    hidden = (most - took) / min(math_s, memory_s)
    return View(
        _verdict(chunks, took, least, most, buffered),
        (timeline,),
        (
            Readout("time", took, "s"),
            Readout("lower bound: larger time", least, "s"),
            Readout("upper bound: sum", most, "s"),
            Readout.percent("hidden fraction", hidden),
        ),
    )


def _verdict(chunks: int, took: float, least: float, most: float, buffered: bool) -> str:
    if not buffered:
        return f"With a single buffer nothing overlaps, and the two times add up to {si(took, 's')}."
    if chunks == 1:
        return f"With a single chunk there is nothing to overlap: the operation takes {si(took, 's')}."
    return (
        f"With {chunks} chunks, the operation takes {si(took, 's')}, {percent(took / least - 1)} more "
        f"than the lower bound of {si(least, 's')} and {percent(1 - took / most)} less than without "
        "overlap."
    )


def _lanes(math_s: float, copy_s: float, chunks: int, buffered: bool) -> tuple[list[Span], list[Span]]:
    """Copies and computations of all chunks; with one buffer, a copy waits for the computation before it."""
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
    title="Overlap: copy the next chunk while computing on the current one",
    question="How close does an operation come to the larger of its two times if it is divided into chunks?",
    controls={
        "math_us": Slider("compute time", 1, 400, 44, unit="µs"),
        "memory_us": Slider("memory time", 1, 400, 166, unit="µs"),
        "chunks": Slider("chunks", 1, 64, 2),
        "buffered": Switch("double buffering", True),
    },
    view=_overlap,
)
