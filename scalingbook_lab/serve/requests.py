"""Requests to the serving engine, their progress, and the engine's report. Chapter: Inference."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from scalingbook_lib.units import Result, si


class RequestState(StrEnum):
    """The state of a request."""

    WAITING = "waiting"
    PREFILL = "prefilling"
    TRANSFER = "waiting for a decode slot"
    DECODE = "decoding"
    DONE = "done"
    CANCELED = "canceled"


@dataclass(frozen=True, slots=True)
class EngineRequest(Result):
    """A prompt, the maximum number of output tokens, and the step at which the request arrives."""

    prompt: tuple[int, ...]
    limit: int
    arrival: int = 0

    def __str__(self) -> str:
        return (
            f"up to {self.limit} tokens after a prompt of {len(self.prompt)} tokens, from step {self.arrival}"
        )


@dataclass(slots=True, eq=False)
class ServedRequest(Result):
    """A submitted request and its progress.

    `cached` of its tokens are in the cache, in `blocks` of the pool of group `group`.
    """

    ticket: int
    request: EngineRequest
    state: RequestState = RequestState.WAITING
    output: list[int] = field(default_factory=list)
    cached: int = 0
    group: int = 0
    slot: int = -1
    blocks: list[int] = field(default_factory=list)
    registered: int = 0  # the number of its blocks that other sequences can share
    prefix_hits: int = 0  # tokens that were already cached
    preemptions: int = 0
    admitted: int | None = None  # the step in which it first got a slot
    first_token: int | None = None  # the step of its first output token
    ended: int | None = None

    @property
    def tokens(self) -> tuple[int, ...]:
        """The prompt and the output so far."""
        return self.request.prompt + tuple(self.output)

    @property
    def pending(self) -> int:
        """The number of tokens that are not in the cache yet.

        It is at least 1, because the last token has to be computed to predict the next one.
        """
        return len(self.request.prompt) + len(self.output) - self.cached

    @property
    def over(self) -> bool:
        """Whether the request is done or canceled."""
        return self.state in (RequestState.DONE, RequestState.CANCELED)

    @property
    def counts(self) -> dict[str, int]:
        """Return the request's contribution to a report."""
        return {
            "done": self.state is RequestState.DONE,
            "canceled": self.state is RequestState.CANCELED,
            "output": len(self.output) * self.over,
            "prefix_hits": self.prefix_hits,
            "preemptions": self.preemptions,
        }

    def __str__(self) -> str:
        progress = f"{len(self.output)} of {self.request.limit} tokens"
        preempted = f", preempted {self.preemptions} times" if self.preemptions else ""
        progress += f", {self.prefix_hits} prefix tokens cached"
        return f"request {self.ticket}: {self.state}, {progress}{preempted}"


@dataclass(frozen=True, slots=True)
class EngineReport(Result):
    """What an engine has done so far."""

    steps: int
    done: int
    canceled: int
    output: int  # tokens of all finished requests
    computed: int  # tokens appended to the cache
    prefix_hits: int  # tokens of shared prefixes that were already cached
    preemptions: int
    evictions: int
    transfers: int
    transfer_bytes: int
    programs: int
    flops: int  # of matmuls, on all devices, including rows without a sequence

    def __str__(self) -> str:
        parts = [
            f"{self.done:,} requests done in {self.steps:,} steps of {self.programs} programs, "
            f"{self.canceled:,} canceled: {self.output:,} output tokens for {si(self.flops, 'FLOPs')}",
            f"{self.computed:,} tokens computed, {self.prefix_hits:,} found in the cache",
            f"{self.preemptions:,} preemptions, {self.evictions:,} blocks evicted",
        ]
        if self.transfers:
            parts.append(f"{self.transfers:,} caches transferred, {si(self.transfer_bytes, 'B')} in total")
        return "; ".join(parts)


def load(
    count: int,
    *,
    per_step: float,
    prompt: tuple[int, int],
    output: tuple[int, int],
    vocabulary: int,
    seed: int,
) -> Iterator[EngineRequest]:
    """Generate `count` random requests, on average `per_step` per step (a Poisson process).

    `prompt` and `output` are the smallest and largest numbers of tokens; `vocabulary` is the number of token
    ids.
    """
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1 / per_step, count)).astype(int)
    for arrival in arrivals.tolist():
        length, limit = (int(rng.integers(low, high + 1)) for low, high in (prompt, output))
        yield EngineRequest(tuple(rng.integers(vocabulary, size=length).tolist()), limit, arrival)
