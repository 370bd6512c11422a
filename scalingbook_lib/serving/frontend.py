"""What does every server know of its clients, whatever its policy? Who waits, who comes when another is done.

Chapter: Inference.
"""

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from scalingbook_lib.serving.costs import Costs
from scalingbook_lib.serving.policies import Blocks
from scalingbook_lib.serving.sequence import Sequence
from scalingbook_lib.serving.served import Moment


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """What servers are given: requests, and what `simulate` was asked beside its policy."""

    todo: list[Sequence]  # in order of arrival
    later: deque[Sequence]  # sent when others are done
    costs: Costs
    prefill_costs: Costs
    blocks: Blocks | None
    prefix_cache: bool
    at_once: int  # the most steps told at once


class Chunk(NamedTuple):
    """A step with tokens of prompts."""

    server: int
    start_s: float
    end_s: float
    tokens: int


class Frontend(ABC):
    """The queue of one server or of several, and what was noted on the way."""

    def __init__(self, setup: Setup) -> None:
        self.later, self.blocks = setup.later, setup.blocks
        self.waiting: deque[Sequence] = deque()
        self.queue: list[Moment] = []
        self.chunks: list[Chunk] = []

    @property
    @abstractmethod
    def now(self) -> float:
        """The time of what happens now."""

    @abstractmethod
    def note(self) -> None:
        """The queue from now on."""

    @abstractmethod
    def expect(self, sequence: Sequence) -> None:
        """It will come, and perhaps go."""

    def send(self) -> Sequence | None:
        """A client that has its answer sends its next request."""
        if not self.later:
            return None
        sequence = self.later.popleft()
        sequence.sent(self.now)
        self.expect(sequence)
        return sequence

    def refuses(self, sequence: Sequence) -> bool:
        """Whether it could never fit; its client goes on to the next."""
        if self.blocks is None or self.blocks.of(sequence.most_tokens) <= self.blocks.count:
            return False
        sequence.outcome, sequence.end_s = "refused", sequence.request.arrival_s
        self.send()
        return True

    def close(self, sequence: Sequence, outcome: str) -> None:
        """Nothing more happens to it."""
        sequence.outcome, sequence.end_s, sequence.stage = outcome, self.now, ""
        self.note()
        self.send()
