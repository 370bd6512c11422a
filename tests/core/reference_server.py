"""A reference simulator of one server that computes token by token, for tests of the fast simulator.

Every step visits every request, recounts every block and calls `step_s` itself.
"""

from dataclasses import dataclass, field
from math import ceil

from scalingbook_lib.serving import Chunked, Continuous, PagedCache, Request, Static

TIME_TOLERANCE = 1 + 1e-12  # times within this factor are equal


@dataclass
class Sequence:
    request: Request
    order: int
    times: list[float] = field(default_factory=list)  # of its tokens
    cached: int = 0  # tokens in the cache
    goal: int = 0  # what its prefill has to cache
    outcome: str = ""
    end_s: float = 0.0

    @property
    def filling(self) -> bool:
        return self.cached < self.goal

    @property
    def tokens(self) -> int:
        return self.request.prompt + len(self.times)

    @property
    def most(self) -> int:
        return self.request.prompt + self.request.output - 1


class ReferenceServer:
    """The reference server; `run` returns the sequences in order of arrival."""

    def __init__(self, requests, costs, policy, blocks: PagedCache | None = None) -> None:
        self.costs, self.policy, self.blocks, self.now = costs, policy, blocks, 0.0
        arrivals = sorted(requests, key=lambda r: r.arrival_s)
        self.sequences = [Sequence(request, i) for i, request in enumerate(arrivals)]
        self.arrived = 0
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.padding_rows: list[Sequence] = []  # finished rows of a static batch

    def run(self) -> list[Sequence]:
        act = {Continuous: self.continuous, Chunked: self.chunked, Static: self.static}[type(self.policy)]
        while self.waiting or self.running or self.arrived < len(self.sequences):
            self.process_arrivals_and_cancellations()
            if not act() and self.arrived < len(self.sequences):
                self.now = max(self.now, self.sequences[self.arrived].request.arrival_s)
        return self.sequences

    def process_arrivals_and_cancellations(self) -> None:
        while (
            self.arrived < len(self.sequences)
            and self.sequences[self.arrived].request.arrival_s <= self.now * TIME_TOLERANCE
        ):
            sequence = self.sequences[self.arrived]
            self.arrived += 1
            if self.blocks and ceil(sequence.most / self.blocks.size) > self.blocks.count:
                sequence.outcome, sequence.end_s = "refused", sequence.request.arrival_s
            else:
                self.waiting.append(sequence)
        for sequence in [*self.waiting, *self.running]:
            if sequence.request.cancel_s <= self.now * TIME_TOLERANCE:
                (self.running if sequence in self.running else self.waiting).remove(sequence)
                if isinstance(self.policy, Static) and sequence.cached:
                    self.padding_rows.append(sequence)
                sequence.outcome, sequence.end_s = "cancelled", self.now
        self.end_static_batch()

    def end_static_batch(self) -> None:
        if not self.running:
            self.padding_rows = []

    def used(self) -> int:
        """Used blocks: those of a prompt from its admission, those of an answer as it grows."""
        size = self.blocks.size
        return sum(ceil(max(g.cached, g.goal) / size) for g in [*self.running, *self.padding_rows])

    def decoding(self) -> list[Sequence]:
        return [g for g in [*self.running, *self.padding_rows] if not g.filling]

    def growth(self) -> int:
        """The blocks that one decode step takes."""
        return sum(g.cached % self.blocks.size == 0 for g in self.decoding())

    def admit(self) -> Sequence | None:
        slots = self.policy.batch if isinstance(self.policy, Static) else self.policy.slots
        if not self.waiting or len(self.running) + len(self.padding_rows) >= slots:
            return None
        sequence = self.waiting[0]
        if self.blocks:
            spare = int(self.blocks.spare * self.blocks.count)
            beside = max(self.growth(), spare) if self.running else 0
            need = ceil(min(sequence.tokens + 1, sequence.most) / self.blocks.size)
            if need + beside > self.blocks.count - self.used():
                return None
        self.waiting.pop(0)
        self.running.append(sequence)
        sequence.cached, sequence.goal = 0, sequence.tokens
        return sequence

    def token(self, sequence: Sequence) -> None:
        sequence.times.append(self.now)
        if len(sequence.times) == sequence.request.output:
            sequence.outcome, sequence.end_s = "finished", self.now
            self.running.remove(sequence)
            if isinstance(self.policy, Static):
                self.padding_rows.append(sequence)

    def decode(self, pieces: list[tuple[Sequence, int]]) -> None:
        """One step that decodes and prefills `pieces`; evicts the last arrival if blocks run out."""
        batch = self.decoding()
        if self.blocks and batch and self.used() + self.growth() > self.blocks.count:
            last = max(self.running, key=lambda g: g.order)
            self.running.remove(last)
            self.waiting.insert(0, last)
            return
        self.now += self.seconds(batch, pieces)
        live = [g for g in batch if g in self.running]
        for sequence in batch:
            sequence.cached += 1
        for sequence in live:
            self.token(sequence)
        for sequence, part in pieces:
            sequence.cached += part
            if not sequence.filling:
                self.token(sequence)
        self.end_static_batch()

    def seconds(self, batch: list[Sequence], pieces: list[tuple[Sequence, int]]) -> float:
        """The step time; chunks of several prompts cost as much as equal ones with as many pairs."""
        kv, chunk = sum(g.cached for g in batch), sum(part for _, part in pieces)
        if not chunk:
            return self.costs.step_s(len(batch), kv)
        pairs = sum(part * g.cached + part * part / 2 for g, part in pieces)
        context = max(pairs / chunk - chunk / len(pieces) / 2, 0.0)
        return self.costs.step_s(len(batch), kv, chunk, context, len(pieces))

    def prefill(self, group: list[Sequence]) -> None:
        self.now += self.seconds([], [(g, g.goal) for g in group])
        for sequence in group:
            sequence.cached = sequence.goal
            self.token(sequence)
        self.end_static_batch()

    def continuous(self) -> bool:
        group: list[Sequence] = []
        while len(group) < self.policy.prompts and (sequence := self.admit()):
            group.append(sequence)
        busy = bool(self.running)
        if group:
            self.prefill(group)
        elif busy:
            self.decode([])
        return busy

    def chunked(self) -> bool:
        room, pieces = self.policy.budget - len(self.decoding()), []
        waiting = [g for g in self.running if g.filling]
        while room > 0 and (sequence := waiting.pop(0) if waiting else self.admit()):
            part = min(sequence.goal - sequence.cached, room)
            pieces.append((sequence, part))
            room -= part
        busy = bool(self.running)
        if busy:
            self.decode(pieces)
        return busy

    def static(self) -> bool:
        if self.running:
            self.decode([])
            return True
        group: list[Sequence] = []
        while self.waiting and len(group) < self.policy.batch:
            both = [*group, self.waiting[0]]
            longest = max(g.request.output for g in both)
            needs = (
                sum(ceil((g.request.prompt + longest - 1) / self.blocks.size) for g in both)
                if self.blocks
                else 0
            )
            if group and self.blocks and needs > self.blocks.count:
                break
            sequence = self.admit()
            if sequence is None:
                break
            group.append(sequence)
        if group:
            self.prefill(group)
        return bool(group)


def reference_run(requests, costs, policy, blocks=None) -> list[Sequence]:
    return ReferenceServer(requests, costs, policy, blocks).run()
