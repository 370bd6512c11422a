"""What became of one request, and what do gaps between tokens look like over all of them?

Chapter: Inference.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from scalingbook_lib.serving.requests import Request, ServingError
from scalingbook_lib.serving.sequence import Stay, Stretch
from scalingbook_lib.units import Result, count, si


class Span(NamedTuple):
    """A request in a row of the chart; kind "prefill" (until its last piece), "move" or "decode"."""

    row: tuple[str, int, int]  # "prefill" or "decode", server, slot
    request: int
    kind: str
    start_s: float
    end_s: float


@dataclass(slots=True)
class Moment:
    """The queue from `time_s` to the next moment."""

    time_s: float
    waiting: int
    inside: int
    held: float  # blocks that somebody uses; 0 where there is no end of them


@dataclass(slots=True)
class Served(Result):
    """What became of one request: "finished", "cancelled" or "refused" (it could never fit the cache)."""

    request: Request
    outcome: str
    tokens: int
    first_s: float  # when its first token came; NaN where none did
    last_s: float
    end_s: float
    evictions: int  # how often it lost its slot and came back
    stays: tuple[Stay, ...] = field(repr=False)

    @property
    def ttft_s(self) -> float:
        """Time to first token, from its arrival; NaN where none came."""
        return self.first_s - self.request.arrival_s

    @property
    def itl_s(self) -> float:
        """Its mean inter-token latency; 0 for a single token."""
        # n tokens have n - 1 gaps
        return (self.last_s - self.first_s) / (self.tokens - 1) if self.tokens > 1 else 0.0

    @property
    def latency_s(self) -> float:
        """From its arrival to its end."""
        return self.end_s - self.request.arrival_s

    def __str__(self) -> str:
        if not self.tokens:
            return f"{self.outcome} without a token after {si(self.latency_s, 's')}"
        return (
            f"{self.outcome}: first token after {si(self.ttft_s, 's')}, {count(self.tokens)} tokens, "
            f"one every {si(self.itl_s, 's')}, {si(self.latency_s, 's')} in all"
        )


def rank(count: int, percentile: float) -> int:
    """Where in a sorted list the smallest value is that `percentile` % do not exceed: one that was seen."""
    if not 0 <= percentile <= 100:
        raise ServingError(f"percentile {percentile}: write 0 to 100")
    if not count:
        raise ServingError("no request of this run got that far; ask of a run with more requests")
    return max(math.ceil(count * percentile / 100 - 1e-9), 1) - 1  # 1e-9: 99% of 100 is 99, not 100


def gaps(requests: Sequence[Served], stretches: Sequence[list[Stretch]]) -> list[tuple[float, int]]:
    """Every gap between two tokens of one request: its seconds, and how many were so long.

    Who decodes on sees the steps of a stretch, and before its first one whatever kept the server busy; who
    is new sees the time from its first token; who was evicted sees the time it was away.
    """
    found: list[tuple[float, int]] = []
    stays = [[stay for stay in served.stays if stay.tokens] for served in requests]
    for server, row in enumerate(stretches):
        at = {stretch.before: stretch for stretch in row}
        new = [stay for each in stays for stay in each if stay.server == server and stay.tokens > 1]
        found += _between(row, Counter(stay.from_step for stay in new))
        found += [(at[stay.from_step].after(1) - stay.first_s, 1) for stay in new]
    return found + [(b.first_s - a.last_s, 1) for each in stays for a, b in pairwise(each)]


def _between(stretches: list[Stretch], fresh: Counter[int]) -> Iterator[tuple[float, int]]:
    """What those see that decode on."""
    before_s = 0.0
    for stretch in stretches:
        plan, live, new = stretch.plan, stretch.live, fresh[stretch.before]
        if live > new:
            yield stretch.start_s + plan.first_s - before_s, live - new
        if live:
            for i in range(1, plan.steps):
                yield plan.first_s + i * plan.growth_s, live
        before_s = stretch.end_s
