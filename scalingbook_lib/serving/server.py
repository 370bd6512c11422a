"""What does one server do, boundary by boundary? Who is let in, prefilled, decoded, evicted, done.

The loops of the policies (in `simulate`) decide; what they can do is here. Chapter: Inference.
"""

import math
from bisect import insort
from heapq import heappop, heappush

from scalingbook_lib.serving.batch import Batch
from scalingbook_lib.serving.costs import SAME
from scalingbook_lib.serving.frontend import Chunk, Frontend, Setup
from scalingbook_lib.serving.sequence import LiveSequence, mean_context


class Server(Frontend):
    """The queue, the slots and the batch of one server; its clock is that of the batch."""

    def __init__(self, setup: Setup, *, slots: int, padded: bool = False) -> None:
        super().__init__(setup, setup.blocks)
        self.todo, self.next = setup.todo, 0
        self.next_s = self._next_s()
        self.costs = setup.costs
        self.clock = self.batch = Batch(setup.costs, self.pool, setup.at_once)
        self.batches = [self.batch]
        self.slots = list(range(slots))  # the free ones
        self.padded = padded  # a row that is done stays until its batch is done
        self.rows: list[LiveSequence] = []  # such rows
        self.impatient: list[tuple[float, int, LiveSequence]] = []  # who will go, and when
        for sequence in self.todo:
            self.bear(sequence)

    # Who comes and goes.

    def arrivals(self) -> None:
        """Whoever has come by now waits."""
        now = self.batch.now * SAME
        while self.next_s <= now:
            sequence = self.todo[self.next]
            sequence.order = self.next
            self.next += 1
            self.arrive(sequence)
            self.next_s = self._next_s()

    def _next_s(self) -> float:
        """When the next comes."""
        return self.todo[self.next].request.arrival_s if self.next < len(self.todo) else math.inf

    def goes_on(self) -> bool:
        """Who has come by now waits, who has had enough goes; whether anybody is there or still to come."""
        now = self.batch.now * SAME
        if self.next_s <= now:
            self.arrivals()
        while self.impatient and self.impatient[0][0] <= now:
            sequence = heappop(self.impatient)[2]
            if not sequence.outcome:
                self.cancel(sequence)
                self.arrivals()  # of the next that its client sends
        return bool(self.inside or self.waiting or self.next_s < math.inf)

    def arrive(self, sequence: LiveSequence) -> None:
        """One more waits, unless it could never fit."""
        if not self.refuses(sequence):
            self.waiting.append(sequence)
            self.note(min(sequence.request.arrival_s, self.batch.now))

    def until(self, arrivals: bool) -> float:
        """When something may happen that the batch has to stop for."""
        while self.impatient and self.impatient[0][2].outcome:
            heappop(self.impatient)
        first = self.impatient[0][0] if self.impatient else math.inf
        if arrivals and self.slots and not self.waiting and self.next_s < first:
            return self.next_s
        return first

    def cancel(self, sequence: LiveSequence) -> None:
        """It goes away, from the queue or from its slot."""
        if sequence.order in self.inside:
            self.vacate(sequence)
        else:
            self.waiting.remove(sequence)
        self.close(sequence, "cancelled")

    def bear(self, sequence: LiveSequence) -> None:
        """It may have enough one day."""
        if sequence.request.cancel_s < math.inf:
            heappush(self.impatient, (sequence.request.cancel_s, sequence.index, sequence))

    def expect(self, sequence: LiveSequence) -> None:
        """It comes at its time among the others, and perhaps goes."""
        insort(self.todo, sequence, lo=self.next, key=lambda other: other.request.arrival_s)
        self.next_s = min(self.next_s, sequence.request.arrival_s)
        self.bear(sequence)

    # Slots and blocks.

    def admit(self) -> LiveSequence | None:
        """The first who waits, in a slot with blocks for its prompt; None where there is no room."""
        sequence = self.begin() if self.waiting and self.slots else None
        if sequence:
            sequence.stay.slot = heappop(self.slots)
            self.note()
        return sequence

    def has_room(self, sequence: LiveSequence, hit: int) -> bool:
        """Whether there are blocks for one more token than its prefill gives, and a step of all others."""
        tokens, pool = sequence.tokens + 1, self.pool
        # A row needs at most one block in a step: where even so many are free, nothing has to be counted.
        if tokens // pool.size + 1 + self.batch.rows + pool.spare <= pool.free:
            return True  # without counting
        beside = max(self.batch.needs(1), pool.spare) if self.inside else 0
        return pool.admits(sequence, hit, min(tokens, sequence.most_tokens), beside)

    def vacate(self, sequence: LiveSequence) -> None:
        """It goes before it has its last token."""
        if sequence.decoding:
            self.batch.forget(sequence)
        self.depart(sequence)

    def depart(self, sequence: LiveSequence) -> None:
        """Out of its slot; in a static batch its row stays until all are done."""
        decoding = sequence.decoding
        self.batch.live -= decoding
        sequence.stayed(self.batch.step, self.batch.last_s, self.batch.now)
        del self.inside[sequence.order]
        if decoding and self.padded:
            self.rows.append(sequence)
        else:
            self.release(sequence, decoding)
        if self.rows and not self.inside:
            for row in self.rows:
                self.release(row, True)
            self.rows = []

    def release(self, sequence: LiveSequence, decoding: bool) -> None:
        """Row, slot and blocks are free."""
        if decoding:
            self.batch.leave(sequence)
        self.pool.release(sequence)
        heappush(self.slots, sequence.stay.slot)

    # Steps.

    def chunk_s(self, pieces: list[tuple[LiveSequence, int]], rows: int = 0, kv_tokens: int = 0) -> float:
        """What a step takes with so many tokens of these prompts, beside so many rows that decode."""
        now, chunk = self.batch.now, sum([part for _, part in pieces])
        step_s = self.costs.step_s(rows, kv_tokens, chunk, mean_context(pieces, chunk), len(pieces))
        self.chunks.append(Chunk(0, now, now + step_s, chunk))
        return step_s

    def prefill(self, group: list[LiveSequence]) -> None:
        """Their prompts alone, in one pass; all get a token at its end."""
        self.batch.now += self.chunk_s([(s, s.tokens - s.filled) for s in group])
        self.arrivals()
        for s in group:
            self.ready(s)
        if self.padded:
            self.step_over()

    def ready(self, sequence: LiveSequence) -> None:
        """Its prompt is in the cache, and a token is out."""
        if self.answer(sequence) and not self.padded:
            self.depart(sequence)
            self.close(sequence, "finished")
        else:
            sequence.stay.decode_s = self.batch.now
            self.batch.join(sequence)

    def go_on(self, arrivals: bool = True) -> None:
        """Who is there decodes until something happens; where nobody is, that is when the next comes."""
        if self.inside:
            self.decode(self.until(arrivals))
        elif self.next_s < math.inf:
            self.batch.now = max(self.batch.now, self.next_s)

    def decode(self, until_s: float) -> None:
        """As many steps as nothing happens in; without blocks for one, the last to come is evicted."""
        plan = self.batch.plan(until_s)
        if plan.steps:
            self.batch.advance(plan)
            self.step_over()
        else:
            self.evict()

    def step_over(self) -> None:
        """At a boundary: who has come is noted, who has all tokens goes."""
        self.arrivals()
        for sequence in self.batch.ended():
            self.pool.share(sequence, sequence.offset + self.batch.step)
            self.depart(sequence)
            self.close(sequence, "finished")

    def evict(self) -> None:
        """The last to come gives its place to the others."""
        # The last, as it has the least to lose and to make again (vLLM: preemption by recomputation).
        sequence = self.inside[max(self.inside)]
        self.vacate(sequence)
        self.wait_again(sequence)
