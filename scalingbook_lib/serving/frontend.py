"""What does every server know of its clients, whatever its policy? Who waits, who comes when another is done.

Chapter: Inference.
"""

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from scalingbook_lib.serving.costs import Costs
from scalingbook_lib.serving.paging import BlockPool
from scalingbook_lib.serving.policies import Blocks
from scalingbook_lib.serving.sequence import LiveSequence
from scalingbook_lib.serving.served import Moment


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """What servers are given: requests, and what `simulate` was asked beside its policy."""

    todo: list[LiveSequence]  # in order of arrival
    later: deque[LiveSequence]  # sent when others are done
    costs: Costs
    prefill_costs: Costs
    blocks: Blocks | None
    prefix_cache: bool
    at_once: int  # the most steps told at once


@dataclass(slots=True)
class Chunk:
    """A step with tokens of prompts."""

    server: int
    start_s: float
    end_s: float
    tokens: int


class Clock(Protocol):
    """Whatever knows the time of what happens now: a batch, or the events themselves."""

    now: float


class Frontend(ABC):
    """The queue of one server or of several, who prefills in which blocks, and what was noted on the way."""

    clock: Clock

    def __init__(self, setup: Setup, blocks: Blocks | None) -> None:
        self.later, self.blocks = setup.later, setup.blocks
        self.pool = BlockPool(blocks, prefix_cache=setup.prefix_cache)
        self.pools = [self.pool]  # and those of servers that only decode
        self.waiting: deque[LiveSequence] = deque()
        self.inside: dict[int, LiveSequence] = {}  # who is past the queue, by order of arrival
        self.queue: list[Moment] = []
        self.chunks: list[Chunk] = []

    @abstractmethod
    def expect(self, sequence: LiveSequence) -> None:
        """It will come, and perhaps go."""

    @abstractmethod
    def has_room(self, sequence: LiveSequence, hit: int) -> bool:
        """Whether there are blocks for its prompt, `hit` of which the prefix cache has."""

    def note(self, time_s: float | None = None) -> None:
        """The queue from now on, or from that time on."""
        held = 0
        if self.blocks:
            for pool in self.pools:
                held += pool.held
        at_s = self.clock.now if time_s is None else time_s
        self.queue.append(Moment(at_s, len(self.waiting), len(self.inside), held))

    def send(self) -> None:
        """A client that has its answer sends its next request."""
        if self.later:
            sequence = self.later.popleft()
            sequence.sent(self.clock.now)
            self.expect(sequence)

    def refuses(self, sequence: LiveSequence) -> bool:
        """Whether it could never fit; its client goes on to the next."""
        if self.blocks is None or self.blocks.of(sequence.most_tokens) <= self.blocks.count:
            return False
        sequence.outcome, sequence.end_s = "refused", sequence.request.arrival_s
        self.send()
        return True

    def begin(self) -> LiveSequence | None:
        """The first who waits is prefilled, in blocks for its prompt; None where there is no room."""
        sequence = self.waiting[0]
        hit = self.pool.hit(sequence)
        if self.blocks and not self.has_room(sequence, hit):
            return None
        # First come, first served: nobody overtakes the first, even where others would fit.
        self.inside[sequence.order] = self.waiting.popleft()
        self.pool.seat(sequence, hit)
        sequence.begin(self.clock.now)
        return sequence

    def answer(self, sequence: LiveSequence) -> bool:
        """Its prompt is in the cache, and a token is out; whether it is the last."""
        sequence.filled = sequence.tokens
        self.pool.share(sequence, sequence.filled)
        sequence.stay.first_s = self.clock.now
        sequence.emitted += 1
        return sequence.emitted == sequence.request.output

    def wait_again(self, sequence: LiveSequence) -> None:
        """Evicted, it waits before all others; its prompt and answer will be prefilled anew."""
        self.waiting.appendleft(sequence)
        sequence.evictions += 1
        self.note()

    def close(self, sequence: LiveSequence, outcome: str) -> None:
        """Nothing more happens to it."""
        sequence.outcome, sequence.end_s, sequence.stage = outcome, self.clock.now, ""
        self.note()
        self.send()
