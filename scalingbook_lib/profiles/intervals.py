"""Splits the time of a run into compute, communication and idle time, from overlapping intervals."""

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scalingbook_lib.units import Result, si

type Interval = tuple[float, float]  # start and end in seconds


class Event(NamedTuple):
    """One run of an operation, in seconds since the start of the trace.

    `self_s` leaves out the events nested in it.
    """

    op: int
    device: int
    run: int
    start_s: float
    duration_s: float
    self_s: float

    @property
    def end_s(self) -> float:
        """The time at which it ended, in seconds since the start of the trace."""
        return self.start_s + self.duration_s


@dataclass(frozen=True, slots=True)
class Breakdown(Result):
    """The time of a device in an average run, in seconds.

    Communication includes waiting for the other devices to arrive. `exposed_s` is communication during which
    nothing computes: without it the run would be that much shorter.
    """

    run_s: float
    compute_s: float
    comms_s: float
    exposed_s: float

    @property
    def hidden_s(self) -> float:
        """The communication in seconds that overlaps with compute."""
        return self.comms_s - self.exposed_s

    @property
    def idle_s(self) -> float:
        """The time in seconds in which a device neither computes nor communicates."""
        return max(self.run_s - self.compute_s - self.exposed_s, 0.0)

    def __str__(self) -> str:
        return (
            f"of {si(self.run_s, 's')} a run, {si(self.compute_s, 's')} compute, {si(self.comms_s, 's')} "
            f"communicate ({si(self.exposed_s, 's')} of it exposed), {si(self.idle_s, 's')} idle"
        )


def breakdown(
    events: Iterable[Event], communicates: Sequence[bool | None], spans: Mapping[int, Interval]
) -> Breakdown:
    """The average breakdown over all devices and runs.

    `communicates` says for each operation whether it communicates; None for one that only contains others,
    such as a loop.
    """
    found: dict[tuple[int, int], tuple[list[Interval], list[Interval]]] = {}
    for e in events:
        if (kind := communicates[e.op]) is not None:
            found.setdefault((e.device, e.run), ([], []))[kind].append((e.start_s, e.end_s))
    n = len(found) or 1
    run_s = sum(spans[run][1] - spans[run][0] for _, run in found)
    compute = sum(covered_s(math) for math, _ in found.values())
    comms = sum(covered_s(links) for _, links in found.values())
    busy = sum(covered_s(math + links) for math, links in found.values())
    return Breakdown(run_s / n, compute / n, comms / n, (busy - compute) / n)


def covered_s(intervals: Iterable[Interval]) -> float:
    """The seconds that intervals cover together; overlaps count once."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(end - max(start, reached), 0.0)
        reached = max(reached, end)
    return total


def clipped(intervals: Iterable[Interval], span: Interval) -> list[Interval]:
    """The parts of intervals within a span."""
    cut = ((max(start, span[0]), min(end, span[1])) for start, end in intervals)
    return [(start, end) for start, end in cut if end > start]


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Overlapping intervals joined, in order."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def pauses(intervals: Iterable[Interval]) -> list[float]:
    """The lengths of the pauses between intervals."""
    joined = merged(intervals)
    return [start - end for (_, end), (start, _) in itertools.pairwise(joined)]


def overlap(joined: Sequence[Interval], span: Interval) -> float:
    """The part of a span that ordered, disjoint intervals cover."""
    first = max(bisect_left(joined, (span[0], span[0])) - 1, 0)
    total = 0.0
    for start, end in joined[first:]:
        if start >= span[1]:
            break
        total += max(min(end, span[1]) - max(start, span[0]), 0.0)
    return total


def self_times(intervals: Sequence[Interval]) -> list[float]:
    """The time of each interval without those nested in it, for nested or disjoint intervals of one line."""
    left = [end - start for start, end in intervals]
    around: list[int] = []
    for i in sorted(range(len(intervals)), key=lambda i: (intervals[i][0], -intervals[i][1])):
        start, end = intervals[i]
        while around and intervals[around[-1]][1] < end:
            around.pop()
        if around:
            left[around[-1]] -= end - start
        around.append(i)
    return [max(seconds, 0.0) for seconds in left]
