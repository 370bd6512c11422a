"""What does a trace look like? A lane for each device, a block for each operation, as a `View`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scalingbook_lib.lab.profiler.table import COLLECTIVE, COMPILE, LOOP, Trace
from scalingbook_lib.reader import draw
from scalingbook_lib.reader.explorers.view import Readout, Span, Timeline, View
from scalingbook_lib.units import Result

COLORS = {"matmul": 1, COLLECTIVE: 2, "elementwise": 0, "copy": 4, COMPILE: 3}  # by role, as in figures
MOST = 400  # blocks in one picture
HOST = "host compiles"


@dataclass(frozen=True, slots=True)
class Picture(Result):
    """A view on display: a drawing where HTML is shown, its verdict elsewhere."""

    view: View

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": str(self), "text/html": draw.figure(self.view, wide=True)}

    def __str__(self) -> str:
        return self.view.verdict


def picture(trace: Trace, run: int | None = -1, devices: Sequence[int] | None = (0,)) -> Picture:
    """The time line of one run (None: of all) on some devices (None: on all)."""
    return Picture(view(trace, run, devices))


def view(trace: Trace, run: int | None = -1, devices: Sequence[int] | None = (0,)) -> View:
    """The time line, its verdict and its numbers."""
    lanes = trace.lanes
    numbers = (
        Readout("time of a run", lanes.run_s, "s"),
        Readout("computing", lanes.compute_s, "s"),
        Readout("communicating", lanes.comms_s, "s"),
        Readout("of it exposed", lanes.exposed_s, "s"),
        Readout("compilations", len(trace.compilations)),
    )
    return View(f"{trace.title}: {lanes}.", (timeline(trace, run, devices),), numbers)


def timeline(trace: Trace, run: int | None = -1, devices: Sequence[int] | None = (0,)) -> Timeline:
    """A lane for each device, two where one device alone is shown: what computes, and what moves."""
    shown = sorted({e.device for e in trace.events} if devices is None else devices)
    start, end = _range(trace, run)
    spans = _blocks(trace, start, end, shown)
    compiled = [
        Span(
            HOST,
            max(m.start_s, start) - start,
            min(m.start_s + m.took_s, end) - start,
            COMPILE,
            COLORS[COMPILE],
        )
        for m in trace.compilations
        if m.start_s < end and m.start_s + m.took_s > start
    ]
    moving = any(op.kind == COLLECTIVE for op in trace.ops)
    lanes = dict.fromkeys(_lane(d, moves, len(shown)) for d in shown for moves in (False, moving))
    return Timeline(
        (*([HOST] if compiled else []), *lanes),
        (*compiled, *spans),
        end=end - start,
        title=_title(trace, run, shown),
    )


def _blocks(trace: Trace, start: float, end: float, devices: Sequence[int]) -> list[Span]:
    """The longest blocks, in order of time: what holds others, as a loop does, is left out."""
    here = [e for e in trace.events if e.device in devices and trace.ops[e.op].kind != LOOP]
    inside = [e for e in here if e.start_s >= start and e.end_s <= end]
    longest = sorted(inside, key=lambda e: -e.took_s)[:MOST]
    found = []
    for e in sorted(longest, key=lambda e: e.start_s):
        op = trace.ops[e.op]
        lane = _lane(e.device, op.kind == COLLECTIVE, len(devices))
        label = op.moves.partition(" of ")[0] or op.scope or op.name
        found.append(Span(lane, e.start_s - start, e.end_s - start, label, COLORS.get(op.kind, 5)))
    return found


def _lane(device: int, moves: bool, shown: int) -> str:
    if shown > 1:
        return f"device {device}"
    return "moves" if moves else "computes"


def _range(trace: Trace, run: int | None) -> tuple[float, float]:
    if run is not None:
        return trace.span(run)
    ends = [e.end_s for e in trace.events] + [m.start_s + m.took_s for m in trace.compilations]
    return 0.0, max(ends, default=1.0)


def _title(trace: Trace, run: int | None, shown: Sequence[int]) -> str:
    which = "all runs" if run is None else f"run {run % trace.runs + 1} of {trace.runs}"
    where = f", device {shown[0]}" if len(shown) == 1 < trace.devices else ""
    return f"{trace.title}, {which}{where}"
