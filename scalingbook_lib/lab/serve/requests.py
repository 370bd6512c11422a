"""What does somebody ask of the engine, and what becomes of it?

An `EngineRequest` is a prompt and how many words may be written; a `Served` one is on its way: where its
tokens are in the cache, what is written so far. Chapter: Inference.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from scalingbook_lib.units import Result, si


class RequestState(StrEnum):
    """Where a request is."""

    WAITING = "waiting"
    READING = "reading its prompt"
    MOVING = "waiting for a place where words are written"
    WRITING = "writing"
    DONE = "done"
    CANCELED = "canceled"


@dataclass(frozen=True, slots=True)
class EngineRequest(Result):
    """A prompt, how many words to write after it, and at which step it comes."""

    prompt: tuple[int, ...]
    limit: int
    arrival: int = 0

    def __str__(self) -> str:
        return f"{self.limit} words after a prompt of {len(self.prompt)} tokens, from step {self.arrival}"


@dataclass(slots=True, eq=False)
class Served(Result):
    """A request on its way. `cached` of its tokens are in the cache, in `blocks` of `group`'s pool."""

    ticket: int
    request: EngineRequest
    state: RequestState = RequestState.WAITING
    words: list[int] = field(default_factory=list)
    cached: int = 0
    group: int = 0
    slot: int = -1
    blocks: list[int] = field(default_factory=list)
    known: int = 0  # of its blocks, those that its pool knows
    reused: int = 0  # tokens that it found in the cache
    preemptions: int = 0
    admitted: int | None = None  # the step of its first place
    first: int | None = None  # the step of its first word
    ended: int | None = None

    @property
    def tokens(self) -> tuple[int, ...]:
        """Its prompt and what is written so far."""
        return self.request.prompt + tuple(self.words)

    @property
    def pending(self) -> int:
        """Tokens that are not in the cache yet; at least the last one, whose successor is to be found."""
        return len(self.request.prompt) + len(self.words) - self.cached

    @property
    def over(self) -> bool:
        """Is it done or canceled?"""
        return self.state in (RequestState.DONE, RequestState.CANCELED)

    @property
    def counts(self) -> dict[str, int]:
        """What it adds to a report."""
        return {
            "done": self.state is RequestState.DONE,
            "canceled": self.state is RequestState.CANCELED,
            "words": len(self.words) * self.over,
            "found": self.reused,
            "preemptions": self.preemptions,
        }

    def __str__(self) -> str:
        written = f"{len(self.words)} of {self.request.limit} words"
        again = f", preempted {self.preemptions} times" if self.preemptions else ""
        return f"request {self.ticket}: {self.state}, {written}, {self.reused} tokens found{again}"


@dataclass(frozen=True, slots=True)
class EngineReport(Result):
    """What an engine did so far."""

    steps: int
    done: int
    canceled: int
    words: int  # of all that are over
    read: int  # tokens put into the cache
    found: int  # tokens that were there already: of a shared prefix
    preemptions: int
    evictions: int
    moved: int
    moved_bytes: int
    programs: int
    flops: int  # of matmuls, on all devices, rows without a sequence included

    def __str__(self) -> str:
        told = [
            f"{self.done:,} requests done in {self.steps:,} steps of {self.programs} programs, "
            f"{self.canceled:,} canceled: {self.words:,} words for {si(self.flops, 'FLOPs')}",
            f"{self.read:,} tokens read, {self.found:,} found in the cache",
            f"{self.preemptions:,} preemptions, {self.evictions:,} blocks forgotten",
        ]
        if self.moved:
            told.append(f"{self.moved:,} caches moved, {si(self.moved_bytes, 'B')} in all")
        return "; ".join(told)


def load(
    count: int,
    *,
    per_step: float,
    prompt: tuple[int, int],
    words: tuple[int, int],
    vocabulary: int,
    seed: int,
) -> Iterator[EngineRequest]:
    """So many requests, on average `per_step` of them a step (a Poisson process), lengths within bounds."""
    drawn = np.random.default_rng(seed)
    arrivals = np.cumsum(drawn.exponential(1 / per_step, count)).astype(int)
    for arrival in arrivals.tolist():
        length, limit = (int(drawn.integers(low, high + 1)) for low, high in (prompt, words))
        yield EngineRequest(tuple(drawn.integers(vocabulary, size=length).tolist()), limit, arrival)
