"""One server that both prefills and decodes: admission, prefill, decode steps, eviction and completion.

The scheduling loops in `simulate` decide what to do next, and this class executes it. Chapter: Inference.
"""

import math
from bisect import insort
from heapq import heappop, heappush

from scalingbook_lib.serving.batch import Batch
from scalingbook_lib.serving.costs import TIME_TOLERANCE
from scalingbook_lib.serving.frontend import Frontend, PrefillChunk, SimulationSetup
from scalingbook_lib.serving.sequence import LiveSequence, mean_chunk_context


class Server(Frontend):
    """The queue, slots and decode batch of one server; its clock is the batch's."""

    def __init__(self, setup: SimulationSetup, *, slots: int, padded: bool = False) -> None:
        super().__init__(setup, setup.blocks)
        self.arrivals, self.next_index = setup.arrivals, 0
        self.next_arrival_s = self._next_arrival_s()
        self.costs = setup.costs
        self.clock = self.batch = Batch(setup.costs, self.pool, setup.max_fused_steps)
        self.batches = [self.batch]
        self.free_slots = list(range(slots))  # indices of free slots
        self.horizon_s = math.inf  # decoding stops here, because another replica may send a turn
        self.padded = padded  # static batches keep finished rows until all are done
        self.padding_rows: list[LiveSequence] = []  # finished rows of the current static batch
        self.pending_cancellations: list[tuple[float, int, LiveSequence]] = []  # (time, index, sequence)
        for sequence in self.arrivals:
            self.schedule_cancellation(sequence)

    # Arrivals and cancellations.

    def enqueue_arrivals(self) -> None:
        """Put every request that has arrived by now into the queue."""
        now = self.batch.now * TIME_TOLERANCE
        while self.next_arrival_s <= now:
            sequence = self.arrivals[self.next_index]
            sequence.order = self.next_index
            self.next_index += 1
            self.enqueue(sequence)
            self.next_arrival_s = self._next_arrival_s()

    def _next_arrival_s(self) -> float:
        """The time in seconds of the next arrival, inf if there is none."""
        return (
            self.arrivals[self.next_index].request.arrival_s
            if self.next_index < len(self.arrivals)
            else math.inf
        )

    def has_work(self) -> bool:
        """Process arrivals and due cancellations; returns whether any request is unfinished or to come."""
        now = self.batch.now * TIME_TOLERANCE
        if self.next_arrival_s <= now:
            self.enqueue_arrivals()
        while self.pending_cancellations and self.pending_cancellations[0][0] <= now:
            sequence = heappop(self.pending_cancellations)[2]
            if not sequence.outcome:
                self.cancel(sequence)
                self.enqueue_arrivals()  # the client's next request may have arrived too
        return bool(self.running or self.waiting or self.next_arrival_s < math.inf)

    def enqueue(self, sequence: LiveSequence) -> None:
        """Put a request into the queue, unless it can never fit the cache."""
        if not self.refuse_if_too_long(sequence):
            self.waiting.append(sequence)
            self.record_queue(min(sequence.request.arrival_s, self.batch.now))

    def next_stop_s(self, stop_for_arrivals: bool) -> float:
        """The time in seconds of the next cancellation or arrival for which decoding has to stop."""
        while self.pending_cancellations and self.pending_cancellations[0][2].outcome:
            heappop(self.pending_cancellations)
        first = self.pending_cancellations[0][0] if self.pending_cancellations else math.inf
        first = min(first, self.horizon_s)
        if stop_for_arrivals and self.free_slots and not self.waiting and self.next_arrival_s < first:
            return self.next_arrival_s
        return first

    def cancel(self, sequence: LiveSequence) -> None:
        """Remove a sequence from the queue or from its slot."""
        if sequence.order in self.running:
            self.abort(sequence)
        else:
            self.waiting.remove(sequence)
        self.close(sequence, "cancelled")

    def schedule_cancellation(self, sequence: LiveSequence) -> None:
        """Schedule the cancellation of a sequence whose request has a deadline."""
        if sequence.request.cancel_s < math.inf:
            heappush(self.pending_cancellations, (sequence.request.cancel_s, sequence.index, sequence))

    def add_arrival(self, sequence: LiveSequence) -> None:
        """Insert a request among the future arrivals and schedule its cancellation."""
        insort(self.arrivals, sequence, lo=self.next_index, key=lambda other: other.request.arrival_s)
        self.next_arrival_s = min(self.next_arrival_s, sequence.request.arrival_s)
        self.schedule_cancellation(sequence)

    # Slots and blocks.

    def admit(self) -> LiveSequence | None:
        """Start the first waiting sequence in a free slot; None without a free slot or enough blocks."""
        sequence = self.start_next() if self.waiting and self.free_slots else None
        if sequence:
            sequence.residency.slot = heappop(self.free_slots)
            self.record_queue()
        return sequence

    def can_admit(self, sequence: LiveSequence, hit: int) -> bool:
        """Whether the free blocks hold its prefill, one more token, and one step of all running sequences."""
        tokens, pool = sequence.tokens + 1, self.pool
        # A row needs at most one block per step, so this many free blocks are enough without counting.
        if tokens // pool.size + 1 + self.batch.rows + pool.spare <= pool.free:
            return True
        reserved = max(self.batch.blocks_needed(1), pool.spare) if self.running else 0
        return pool.admits(sequence, hit, min(tokens, sequence.max_cached_tokens), reserved)

    def abort(self, sequence: LiveSequence) -> None:
        """Stop a sequence that has not finished and free its slot."""
        if sequence.decoding:
            self.batch.remove(sequence)
        self.release_slot(sequence)

    def release_slot(self, sequence: LiveSequence) -> None:
        """Take a sequence out of its slot; in a static batch its row stays until the batch is done."""
        decoding = sequence.decoding
        self.batch.live -= decoding
        sequence.end_residency(self.batch.step, self.batch.last_s, self.batch.now)
        del self.running[sequence.order]
        if decoding and self.padded:
            self.padding_rows.append(sequence)
        else:
            self.free(sequence, decoding)
        if self.padding_rows and not self.running:
            for row in self.padding_rows:
                self.free(row, True)
            self.padding_rows = []

    def free(self, sequence: LiveSequence, decoding: bool) -> None:
        """Free the row, the slot and the blocks of a sequence."""
        if decoding:
            self.batch.leave(sequence)
        self.pool.release(sequence)
        heappush(self.free_slots, sequence.residency.slot)

    # Steps.

    def prefill_step_s(
        self, pieces: list[tuple[LiveSequence, int]], rows: int = 0, kv_tokens: int = 0
    ) -> float:
        """The time in seconds of a step that prefills `pieces` of prompts while `rows` sequences decode."""
        now, chunk = self.batch.now, sum([part for _, part in pieces])
        step_s = self.costs.step_s(rows, kv_tokens, chunk, mean_chunk_context(pieces, chunk), len(pieces))
        if self.pool.host:  # layers are computed while the next ones are loaded
            step_s = max(step_s, self.pool.host.load_s(sum([s.loaded for s, _ in pieces])))
            for s, _ in pieces:
                s.loaded = 0
        self.chunks.append(PrefillChunk(0, now, now + step_s, chunk))
        return step_s

    def prefill(self, group: list[LiveSequence]) -> None:
        """Prefill whole prompts in one step; each sequence gets its first token at the end."""
        self.batch.now += self.prefill_step_s([(s, s.tokens - s.filled) for s in group])
        self.enqueue_arrivals()
        for s in group:
            self.start_decoding(s)
        if self.padded:
            self.end_step()

    def start_decoding(self, sequence: LiveSequence) -> None:
        """Record the end of a sequence's prefill and let it decode, unless its first token is its last."""
        if self.emit_first_token(sequence) and not self.padded:
            self.release_slot(sequence)
            self.close(sequence, "finished")
        else:
            sequence.residency.decode_s = self.batch.now
            self.batch.add(sequence)

    def step(self, stop_for_arrivals: bool = True) -> None:
        """Decode until the next event; with nothing running, advance the clock to the next arrival."""
        if self.running:
            self.decode(self.next_stop_s(stop_for_arrivals))
        elif self.next_arrival_s < math.inf:
            self.batch.now = max(self.batch.now, self.next_arrival_s)

    def decode(self, until_s: float) -> None:
        """Decode until `until_s`; if there are no blocks for a single step, evict the last arrival."""
        plan = self.batch.plan(until_s)
        if plan.steps:
            self.batch.advance(plan)
            self.end_step()
        else:
            self.evict()

    def end_step(self) -> None:
        """At a step boundary, enqueue arrivals and release the sequences that have finished."""
        self.enqueue_arrivals()
        for sequence in self.batch.pop_finished():
            self.pool.publish_prefix(sequence, sequence.offset + self.batch.step)
            self.release_slot(sequence)
            self.close(sequence, "finished")

    def evict(self) -> None:
        """Evict the last arrival and put it back at the head of the queue."""
        # The last arrival has the least work to recompute (vLLM: preemption by recomputation).
        sequence = self.running[max(self.running)]
        self.abort(sequence)
        self.requeue(sequence)
