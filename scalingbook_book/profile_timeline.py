"""Draw a trace as a timeline: a row per device, a block per operation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scalingbook_book.reader import draw
from scalingbook_book.reader.explorers.view import Readout, Span, Timeline, View
from scalingbook_lib.profiles.trace import COLLECTIVE, COMPILE, LOOP, Trace
from scalingbook_lib.units import Result

COLORS = {"matmul": 1, COLLECTIVE: 2, "elementwise": 0, "copy": 4, COMPILE: 3}  # the colors of figures
MAX_BLOCKS = 400  # in one picture
HOST = "host compiles"


@dataclass(frozen=True, slots=True)
class Picture(Result):
    """A view that shows as a drawing where HTML is available, and as its verdict elsewhere."""

    view: View

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": str(self), "text/html": draw.figure(self.view, wide=True)}

    def __str__(self) -> str:
        return self.view.verdict


def picture(trace: Trace, run: int | None = -1, devices: Sequence[int] | None = (0,)) -> Picture:
    """Return the timeline of one run (None for all) on some devices (None for all)."""
    return Picture(view(trace, run, devices))


def view(trace: Trace, run: int | None = -1, devices: Sequence[int] | None = (0,)) -> View:
    """Return the timeline with its verdict and its numbers."""
    breakdown = trace.breakdown
    numbers = (
        Readout("time of a run", breakdown.run_s, "s"),
        Readout("computing", breakdown.compute_s, "s"),
        Readout("communicating", breakdown.comms_s, "s"),
        Readout("of it exposed", breakdown.exposed_s, "s"),
        Readout("compilations", len(trace.compilations)),
    )
    return View(f"{trace.title}: {breakdown}.", (timeline(trace, run, devices),), numbers)


def timeline(trace: Trace, run: int | None = -1, devices: Sequence[int] | None = (0,)) -> Timeline:
    """Return a row per device, or for a single device two rows: compute and communication."""
    shown = sorted({e.device for e in trace.events} if devices is None else devices)
    start, end = _range(trace, run)
    spans = _blocks(trace, start, end, shown)
    compiled = [
        Span(
            HOST,
            max(m.start_s, start) - start,
            min(m.end_s, end) - start,
            COMPILE,
            COLORS[COMPILE],
        )
        for m in trace.compilations
        if m.start_s < end and m.end_s > start
    ]
    moving = any(op.kind == COLLECTIVE for op in trace.ops)
    rows = dict.fromkeys(_row(d, moves, len(shown)) for d in shown for moves in (False, moving))
    return Timeline(
        (*([HOST] if compiled else []), *rows),
        (*compiled, *spans),
        end=end - start,
        title=_title(trace, run, shown),
    )


def _blocks(trace: Trace, start: float, end: float, devices: Sequence[int]) -> list[Span]:
    """Return the longest operations in time order, without those that contain others, such as loops."""
    here = [e for e in trace.events if e.device in devices and trace.ops[e.op].kind != LOOP]
    inside = [e for e in here if e.start_s >= start and e.end_s <= end]
    longest = sorted(inside, key=lambda e: -e.duration_s)[:MAX_BLOCKS]
    found = []
    for e in sorted(longest, key=lambda e: e.start_s):
        op = trace.ops[e.op]
        row = _row(e.device, op.kind == COLLECTIVE, len(devices))
        label = op.moves.partition(" of ")[0] or op.scope or op.name
        found.append(Span(row, e.start_s - start, e.end_s - start, label, COLORS.get(op.kind, 5)))
    return found


def _row(device: int, moves: bool, shown: int) -> str:
    if shown > 1:
        return f"device {device}"
    return "moves" if moves else "computes"


def _range(trace: Trace, run: int | None) -> tuple[float, float]:
    if run is not None:
        return trace.span(run)
    ends = [e.end_s for e in trace.events] + [m.end_s for m in trace.compilations]
    return 0.0, max(ends, default=1.0)


def _title(trace: Trace, run: int | None, shown: Sequence[int]) -> str:
    which = "all runs" if run is None else f"run {run % trace.runs + 1} of {trace.runs}"
    where = f", device {shown[0]}" if len(shown) == 1 < trace.devices else ""
    return f"{trace.title}, {which}{where}"
