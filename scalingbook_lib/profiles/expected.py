"""Derives the profile that a compiled program should show on a TPU slice, without the slice.

The order is the compiler's schedule. Compute takes the compiler's estimated cycles at the chip's clock; a
transfer takes the time of its formula in `collectives` over the slice's links, one transfer at a time per
link. Nothing is measured: compare programs, not seconds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from scalingbook_lib import collectives, hlo
from scalingbook_lib.hlo.module import BROADCAST, RAGGED
from scalingbook_lib.hlo.schedule import ScheduledStep
from scalingbook_lib.machines import chips
from scalingbook_lib.profiles.intervals import Event
from scalingbook_lib.profiles.trace import COLLECTIVE, EXPECTED, Op, Trace
from scalingbook_lib.units import si

FORMULAS = {
    collectives.Collective.named(kind).hlo: formula for kind, formula in collectives.FORMULAS.items()
} | {
    RAGGED: collectives.all_to_all,
    BROADCAST: collectives.all_gather,
}


def expected(program: Any, title: str = "a program") -> Trace:
    """The profile that a program of `compiler.aot` should have on its slice: one device, one run.

    Raises a ValueError if the program is not compiled for a chip with a clock rate.
    """
    if program.chip is None or not program.chip.clock_hz:
        raise ValueError(
            f"{program.target} has no estimate by its compiler; compile for a slice as in topology='v5e:2x4'"
        )
    shape = program.target.rpartition(" ")[2]
    links = chips.Slice.of(program.chip, shape).mesh(**hlo.sizes_of(program.mesh))
    timeline = _DeviceClock(program.chip.clock_hz, links)
    timeline.play([*_unrolled(list(program.schedule()))])
    return Trace(
        title=title,
        platform=EXPECTED,
        kind=program.target,
        devices=1,
        simulated=False,
        warmup=None,
        versions="",
        ops=tuple(timeline.indices),
        events=tuple(timeline.events),
    )


def _unrolled(steps: Sequence[ScheduledStep]) -> Iterator[ScheduledStep]:
    """The steps in execution order: a loop's body once per trip, or once if the trip count is unknown."""
    i = 0
    while i < len(steps):
        step, i = steps[i], i + 1
        if step.kind != "loop":
            yield step
            continue
        body = i
        while i < len(steps) and steps[i].depth > step.depth:
            i += 1
        times = step.label.split()[0]
        for _ in range(int(times) if times.isdigit() else 1):
            yield from _unrolled(steps[body:i])


@dataclass
class _DeviceClock:
    """One device: the current time, when each link is free, and the transfers in flight, in seconds."""

    hz: float
    links: Any
    now_s: float = 0.0
    free_s: dict[str, float] = field(default_factory=dict)
    under_way: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    indices: dict[Op, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def play(self, steps: Sequence[ScheduledStep]) -> None:
        """Run the steps one after the other."""
        for step in steps:
            match step.kind:
                case "compute":
                    self._add(Op(step.label, step.label, "", step.source), self.now_s, step.cycles / self.hz)
                    self.now_s += step.cycles / self.hz
                case "start":
                    self.under_way.setdefault((step.label, step.nbytes), []).append(self._send(step))
                case "done" if arrivals := self.under_way.get((step.label, step.nbytes)):
                    self.now_s = max(self.now_s, arrivals.pop(0))
                case "wait":
                    self.now_s = self._send(step)

    def _send(self, step: ScheduledStep) -> float:
        """Send as soon as the links are free; returns the time at which the data will have arrived."""
        kind, axes, *shift = step.label.split()
        over = self.links.axes(axes)
        if kind == collectives.Collective.PERMUTE.hlo:
            transfer = collectives.permute(step.nbytes, over[0], int(shift[0]) if shift else 1)
        else:
            transfer = FORMULAS[kind](step.nbytes, *over)
        duration_s = transfer.total_s
        link = axes + (shift[0][0] if shift else "")
        start = max(self.now_s, self.free_s.get(link, 0.0))
        moves = f"{kind} over {' '.join([axes, *shift])} of {si(step.nbytes, 'B')}"
        self._add(Op(kind, COLLECTIVE, "", step.source, moves=moves), start, duration_s)
        self.free_s[link] = start + duration_s
        return start + duration_s

    def _add(self, op: Op, start_s: float, duration_s: float) -> None:
        """Record an event."""
        self.events.append(
            Event(self.indices.setdefault(op, len(self.indices)), 0, 0, start_s, duration_s, duration_s)
        )
