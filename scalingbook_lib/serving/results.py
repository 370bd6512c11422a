"""The result of one simulated request, and the gaps between tokens over all requests.

Chapter: Inference.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from scalingbook_lib.serving.requests import Request, ServingError
from scalingbook_lib.serving.sequence import Residency, StepRun
from scalingbook_lib.units import Result, count, si


class ServedSpan(NamedTuple):
    """A request in one row of a timeline; `kind` is "prefill" (until its last chunk) or "decode"."""

    row: tuple[str, int, int]  # "prefill" or "decode", server, slot
    request: int
    kind: str
    start_s: float
    end_s: float


@dataclass(slots=True)
class QueueSample:
    """The state of the queue from `time_s` to the next sample."""

    time_s: float
    waiting: int
    running: int
    used_blocks: float  # 0 if the cache is unlimited


@dataclass(slots=True)
class RequestResult(Result):
    """The result of a request: "finished", "cancelled" or "refused" (it can never fit the cache)."""

    request: Request
    outcome: str
    tokens: int
    first_s: float  # time of its first token; NaN without one
    last_s: float
    end_s: float
    evictions: int  # how often it was evicted and prefilled again
    residencies: tuple[Residency, ...] = field(repr=False)

    @property
    def ttft_s(self) -> float:
        """The time to first token (TTFT) in seconds, measured from arrival; NaN without a token."""
        return self.first_s - self.request.arrival_s

    @property
    def itl_s(self) -> float:
        """The mean inter-token latency (ITL) in seconds; 0 for a single token."""
        # n tokens have n - 1 gaps
        return (self.last_s - self.first_s) / (self.tokens - 1) if self.tokens > 1 else 0.0

    @property
    def latency_s(self) -> float:
        """The end-to-end latency in seconds, from arrival to end."""
        return self.end_s - self.request.arrival_s

    def __str__(self) -> str:
        if not self.tokens:
            return f"{self.outcome} without a token after {si(self.latency_s, 's')}"
        return (
            f"{self.outcome}: TTFT {si(self.ttft_s, 's')}, {count(self.tokens)} tokens, "
            f"mean ITL {si(self.itl_s, 's')}, latency {si(self.latency_s, 's')}"
        )


def percentile_index(count: int, percentile: float) -> int:
    """The index in a sorted list of the smallest value that at least `percentile` % of values do not exceed.

    The list has `count` values. Raises a ServingError for a percentile outside 0 to 100 and for an empty
    list.
    """
    if not 0 <= percentile <= 100:
        raise ServingError(f"percentile {percentile}: write 0 to 100")
    if not count:
        raise ServingError("no request of this run got that far; simulate more requests")
    return max(math.ceil(count * percentile / 100 - 1e-9), 1) - 1  # 1e-9: 99% of 100 is 99, not 100


def token_gaps(
    requests: Sequence[RequestResult], step_runs: Sequence[list[StepRun]]
) -> list[tuple[float, int]]:
    """Every gap between two tokens of one request, as (seconds, number of such gaps).

    A sequence that keeps decoding sees the steps of a step run, and before the first one whatever kept the
    server busy; a new one sees the time since its first token; an evicted one sees the time until it decodes
    again.
    """
    found: list[tuple[float, int]] = []
    residencies = [[residency for residency in served.residencies if residency.tokens] for served in requests]
    for server, row in enumerate(step_runs):
        at = {step_run.first_step: step_run for step_run in row}
        new = [
            residency
            for each in residencies
            for residency in each
            if residency.server == server and residency.tokens > 1
        ]
        found += _gaps_of_continuing(row, Counter(residency.from_step for residency in new))
        found += [(at[residency.from_step].time_after(1) - residency.first_s, 1) for residency in new]
    return found + [(b.first_s - a.last_s, 1) for each in residencies for a, b in pairwise(each)]


def _gaps_of_continuing(step_runs: list[StepRun], fresh: Counter[int]) -> Iterator[tuple[float, int]]:
    """The gaps of sequences that were already decoding; `fresh` counts the new ones by their first step."""
    before_s = 0.0
    for step_run in step_runs:
        plan, live, new = step_run.plan, step_run.live, fresh[step_run.first_step]
        if live > new:
            yield step_run.start_s + plan.first_s - before_s, live - new
        if live:
            for i in range(1, plan.steps):
                yield plan.first_s + i * plan.growth_s, live
        before_s = step_run.end_s
