"""What does a decode server of its own do? It steps ahead, and stops at a boundary when somebody comes.

Chapter: Inference.
"""

import math
from heapq import heappop, heappush

from scalingbook_lib.serving.batch import NONE, Batch, after
from scalingbook_lib.serving.costs import CLOSE
from scalingbook_lib.serving.frontend import Setup
from scalingbook_lib.serving.paging import BlockPool
from scalingbook_lib.serving.sequence import LiveSequence, Steps


class Decoder:
    """A batch whose next steps are planned, and can be cut short."""

    def __init__(self, index: int, setup: Setup, slots: int) -> None:
        self.index, self.pool = index, BlockPool(setup.blocks, prefix_cache=False)
        self.batch = Batch(setup.costs, self.pool, setup.at_once)
        self.slots = list(range(slots))  # the free ones
        self.inside: dict[int, LiveSequence] = {}  # who has a slot, by order of arrival
        self.joining: list[LiveSequence] = []  # who is there and waits for the boundary
        self.doomed: list[LiveSequence] = []  # who goes at the boundary
        self.plan = NONE
        self.version = 0  # of the plan

    @property
    def boundary_s(self) -> float:
        """When the planned steps are over."""
        return self.plan.end_s(self.batch.now, self.plan.steps)

    def begun(self, now: float) -> int:
        """How many of the planned steps have begun by now."""
        plan, gone_s = self.plan, now - self.batch.now
        return min(after(gone_s, plan), plan.steps) if plan.steps and gone_s > CLOSE * plan.first_s else 0

    def cut(self, now: float) -> None:
        """Only as many of the planned steps as have begun by now."""
        self.plan = Steps(self.begun(now), self.plan.first_s, self.plan.growth_s)
        self.version += 1
        if not self.batch.rows:
            self.batch.now = max(now, self.batch.now)

    def has_room(self, sequence: LiveSequence, now: float) -> bool:
        """A slot, and blocks that nobody needs before the next boundary or in the step after."""
        if not self.slots or self.pool.free == math.inf:
            return bool(self.slots)
        tokens = min(sequence.tokens, sequence.most_tokens)
        return self.pool.admits(sequence, 0, tokens, self._beside(now) if self.inside else 0)

    def _beside(self, now: float) -> float:
        """Blocks that others take up to the boundary, and what has to be left for them then."""
        begun = self.begun(now)
        soon = self.batch.needs(begun)
        return soon + max(self.batch.needs(begun + 1) - soon, self.pool.spare)

    def seat(self, sequence: LiveSequence) -> None:
        """A slot and blocks, before the cache is moved there."""
        sequence.held = -(-(sequence.tokens - 1) // self.pool.size)
        self.pool.take(sequence.held)
        sequence.stay.server, sequence.stay.slot = self.index, heappop(self.slots)
        self.inside[sequence.order] = sequence

    def step(self) -> list[LiveSequence]:
        """The planned steps are done; who has all tokens."""
        if self.plan.steps:
            self.batch.advance(self.plan)
        self.plan = NONE
        return self.batch.ended()

    def go_on(self) -> bool:
        """Who waits joins, and the next steps are planned; False where blocks run out first."""
        for sequence in self.joining:
            sequence.own, sequence.held = sequence.held, 0
            sequence.stay.decode_s = self.batch.now
            self.batch.join(sequence)
        self.joining = []
        self.version += 1
        if self.batch.rows:
            self.plan = self.batch.plan(math.inf)
        return self.plan.steps > 0 or not self.batch.rows

    def leave(self, sequence: LiveSequence, now: float) -> None:
        """Out of the slot; the stay is noted."""
        sequence.stayed(self.batch.step, self.batch.last_s, now)
        if sequence.decoding:
            self.batch.leave(sequence)
            self.batch.live -= 1
            self.pool.release(sequence)
        elif sequence in self.joining:
            self.joining.remove(sequence)
        self.pool.free += sequence.held  # until it has joined; its own are those of the prefill servers
        sequence.held = 0
        heappush(self.slots, sequence.stay.slot)
        del self.inside[sequence.order]
