"""How should a program's profile look on a TPU slice that is not here? The compiler's schedule, given times.

What computes takes the compiler's estimate in cycles at the chip's clock; what moves takes the formulas of
`collectives` over the slice's links, one transfer at a time on each. Nothing is measured: compare programs,
not seconds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from scalingbook_lib import collectives
from scalingbook_lib.collectives import Collective
from scalingbook_lib.lab.compiler import hlo
from scalingbook_lib.lab.compiler.schedule import Step
from scalingbook_lib.lab.profiler.table import COLLECTIVE, EXPECTED, Op, Trace
from scalingbook_lib.lab.profiler.times import Event
from scalingbook_lib.machines import chips
from scalingbook_lib.units import si

FORMULAS = {Collective.named(kind).hlo: formula for kind, formula in collectives.FORMULAS.items()} | {
    hlo.RAGGED: collectives.all_to_all,
    hlo.BROADCAST: collectives.all_gather,
}


def expected(program: Any, title: str = "a program") -> Trace:
    """The profile that a program of `compiler.aot` should have on its slice: one device, one run."""
    if program.chip is None or not program.chip.clock_hz:
        raise ValueError(
            f"{program.target} has no compiler's estimate; compile for a slice as in topology='v5e:2x4'"
        )
    shape = program.target.rpartition(" ")[2]
    laid = chips.Slice.of(program.chip, shape).mesh(**hlo.sizes_of(program.mesh))
    clock = _Clock(program.chip.clock_hz, laid)
    clock.play([*_unrolled(list(program.schedule()))])
    return Trace(
        title=title,
        platform=EXPECTED,
        kind=program.target,
        devices=1,
        simulated=False,
        warmup=None,
        versions="",
        ops=tuple(clock.places),
        events=tuple(clock.events),
    )


def _unrolled(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps as they run: a loop's body as often as it says; once where it does not."""
    i = 0
    while i < len(steps):
        step, i = steps[i], i + 1
        if step.what != "loop":
            yield step
            continue
        body = i
        while i < len(steps) and steps[i].depth > step.depth:
            i += 1
        times = step.label.split()[0]
        for _ in range(int(times) if times.isdigit() else 1):
            yield from _unrolled(steps[body:i])


@dataclass
class _Clock:
    """One device at work: what time it is, when each link is free, and which transfers are on their way."""

    hz: float
    laid: Any
    now_s: float = 0.0
    free_s: dict[str, float] = field(default_factory=dict)
    open: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    places: dict[Op, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def play(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step.what:
                case "compute":
                    self._add(Op(step.label, step.label, "", step.source), self.now_s, step.cycles / self.hz)
                    self.now_s += step.cycles / self.hz
                case "start":
                    self.open.setdefault((step.label, step.nbytes), []).append(self._move(step))
                case "done" if waiting := self.open.get((step.label, step.nbytes)):
                    self.now_s = max(self.now_s, waiting.pop(0))
                case "wait":
                    self.now_s = self._move(step)

    def _move(self, step: Step) -> float:
        """Send when the links are free; when it will have arrived."""
        kind, axes, *shift = step.label.split()
        over = self.laid.axes(axes)
        if kind == Collective.PERMUTE.hlo:
            transfer = collectives.permute(step.nbytes, over[0], int(shift[0]) if shift else 1)
        else:
            transfer = FORMULAS[kind](step.nbytes, *over)
        takes = transfer.total_s
        link = axes + (shift[0][0] if shift else "")
        start = max(self.now_s, self.free_s.get(link, 0.0))
        moves = f"{kind} over {' '.join([axes, *shift])} of {si(step.nbytes, 'B')}"
        self._add(Op(kind, COLLECTIVE, "", step.source, moves=moves), start, takes)
        self.free_s[link] = start + takes
        return start + takes

    def _add(self, op: Op, start_s: float, took_s: float) -> None:
        place = self.places.setdefault(op, len(self.places))
        self.events.append(Event(place, 0, 0, start_s, took_s, took_s))
