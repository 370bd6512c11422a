"""Which part of a run is computing, which is communicating, and which of that does nothing hide?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scalingbook_lib.units import Result, si

type Stretch = tuple[float, float]  # start and end in seconds


class Event(NamedTuple):
    """One run of an operation: seconds since the trace began. `own_s` leaves out what ran within it."""

    op: int
    device: int
    run: int
    start_s: float
    took_s: float
    own_s: float

    @property
    def end_s(self) -> float:
        """When it was done."""
        return self.start_s + self.took_s


@dataclass(frozen=True, slots=True)
class Lanes(Result):
    """Seconds of a run on a device, in the mean: busy with arithmetic, with collectives, with neither.

    Communicating includes waiting for the other devices to arrive. `exposed_s` is communication while
    nothing computes: the run would be that much shorter without it.
    """

    run_s: float
    compute_s: float
    comms_s: float
    exposed_s: float

    @property
    def hidden_s(self) -> float:
        """Communication behind arithmetic."""
        return self.comms_s - self.exposed_s

    @property
    def idle_s(self) -> float:
        """Neither computing nor communicating."""
        return max(self.run_s - self.compute_s - self.exposed_s, 0.0)

    def __str__(self) -> str:
        return (
            f"of {si(self.run_s, 's')} a run, {si(self.compute_s, 's')} compute, {si(self.comms_s, 's')} "
            f"communicate ({si(self.exposed_s, 's')} of it exposed), {si(self.idle_s, 's')} idle"
        )


def lanes(events: Iterable[Event], moves: Sequence[bool | None], spans: Mapping[int, Stretch]) -> Lanes:
    """The lanes of every device and run, in the mean.

    `moves` says of each operation if it communicates; None: it only holds others, as a loop does.
    """
    found: dict[tuple[int, int], tuple[list[Stretch], list[Stretch]]] = {}
    for e in events:
        if (communicates := moves[e.op]) is not None:
            found.setdefault((e.device, e.run), ([], []))[communicates].append((e.start_s, e.end_s))
    n = len(found) or 1
    run_s = sum(spans[run][1] - spans[run][0] for _, run in found)
    compute = sum(length(math) for math, _ in found.values())
    comms = sum(length(links) for _, links in found.values())
    busy = sum(length(math + links) for math, links in found.values())
    return Lanes(run_s / n, compute / n, comms / n, (busy - compute) / n)


def length(stretches: Iterable[Stretch]) -> float:
    """The seconds that stretches cover together, where they overlap counted once."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(stretches):
        total += max(end - max(start, reached), 0.0)
        reached = max(reached, end)
    return total


def own(stretches: Sequence[Stretch]) -> list[float]:
    """The time of each stretch without what lies within it, for stretches of one lane, nested or apart."""
    left = [end - start for start, end in stretches]
    around: list[int] = []
    for i in sorted(range(len(stretches)), key=lambda i: (stretches[i][0], -stretches[i][1])):
        start, end = stretches[i]
        while around and stretches[around[-1]][1] < end:
            around.pop()
        if around:
            left[around[-1]] -= end - start
        around.append(i)
    return [max(seconds, 0.0) for seconds in left]
