"""Simulation of disaggregated prefill and decode servers as a queue of timed events. Chapter: Inference."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from scalingbook_lib.serving.batch import DecodeServer
from scalingbook_lib.serving.frontend import Frontend, PrefillChunk, SimulationSetup
from scalingbook_lib.serving.policies import Disaggregated
from scalingbook_lib.serving.sequence import LiveSequence, Residency


class ScheduledEvent(NamedTuple):
    """A scheduled action; `tick` orders events at the same time by when they were scheduled."""

    time_s: float
    tick: int
    act: Callable[[], None]


class DisaggregatedServers(Frontend):
    """The prefill and decode servers, the sequences between them, and the scheduled events."""

    def __init__(self, setup: SimulationSetup, policy: Disaggregated) -> None:
        blocks = setup.blocks
        super().__init__(setup, blocks and replace(blocks, count=blocks.count * policy.prefill))
        self.prefill_costs, self.policy = setup.prefill_costs, policy
        self.now, self.clock = 0.0, self
        self.free_prefill_servers = list(range(policy.prefill))
        self.decode_servers = [DecodeServer(i, setup, policy.slots) for i in range(policy.decode)]
        self.batches = [decoder.batch for decoder in self.decode_servers]
        self.pools += [decoder.pool for decoder in self.decode_servers]
        self.awaiting_slot: deque[LiveSequence] = deque()  # prefilled sequences that wait for a decode slot
        self.events: list[ScheduledEvent] = []
        self.tick, self.arrival_numbers = count(), count()
        for sequence in setup.arrivals:
            self.add_arrival(sequence)

    def schedule(self, time_s: float, act: Callable[..., None], *arguments: object) -> None:
        """Schedule an action at `time_s`."""
        heappush(self.events, ScheduledEvent(time_s, next(self.tick), partial(act, *arguments)))

    def add_arrival(self, sequence: LiveSequence) -> None:
        """Schedule the arrival of a request, and its cancellation if it has one."""
        self.schedule(sequence.request.arrival_s, self.on_arrival, sequence)
        if sequence.request.cancel_s < math.inf:
            self.schedule(sequence.request.cancel_s, self.on_cancel, sequence)

    def run(self) -> None:
        """Execute all events in order of time."""
        while self.events:
            event = heappop(self.events)
            self.now = event.time_s
            event.act()

    # Prefill.

    def on_arrival(self, sequence: LiveSequence) -> None:
        """Enqueue a request, unless it can never fit the cache."""
        if self.refuse_if_too_long(sequence):
            return
        sequence.stage, sequence.order = "waiting", next(self.arrival_numbers)
        self.waiting.append(sequence)
        self.record_queue()
        self.start_prefills()

    def start_prefills(self) -> None:
        """Start waiting prompts on free prefill servers while there are blocks."""
        while self.waiting and self.free_prefill_servers and (sequence := self.start_next()):
            chunk = sequence.tokens - sequence.filled
            end_s = self.now + self.prefill_costs.step_s(0, 0, chunk, sequence.filled)
            sequence.stage, sequence.residency.prefiller = "prefilling", heappop(self.free_prefill_servers)
            self.chunks.append(PrefillChunk(sequence.residency.prefiller, self.now, end_s, chunk))
            self.schedule(end_s, self.on_prefill_done, sequence)
            self.record_queue()

    def can_admit(self, sequence: LiveSequence, hit: int) -> bool:
        """Whether the prefill servers have blocks for its prompt; its output needs none of theirs."""
        return self.pool.admits(sequence, hit, sequence.tokens, 0)

    def on_prefill_done(self, sequence: LiveSequence) -> None:
        """Emit the first token; unless that ends it, the sequence then waits for a decode slot."""
        heappush(self.free_prefill_servers, sequence.residency.prefiller)
        if self.emit_first_token(sequence):
            self._close_without_decode(sequence, "finished")
        elif sequence.request.cancel_s <= self.now:
            self._close_without_decode(sequence, "cancelled")
        else:
            sequence.stage = "awaiting slot"
            self.awaiting_slot.append(sequence)
            self.assign_slots()
        self.start_prefills()

    def _close_without_decode(self, sequence: LiveSequence, outcome: str) -> None:
        """Close a sequence that never reaches a decode server."""
        sequence.end_residency(0, self.now, self.now)
        self.pool.release(sequence)
        del self.running[sequence.order]
        self.close(sequence, outcome)

    # KV transfer and decode.

    def assign_slots(self) -> None:
        """Give prefilled sequences a slot on the least loaded server, and start their KV transfers."""
        while self.awaiting_slot:
            free = [d for d in self.decode_servers if d.can_admit(self.awaiting_slot[0], self.now)]
            if not free:
                return
            # The fewest sequences: a step is shorter if it reads fewer caches. Ties go to the first server.
            decoder = min(free, key=lambda d: (len(d.running), d.index))
            sequence = self.awaiting_slot.popleft()
            decoder.allocate_slot(sequence)
            sequence.stage = "transferring"
            if self.blocks:
                self.stop_at_boundary(decoder)  # its plan may have counted on those blocks
            transfer_s = (sequence.tokens - 1) * self.policy.transfer_s
            self.schedule(self.now + transfer_s, self.on_transfer_done, sequence, sequence.residency)

    def on_transfer_done(self, sequence: LiveSequence, residency: Residency) -> None:
        """Let a sequence join at the next boundary, unless it was cancelled or evicted in the meantime."""
        if sequence.stage != "transferring" or sequence.residency is not residency:
            return
        self.pool.release(sequence)
        sequence.stage = "decoding"
        decoder = self.decode_servers[sequence.residency.server]
        decoder.joining.append(sequence)
        self.stop_at_boundary(decoder)
        self.start_prefills()

    def stop_at_boundary(self, decoder: DecodeServer) -> None:
        """End a server's plan with the step in progress, so that it is planned again."""
        decoder.truncate_plan(self.now)
        self.schedule(decoder.boundary_s, self.on_boundary, decoder, decoder.plan_version)

    def on_boundary(self, decoder: DecodeServer, version: int) -> None:
        """Release finished and cancelled sequences, add new ones, and evict if blocks run out."""
        if version != decoder.plan_version:
            return  # the server has a newer plan
        # Finished before cancelled: a sequence with its last token counts as finished. Both free blocks.
        for sequence in decoder.finish_plan():
            self.finish(decoder, sequence, "finished")
        for sequence in decoder.cancelled_at_boundary:
            if not sequence.outcome:
                decoder.batch.remove(sequence)
                self.finish(decoder, sequence, "cancelled")
        decoder.cancelled_at_boundary = []
        while not decoder.plan_next():
            self.evict(decoder)
        if decoder.batch.rows:
            self.schedule(decoder.boundary_s, self.on_boundary, decoder, decoder.plan_version)
        self.assign_slots()

    def finish(self, decoder: DecodeServer, sequence: LiveSequence, outcome: str) -> None:
        """Release the slot of a sequence for good and close it."""
        self.release_slot(decoder, sequence)
        self.close(sequence, outcome)

    def release_slot(self, decoder: DecodeServer, sequence: LiveSequence) -> None:
        """Take a sequence out of its slot, before or after its cache has arrived."""
        if sequence.stage == "transferring":
            self.pool.release(sequence)
        decoder.release_slot(sequence, self.now)
        del self.running[sequence.order]

    def evict(self, decoder: DecodeServer) -> None:
        """Evict the last arrival and put it back at the head of the queue."""
        sequence = decoder.running[max(decoder.running)]
        decoder.batch.remove(sequence)
        self.release_slot(decoder, sequence)
        sequence.stage = "waiting"
        self.requeue(sequence)
        self.start_prefills()

    def on_cancel(self, sequence: LiveSequence) -> None:
        """Cancel a sequence: at once if queued or in transfer, otherwise when its prefill or step ends."""
        if sequence.outcome or sequence.stage == "prefilling":
            return
        if sequence.stage == "waiting":
            self.waiting.remove(sequence)
            self.close(sequence, "cancelled")
        elif sequence.stage == "awaiting slot":
            self.awaiting_slot.remove(sequence)
            self._close_without_decode(sequence, "cancelled")
            self.start_prefills()
        elif sequence.stage == "transferring":
            self.finish(self.decode_servers[sequence.residency.server], sequence, "cancelled")
            self.assign_slots()
            self.start_prefills()
        else:
            decoder = self.decode_servers[sequence.residency.server]
            decoder.cancelled_at_boundary.append(sequence)
            self.stop_at_boundary(decoder)
