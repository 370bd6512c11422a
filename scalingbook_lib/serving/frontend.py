"""The parts of a server that do not depend on its policy: queue, admission, prefix cache and recording.

Chapter: Inference.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from scalingbook_lib.serving.costs import Costs
from scalingbook_lib.serving.paging import BlockPool
from scalingbook_lib.serving.policies import HostMemory, PagedCache
from scalingbook_lib.serving.results import QueueSample
from scalingbook_lib.serving.sequence import LiveSequence


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulationSetup:
    """The requests to serve and the arguments of `simulate` other than the policy."""

    arrivals: list[LiveSequence]  # in order of arrival
    backlog: deque[LiveSequence]  # sent when earlier requests are done (closed-loop clients)
    costs: Costs
    prefill_costs: Costs
    blocks: PagedCache | None
    prefix_cache: bool
    max_fused_steps: int
    host: HostMemory | None = None


@dataclass(slots=True)
class PrefillChunk:
    """The prompt tokens of one step, with its start and end in seconds."""

    server: int
    start_s: float
    end_s: float
    tokens: int


class Clock(Protocol):
    """Anything with the current time in seconds: a decode batch, or the event loop."""

    now: float


class Frontend(ABC):
    """The queue in front of one or several servers, the blocks for prefills, and the recorded events."""

    clock: Clock

    def __init__(self, setup: SimulationSetup, blocks: PagedCache | None) -> None:
        self.backlog, self.blocks = setup.backlog, setup.blocks
        self.pool = BlockPool(blocks, prefix_cache=setup.prefix_cache, host=setup.host)
        self.send_turn: Callable[[LiveSequence], None] = self.add_arrival  # a router may replace it
        self.pools = [self.pool]  # plus those of decode servers
        self.waiting: deque[LiveSequence] = deque()
        self.running: dict[int, LiveSequence] = {}  # sequences past the queue, by order of arrival
        self.queue: list[QueueSample] = []
        self.chunks: list[PrefillChunk] = []

    @abstractmethod
    def add_arrival(self, sequence: LiveSequence) -> None:
        """Schedule the arrival of a request, and its cancellation if it has one."""

    @abstractmethod
    def can_admit(self, sequence: LiveSequence, hit: int) -> bool:
        """Whether there are blocks for its prompt, `hit` of which the prefix cache already holds."""

    def record_queue(self, time_s: float | None = None) -> None:
        """Record the length of the queue from `time_s` (by default from now) on."""
        used = 0
        if self.blocks:
            for pool in self.pools:
                used += pool.used_blocks
        at_s = self.clock.now if time_s is None else time_s
        self.queue.append(QueueSample(at_s, len(self.waiting), len(self.running), used))

    def send_next_request(self, done: LiveSequence) -> None:
        """Let the session or the client whose request is done send its next one."""
        if done.next_turn:
            done.next_turn.set_arrival(self.clock.now + done.tool_s)
            self.send_turn(done.next_turn)
        elif self.backlog:
            sequence = self.backlog.popleft()
            sequence.set_arrival(self.clock.now)
            self.add_arrival(sequence)

    def refuse_if_too_long(self, sequence: LiveSequence) -> bool:
        """Refuse a request that can never fit the cache; returns whether it was refused."""
        if self.blocks is None or self.blocks.needed_for(sequence.max_cached_tokens) <= self.blocks.count:
            return False
        sequence.outcome, sequence.end_s = "refused", sequence.request.arrival_s
        self.send_next_request(sequence)
        return True

    def start_next(self) -> LiveSequence | None:
        """Start the prefill of the first waiting request; None if there are no blocks for it."""
        sequence = self.waiting[0]
        hit = self.pool.cached_blocks(sequence)
        if self.blocks and not self.can_admit(sequence, hit):
            return None
        # First come, first served: no request overtakes the first one, even if it would fit.
        self.running[sequence.order] = self.waiting.popleft()
        self.pool.allocate(sequence, hit)
        sequence.start_residency(self.clock.now)
        return sequence

    def emit_first_token(self, sequence: LiveSequence) -> bool:
        """Record the end of a prefill, which emits a token; returns whether that was the last one."""
        sequence.filled = sequence.tokens
        self.pool.publish_prefix(sequence, sequence.filled)
        sequence.residency.first_s = self.clock.now
        sequence.emitted += 1
        return sequence.emitted == sequence.request.output

    def requeue(self, sequence: LiveSequence) -> None:
        """Put an evicted sequence at the head of the queue; its prompt and output will be prefilled again."""
        self.waiting.appendleft(sequence)
        sequence.evictions += 1
        self.record_queue()

    def close(self, sequence: LiveSequence, outcome: str) -> None:
        """Record the final outcome of a sequence and let its client continue."""
        sequence.outcome, sequence.end_s, sequence.stage = outcome, self.clock.now, ""
        self.record_queue()
        self.send_next_request(sequence)
