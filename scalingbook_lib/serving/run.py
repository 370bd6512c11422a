"""The result of a simulated server run: rates, latency percentiles, goodput, occupancy and timeline spans.

Chapter: Inference.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from scalingbook_lib.serving.frontend import PrefillChunk
from scalingbook_lib.serving.policies import Disaggregated, PagedCache, Policy, Static
from scalingbook_lib.serving.requests import ServingError
from scalingbook_lib.serving.results import (
    QueueSample,
    RequestResult,
    ServedSpan,
    percentile_index,
    token_gaps,
)
from scalingbook_lib.serving.sequence import Residency, StepRun, token_times
from scalingbook_lib.units import Result, count, percent, si


@dataclass(frozen=True, kw_only=True)
class ServingRun(Result):
    """All data recorded from time 0 to the end of the last request."""

    policy: Policy
    blocks: PagedCache | None
    requests: tuple[RequestResult, ...]  # in the order given
    step_runs: tuple[list[StepRun], ...]  # decode steps of each decode server
    chunks: list[PrefillChunk]  # steps that prefill
    queue: list[QueueSample]
    evictions: int  # evicted sequences, which are prefilled again
    evicted_blocks: int  # evicted from the prefix cache

    # Rates.

    @property
    def end_s(self) -> float:
        """The end of the last request, in seconds."""
        return max((s.end_s for s in self.requests), default=0.0)

    @property
    def tokens(self) -> int:
        """The output tokens of all requests."""
        return sum(s.tokens for s in self.requests)

    @property
    def tokens_per_s(self) -> float:
        """The output tokens per second over the whole run."""
        return self.tokens / self.end_s if self.end_s else 0.0

    def tokens_by(self, time_s: float) -> int:
        """The output tokens produced by `time_s`."""
        firsts = sum(residency.first_s <= time_s for residency in self._residencies if residency.tokens)
        return firsts + sum(
            step_run.live * step_run.steps_by(time_s) for row in self.step_runs for step_run in row
        )

    def tokens_per_s_between(self, from_s: float, to_s: float) -> float:
        """The output tokens per second between two times, for example without warm-up and drain.

        Raises a ServingError unless from_s < to_s.
        """
        if not from_s < to_s:
            raise ServingError(f"from {from_s} s to {to_s} s: the first time must be before the second")
        return (self.tokens_by(to_s) - self.tokens_by(from_s)) / (to_s - from_s)

    @property
    def requests_per_s(self) -> float:
        """The finished requests per second over the whole run."""
        return len(self._finished) / self.end_s if self.end_s else 0.0

    @property
    def _finished(self) -> list[RequestResult]:
        return [s for s in self.requests if s.outcome == "finished"]

    def outcomes(self) -> dict[str, int]:
        """The number of finished, cancelled and refused requests."""
        seen = Counter(s.outcome for s in self.requests)
        return {outcome: seen[outcome] for outcome in ("finished", "cancelled", "refused")}

    # Latencies. Sorted lists are cached because a page requests up to a hundred percentiles.

    @cached_property
    def _ttfts(self) -> list[float]:
        return sorted(s.ttft_s for s in self.requests if s.tokens)

    @cached_property
    def _gaps(self) -> tuple[list[float], list[int]]:
        """All inter-token gaps in seconds, sorted, and the cumulative count up to each."""
        found = sorted(token_gaps(self.requests, self.step_runs))
        return [gap for gap, _ in found], list(accumulate(count_of for _, count_of in found))

    def ttft(self, percentile: float = 50) -> float:
        """A percentile of the time to first token (TTFT) in seconds, over requests that got one."""
        return self._ttfts[percentile_index(len(self._ttfts), percentile)]

    def latency(self, percentile: float = 50) -> float:
        """A percentile of the end-to-end latency in seconds, over finished requests."""
        latencies = sorted(s.latency_s for s in self._finished)
        return latencies[percentile_index(len(latencies), percentile)]

    def itl(self, percentile: float = 50) -> float:
        """A percentile of the inter-token latency (ITL) in seconds, over all gaps between tokens."""
        gaps, upto = self._gaps
        return gaps[bisect_right(upto, percentile_index(upto[-1] if upto else 0, percentile))]

    def goodput(self, *, ttft_s: float = math.inf, itl_s: float = math.inf) -> float:
        """The finished requests per second that meet both SLOs: TTFT, and mean ITL of the request."""
        share = self.slo_attainment(ttft_s=ttft_s, itl_s=itl_s)
        return share * len(self.requests) / self.end_s if self.end_s else 0.0

    def slo_attainment(self, *, ttft_s: float = math.inf, itl_s: float = math.inf) -> float:
        """The fraction of all requests that finished within both SLOs; 1 if there are no requests."""
        # both SLOs at once, as in zhong2024distserve
        good = sum(s.ttft_s <= ttft_s and s.itl_s <= itl_s for s in self._finished)
        return good / len(self.requests) if self.requests else 1.0

    def token_times(self, request: int) -> list[float]:
        """The time in seconds at which each token of a request was produced."""
        residencies = self.requests[request].residencies
        return [
            at for residency in residencies for at in token_times(residency, self.step_runs[residency.server])
        ]

    # Utilization.

    @property
    def slots(self) -> int:
        """The largest number of sequences that can decode at once."""
        if isinstance(self.policy, Static):
            return self.policy.batch
        servers = self.policy.decode if isinstance(self.policy, Disaggregated) else 1
        return servers * self.policy.slots

    @property
    def _residencies(self) -> list[Residency]:
        return [residency for served in self.requests for residency in served.residencies]

    @property
    def occupancy(self) -> float:
        """The fraction of slots that hold an unfinished sequence, averaged over time."""
        if isinstance(self.policy, Disaggregated):  # only decode servers have slots
            taken = sum(s.end_s - s.decode_s for s in self._residencies if not math.isnan(s.decode_s))
        else:
            taken = sum(s.end_s - s.start_s for s in self._residencies)  # slot-seconds
        return taken / (self.end_s * self.slots) if self.end_s else 0.0

    @property
    def mean_in_system(self) -> float:
        """The mean number of requests waiting or running over time, the L of Little's law."""
        ends_s = [*(moment.time_s for moment in self.queue[1:]), self.end_s]
        moments = zip(self.queue, ends_s, strict=False)  # the queue is empty if there were no requests
        # request-seconds
        area = sum((end_s - moment.time_s) * (moment.waiting + moment.running) for moment, end_s in moments)
        return area / self.end_s if self.end_s else 0.0

    @property
    def prompt_tokens(self) -> tuple[int, int]:
        """The prefilled tokens that were computed (recomputation included), and the prefix-cache hits."""
        return sum(residency.computed for residency in self._residencies), sum(
            residency.cached for residency in self._residencies
        )

    @property
    def hit_rate(self) -> float:
        """The fraction of prefill tokens that were found in the prefix cache."""
        computed, cached = self.prompt_tokens
        return cached / (computed + cached) if cached else 0.0

    @property
    def spans(self) -> tuple[ServedSpan, ...]:
        """The spans of a timeline, sorted by start."""
        found = (span for i, served in enumerate(self.requests) for span in self._spans(i, served))
        return tuple(sorted(found, key=lambda span: (span.start_s, span.row)))

    def _spans(self, index: int, served: RequestResult) -> Iterator[ServedSpan]:
        """The spans of one request."""
        for residency in served.residencies:
            slot = ("decode", residency.server, residency.slot)
            row = ("prefill", residency.prefiller, 0) if isinstance(self.policy, Disaggregated) else slot
            # until its token, or until it was cancelled
            end_s = residency.first_s if residency.tokens else residency.end_s
            yield ServedSpan(row=row, request=index, kind="prefill", start_s=residency.start_s, end_s=end_s)
            if residency.to_step > residency.from_step:
                yield ServedSpan(
                    row=slot, request=index, kind="decode", start_s=residency.decode_s, end_s=residency.end_s
                )

    def __str__(self) -> str:
        done = ", ".join(f"{count(n)} {kind}" for kind, n in self.outcomes().items() if n)
        summary = f"{self.policy}: {done} in {si(self.end_s, 's')}, {si(self.tokens_per_s, 'tokens')}/s"
        if self._ttfts:
            summary += f"; TTFT p50 {si(self.ttft(50), 's')}, p99 {si(self.ttft(99), 's')}"
        if self._gaps[0]:
            summary += f"; ITL p50 {si(self.itl(50), 's')}, p99 {si(self.itl(99), 's')}"
        return f"{summary}; slot occupancy {percent(self.occupancy)}"
