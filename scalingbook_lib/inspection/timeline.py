"""Plays a program's steps on one device of a machine, and records what each kernel and transfer costs.

A kernel takes the compiler's estimate of its cycles at the chip's clock, or the bound of its roofline where
the compiler gives none. A transfer takes the time of its formula in `collectives` over the machine's links,
one transfer at a time per link. Nothing is measured. A loop is played twice, and its second trip stands for
all later ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scalingbook_lib.collectives import Collective, Transfer, permute
from scalingbook_lib.hlo.compiled_collectives import CompiledCollective
from scalingbook_lib.inspection.hardware import Hardware
from scalingbook_lib.inspection.steps import DONE, START, WAIT, KernelStep, LoopStep, Move, Step
from scalingbook_lib.profiles.expected import FORMULAS


@dataclass(slots=True)
class Use:
    """What one instruction of the program costs over all its runs."""

    times: float = 0.0
    seconds: float = 0.0  # of a kernel, or on the links
    exposed_s: float = 0.0  # of a transfer: the device waits
    latency_s: float = 0.0  # of a transfer: the part of `seconds` that does not depend on its size
    overlapped: float = 0.0  # of a transfer: the number of kernels that ran since its start


COMPUTES, MOVES, SKIPPED = "compute", "communication", "skipped"
MOST_SPANS = 4_000  # recorded; a drawing shows the longest of them


class Played(NamedTuple):
    """One kernel or transfer on the timeline, or the later trips of a loop (`SKIPPED`)."""

    kind: str
    label: str
    start_s: float
    end_s: float


@dataclass(slots=True)
class Timeline:
    """One device: its time, the transfers in flight, and the uses of every instruction by name.

    `spans` are what was played, with the first two trips of every loop.
    """

    hardware: Hardware
    now_s: float = 0.0
    uses: dict[str, Use] = field(default_factory=dict)
    spans: list[Played] = field(default_factory=list)
    _free_s: dict[str, float] = field(default_factory=dict)
    _arrivals: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    _kernels: int = 0

    @classmethod
    def play(cls, steps: Sequence[Step], hardware: Hardware) -> "Timeline":
        """The timeline of one run of a program."""
        timeline = cls(hardware)
        timeline._run(steps, 1.0)
        return timeline

    @property
    def exposed_s(self) -> float:
        """The seconds in which the device waits for transfers."""
        return sum(use.exposed_s for use in self.uses.values())

    def _run(self, steps: Sequence[Step], weight: float) -> None:
        for step in steps:
            match step:
                case KernelStep():
                    self._compute(step, weight)
                case LoopStep():
                    self._loop(step, weight)
                case Move():
                    self._move(step, weight)

    def _loop(self, loop: LoopStep, weight: float) -> None:
        """Play two trips; the second counts for all others, whose time passes at once."""
        trips = 1 if loop.trips is None else loop.trips
        if trips < 1:
            return
        self._run(loop.steps, weight)
        if trips > 1:
            before_s = self.now_s
            self._run(loop.steps, weight * (trips - 1))
            skipped_s = (trips - 2) * (self.now_s - before_s)
            if skipped_s:
                more = f"{trips - 2:,} more iteration{'s' * (trips > 3)}"
                self._record(SKIPPED, more, self.now_s, self.now_s + skipped_s)
            self.now_s += skipped_s
            self._free_s = {link: free + skipped_s for link, free in self._free_s.items()}
            for name, flying in self._arrivals.items():
                self._arrivals[name] = [(arrival + skipped_s, begun) for arrival, begun in flying]

    def _compute(self, kernel: KernelStep, weight: float) -> None:
        seconds = self.hardware.kernel_s(kernel)
        use = self._use(kernel.name)
        use.times += weight
        use.seconds += weight * seconds
        self._record(COMPUTES, kernel.name, self.now_s, self.now_s + seconds)
        self.now_s += seconds
        self._kernels += 1

    def _move(self, move: Move, weight: float) -> None:
        use = self._use(move.name)
        if move.when == DONE:
            if flying := self._arrivals.get(move.name):
                arrival, begun = flying.pop(0)
                use.overlapped += weight * (self._kernels - begun)
                use.exposed_s += weight * max(arrival - self.now_s, 0.0)
                self.now_s = max(self.now_s, arrival)
            return
        use.times += weight
        arrival, seconds, latency = self._send(move.collectives)
        use.seconds += weight * seconds
        use.latency_s += weight * latency
        if move.when == START:
            self._arrivals.setdefault(move.name, []).append((arrival, self._kernels))
        elif move.when == WAIT:
            use.exposed_s += weight * (arrival - self.now_s)
            self.now_s = arrival

    def _send(self, collectives: Sequence[CompiledCollective]) -> tuple[float, float, float]:
        """Send as soon as the links are free: the time of arrival, the seconds, and their latency."""
        arrival, seconds, latency = self.now_s, 0.0, 0.0
        for c in collectives:
            transfer = transfer_of(c, self.hardware)
            if transfer is None:
                continue
            link = c.axes + ("" if c.shift is None else f"{c.shift:+d}"[0])
            start = max(self.now_s, self._free_s.get(link, 0.0))
            self._free_s[link] = start + transfer.total_s
            self._record(MOVES, f"{c.kind} {c.axes}", start, self._free_s[link])
            arrival = max(arrival, self._free_s[link])
            seconds += transfer.total_s
            latency += transfer.latency_s
        return arrival, seconds, latency

    def _record(self, kind: str, label: str, start_s: float, end_s: float) -> None:
        if len(self.spans) < MOST_SPANS and end_s > start_s:
            self.spans.append(Played(kind, label, start_s, end_s))

    def _use(self, name: str) -> Use:
        return self.uses.setdefault(name, Use())


def transfer_of(c: CompiledCollective, hardware: Hardware) -> Transfer | None:
    """The time of one run of a collective; None if the machine is unknown or its axes do not fit."""
    networks = hardware.networks(c.axis_names)
    if not networks:
        return None
    if c.kind == Collective.PERMUTE.hlo:
        return permute(c.nbytes, networks[0], c.shift or 1)
    return FORMULAS[c.kind](c.nbytes, *networks)
