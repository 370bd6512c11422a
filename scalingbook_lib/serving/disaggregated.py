"""What happens where prefill and decode have servers of their own? Events by time. Chapter: Inference."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from scalingbook_lib.serving.batch import Decoder
from scalingbook_lib.serving.frontend import Chunk, Frontend, Setup
from scalingbook_lib.serving.policies import Disaggregated
from scalingbook_lib.serving.sequence import LiveSequence, Stay


class Event(NamedTuple):
    """What is due; `tick` counts, so that of two at one time the one made first comes first."""

    time_s: float
    tick: int
    act: Callable[[], None]


class DisaggregatedServers(Frontend):
    """The servers, who is between them, and what is due."""

    def __init__(self, setup: Setup, policy: Disaggregated) -> None:
        blocks = setup.blocks
        super().__init__(setup, blocks and replace(blocks, count=blocks.count * policy.prefill))
        self.prefill_costs, self.policy = setup.prefill_costs, policy
        self.now, self.clock = 0.0, self
        self.prefillers = list(range(policy.prefill))  # the free ones
        self.decoders = [Decoder(i, setup, policy.slots) for i in range(policy.decode)]
        self.batches = [decoder.batch for decoder in self.decoders]
        self.pools += [decoder.pool for decoder in self.decoders]
        self.placing: deque[LiveSequence] = deque()  # who has a cache and waits for a slot
        self.due: list[Event] = []
        self.tick, self.arrived = count(), count()
        for sequence in setup.todo:
            self.expect(sequence)

    def at(self, time_s: float, act: Callable[..., None], *whom: object) -> None:
        """Something is due."""
        heappush(self.due, Event(time_s, next(self.tick), partial(act, *whom)))

    def expect(self, sequence: LiveSequence) -> None:
        """It will come, and perhaps go."""
        self.at(sequence.request.arrival_s, self.arrive, sequence)
        if sequence.request.cancel_s < math.inf:
            self.at(sequence.request.cancel_s, self.cancel, sequence)

    def play(self) -> None:
        """All events, in order of time, then of their making."""
        while self.due:
            event = heappop(self.due)
            self.now = event.time_s
            event.act()

    # Prefill.

    def arrive(self, sequence: LiveSequence) -> None:
        """One more waits, unless it could never fit."""
        if self.refuses(sequence):
            return
        sequence.stage, sequence.order = "waiting", next(self.arrived)
        self.waiting.append(sequence)
        self.note()
        self.start()

    def start(self) -> None:
        """Free prefill servers take who waits, as long as there are blocks."""
        while self.waiting and self.prefillers and (sequence := self.begin()):
            chunk = sequence.tokens - sequence.filled
            end_s = self.now + self.prefill_costs.step_s(0, 0, chunk, sequence.filled)
            sequence.stage, sequence.stay.prefiller = "prefilling", heappop(self.prefillers)
            self.chunks.append(Chunk(sequence.stay.prefiller, self.now, end_s, chunk))
            self.at(end_s, self.prefilled, sequence)
            self.note()

    def has_room(self, sequence: LiveSequence, hit: int) -> bool:
        """Whether the prefill servers have blocks for its prompt; its answer needs none of theirs."""
        return self.pool.admits(sequence, hit, sequence.tokens, 0)

    def prefilled(self, sequence: LiveSequence) -> None:
        """Its cache is made, a token is out; it waits for a slot, unless it has all tokens or has gone."""
        heappush(self.prefillers, sequence.stay.prefiller)
        if self.answer(sequence):
            self._unplaced(sequence, "finished")
        elif sequence.request.cancel_s <= self.now:
            self._unplaced(sequence, "cancelled")
        else:
            sequence.stage = "placing"
            self.placing.append(sequence)
            self.place()
        self.start()

    def _unplaced(self, sequence: LiveSequence, outcome: str) -> None:
        """It never gets to a decode server."""
        sequence.stayed(0, self.now, self.now)
        self.pool.release(sequence)
        del self.inside[sequence.order]
        self.close(sequence, outcome)

    # KV transfer and decode.

    def place(self) -> None:
        """Whoever has a cache gets a slot on the emptiest server, in order; the KV transfer begins then."""
        while self.placing:
            free = [d for d in self.decoders if d.has_room(self.placing[0], self.now)]
            if not free:
                return
            # By the fewest sequences, as a step is the shorter the fewer caches it reads; ties to the first.
            decoder = min(free, key=lambda d: (len(d.inside), d.index))
            sequence = self.placing.popleft()
            decoder.seat(sequence)
            sequence.stage = "moving"
            if self.blocks:
                self.stop(decoder)  # its plan counted on those blocks
            transfer_s = (sequence.tokens - 1) * self.policy.transfer_s
            self.at(self.now + transfer_s, self.moved, sequence, sequence.stay)

    def moved(self, sequence: LiveSequence, stay: Stay) -> None:
        """The cache is there; it joins at the next boundary, unless it has gone or was evicted on the way."""
        if sequence.stage != "moving" or sequence.stay is not stay:
            return
        self.pool.release(sequence)
        sequence.stage = "decoding"
        decoder = self.decoders[sequence.stay.server]
        decoder.joining.append(sequence)
        self.stop(decoder)
        self.start()

    def stop(self, decoder: Decoder) -> None:
        """Its step that has begun is its last before we look again."""
        decoder.cut(self.now)
        self.at(decoder.boundary_s, self.boundary, decoder, decoder.version)

    def boundary(self, decoder: Decoder, version: int) -> None:
        """Who is done or has had enough goes, who is there joins; without blocks the last goes back."""
        if version != decoder.version:
            return  # another plan was made since
        # The order matters: who has all tokens is done even where it wanted to go, and both make room.
        for sequence in decoder.step():
            self.gone(decoder, sequence, "finished")
        for sequence in decoder.doomed:
            if not sequence.outcome:
                decoder.batch.forget(sequence)
                self.gone(decoder, sequence, "cancelled")
        decoder.doomed = []
        while not decoder.go_on():
            self.evict(decoder)
        if decoder.batch.rows:
            self.at(decoder.boundary_s, self.boundary, decoder, decoder.version)
        self.place()

    def gone(self, decoder: Decoder, sequence: LiveSequence, outcome: str) -> None:
        """It leaves its slot for good."""
        self.unseat(decoder, sequence)
        self.close(sequence, outcome)

    def unseat(self, decoder: Decoder, sequence: LiveSequence) -> None:
        """Out of the slot, wherever its cache is."""
        if sequence.stage == "moving":
            self.pool.release(sequence)
        decoder.leave(sequence, self.now)
        del self.inside[sequence.order]

    def evict(self, decoder: Decoder) -> None:
        """The last to come waits again, before all others."""
        sequence = decoder.inside[max(decoder.inside)]
        decoder.batch.forget(sequence)
        self.unseat(decoder, sequence)
        sequence.stage = "waiting"
        self.wait_again(sequence)
        self.start()

    def cancel(self, sequence: LiveSequence) -> None:
        """It goes: from a queue or the way at once, from a prefill or a step when that is over."""
        if sequence.outcome or sequence.stage == "prefilling":
            return
        if sequence.stage == "waiting":
            self.waiting.remove(sequence)
            self.close(sequence, "cancelled")
        elif sequence.stage == "placing":
            self.placing.remove(sequence)
            self._unplaced(sequence, "cancelled")
            self.start()
        elif sequence.stage == "moving":
            self.gone(self.decoders[sequence.stay.server], sequence, "cancelled")
            self.place()
            self.start()
        else:
            decoder = self.decoders[sequence.stay.server]
            decoder.doomed.append(sequence)
            self.stop(decoder)
