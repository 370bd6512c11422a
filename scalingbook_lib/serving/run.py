"""What did everybody get, and how busy was the server? Latencies by percentile, goodput, who was where when.

Chapter: Inference.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from scalingbook_lib.serving.frontend import Chunk
from scalingbook_lib.serving.policies import Blocks, Disaggregated, Policy, Static
from scalingbook_lib.serving.requests import ServingError
from scalingbook_lib.serving.sequence import Stay, Stretch, times
from scalingbook_lib.serving.served import Moment, Served, Span, gaps, rank
from scalingbook_lib.units import Result, count, percent, si


@dataclass(frozen=True, kw_only=True)
class ServingRun(Result):
    """Everything that happened, from time 0 to the end of the last request."""

    policy: Policy
    blocks: Blocks | None
    requests: tuple[Served, ...]  # in the order they were given
    stretches: tuple[list[Stretch], ...]  # decode steps, by decode server
    chunks: list[Chunk]  # steps with prompt tokens
    queue: list[Moment]
    evictions: int  # of sequences, which came back
    evicted_blocks: int  # of idle prefixes, from the prefix cache

    # Rates.

    @property
    def end_s(self) -> float:
        """When the last request was done."""
        return max((s.end_s for s in self.requests), default=0.0)

    @property
    def tokens(self) -> int:
        """Output tokens."""
        return sum(s.tokens for s in self.requests)

    @property
    def tokens_per_s(self) -> float:
        """Output tokens over the time of the run."""
        return self.tokens / self.end_s if self.end_s else 0.0

    def tokens_by(self, time_s: float) -> int:
        """Output tokens that had come by then."""
        firsts = sum(stay.first_s <= time_s for stay in self._stays if stay.tokens)
        return firsts + sum(stretch.live * stretch.by(time_s) for row in self.stretches for stretch in row)

    def rate(self, from_s: float, to_s: float) -> float:
        """Output tokens per second between two times: of the middle of a run, without its ends."""
        if not from_s < to_s:
            raise ServingError(f"from {from_s} s to {to_s} s: write a time before and one after")
        return (self.tokens_by(to_s) - self.tokens_by(from_s)) / (to_s - from_s)

    @property
    def requests_per_s(self) -> float:
        """Finished requests over the time of the run."""
        return len(self._finished) / self.end_s if self.end_s else 0.0

    @property
    def _finished(self) -> list[Served]:
        return [s for s in self.requests if s.outcome == "finished"]

    def outcomes(self) -> dict[str, int]:
        """How many were finished, cancelled, refused."""
        seen = Counter(s.outcome for s in self.requests)
        return {outcome: seen[outcome] for outcome in ("finished", "cancelled", "refused")}

    # Latencies. What is sorted is kept: a page asks for ten percentiles of one and a hundred of the other.

    @cached_property
    def _ttfts(self) -> list[float]:
        return sorted(s.ttft_s for s in self.requests if s.tokens)

    @cached_property
    def _gaps(self) -> tuple[list[float], list[int]]:
        """All gaps in order, and how many there are up to each."""
        found = sorted(gaps(self.requests, self.stretches))
        return [gap for gap, _ in found], list(accumulate(often for _, often in found))

    def ttft(self, percentile: float = 50) -> float:
        """Time to first token, in seconds, of those who got one."""
        return self._ttfts[rank(len(self._ttfts), percentile)]

    def latency(self, percentile: float = 50) -> float:
        """From arrival to the last token, in seconds, of the finished."""
        latencies = sorted(s.latency_s for s in self._finished)
        return latencies[rank(len(latencies), percentile)]

    def itl(self, percentile: float = 50) -> float:
        """Inter-token latency, in seconds: of all gaps between two tokens of one request."""
        gaps, upto = self._gaps
        return gaps[bisect_right(upto, rank(upto[-1] if upto else 0, percentile))]

    def goodput(self, *, ttft_s: float = math.inf, itl_s: float = math.inf) -> float:
        """Finished requests per second whose first token came in time and whose mean gap is short enough."""
        share = self.attained(ttft_s=ttft_s, itl_s=itl_s)
        return share * len(self.requests) / self.end_s if self.end_s else 0.0

    def attained(self, *, ttft_s: float = math.inf, itl_s: float = math.inf) -> float:
        """The share of all requests that finished within both targets."""
        # zhong2024distserve: goodput counts who got both
        good = sum(s.ttft_s <= ttft_s and s.itl_s <= itl_s for s in self._finished)
        return good / len(self.requests) if self.requests else 1.0

    def token_times(self, request: int) -> list[float]:
        """When each token of that request came."""
        stays = self.requests[request].stays
        return [at for stay in stays for at in times(stay, self.stretches[stay.server])]

    # How busy it was.

    @property
    def slots(self) -> int:
        """The most sequences that can be decoded at once."""
        if isinstance(self.policy, Static):
            return self.policy.batch
        servers = self.policy.decode if isinstance(self.policy, Disaggregated) else 1
        return servers * self.policy.slots

    @property
    def _stays(self) -> list[Stay]:
        return [stay for served in self.requests for stay in served.stays]

    @property
    def occupancy(self) -> float:
        """The share of the slots with somebody in it who still gets tokens there, in the mean over time."""
        if isinstance(self.policy, Disaggregated):  # the slots are those of the decode servers
            taken = sum(s.end_s - s.decode_s for s in self._stays if not math.isnan(s.decode_s))
        else:
            taken = sum(s.end_s - s.start_s for s in self._stays)  # slot-seconds
        return taken / (self.end_s * self.slots) if self.end_s else 0.0

    @property
    def mean_present(self) -> float:
        """Requests that wait or have a slot, in the mean over time."""
        ends_s = [*(moment.time_s for moment in self.queue[1:]), self.end_s]
        moments = zip(self.queue, ends_s, strict=False)  # nobody at all makes no moment
        # request-seconds; Little's law has them too
        area = sum((end_s - moment.time_s) * (moment.waiting + moment.inside) for moment, end_s in moments)
        return area / self.end_s if self.end_s else 0.0

    @property
    def prompt_tokens(self) -> tuple[int, int]:
        """Prompt tokens (and answers prefilled anew) that were computed, and that the prefix cache had."""
        return sum(stay.computed for stay in self._stays), sum(stay.cached for stay in self._stays)

    @property
    def hit_rate(self) -> float:
        """The share of the tokens of prompts that the prefix cache had."""
        computed, cached = self.prompt_tokens
        return cached / (computed + cached) if cached else 0.0

    @property
    def spans(self) -> tuple[Span, ...]:
        """Who was where when, for a chart: by time."""
        found = (span for i, served in enumerate(self.requests) for span in self._spans(i, served))
        return tuple(sorted(found, key=lambda span: (span.start_s, span.row)))

    def _spans(self, index: int, served: Served) -> Iterator[Span]:
        """One request's."""
        for stay in served.stays:
            slot = ("decode", stay.server, stay.slot)
            row = ("prefill", stay.prefiller, 0) if isinstance(self.policy, Disaggregated) else slot
            end_s = stay.first_s if stay.tokens else stay.end_s  # it gave a token, or was cut off
            yield Span(row=row, request=index, kind="prefill", start_s=stay.start_s, end_s=end_s)
            if stay.to_step > stay.from_step:
                yield Span(row=slot, request=index, kind="decode", start_s=stay.decode_s, end_s=stay.end_s)

    def __str__(self) -> str:
        done = ", ".join(f"{count(n)} {kind}" for kind, n in self.outcomes().items() if n)
        told = f"{self.policy}: {done} in {si(self.end_s, 's')}, {si(self.tokens_per_s, 'tokens')}/s"
        if self._ttfts:
            told += f"; first token after {si(self.ttft(50), 's')} (99th percentile {si(self.ttft(99), 's')})"
        if self._gaps[0]:
            told += f", the next ones every {si(self.itl(50), 's')} ({si(self.itl(99), 's')})"
        return f"{told}; {percent(self.occupancy)} of the slots taken"
