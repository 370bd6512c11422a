"""One server, played out token by token with nothing kept in mind: what the quick simulator must equal.

Every step looks at every request, counts every block anew and asks for its own seconds.
"""

from dataclasses import dataclass, field
from math import ceil

from scalingbook_lib.serving import Blocks, Chunked, Continuous, Request, Static

SAME = 1 + 1e-12  # times nearer to each other than this are one


@dataclass
class Guest:
    request: Request
    order: int
    times: list[float] = field(default_factory=list)  # of its tokens
    cached: int = 0  # tokens in the cache
    goal: int = 0  # what its prefill has to put there
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


class Naive:
    """`play` gives the guests in order of arrival."""

    def __init__(self, requests, costs, policy, blocks: Blocks | None = None) -> None:
        self.costs, self.policy, self.blocks, self.now = costs, policy, blocks, 0.0
        arrivals = sorted(requests, key=lambda r: r.arrival_s)
        self.guests = [Guest(request, i) for i, request in enumerate(arrivals)]
        self.seen = 0
        self.waiting: list[Guest] = []
        self.inside: list[Guest] = []
        self.rows: list[Guest] = []  # done, in a static batch

    def play(self) -> list[Guest]:
        act = {Continuous: self.continuous, Chunked: self.chunked, Static: self.static}[type(self.policy)]
        while self.waiting or self.inside or self.seen < len(self.guests):
            self.look()
            if not act() and self.seen < len(self.guests):
                self.now = max(self.now, self.guests[self.seen].request.arrival_s)
        return self.guests

    def look(self) -> None:
        while self.seen < len(self.guests) and self.guests[self.seen].request.arrival_s <= self.now * SAME:
            guest = self.guests[self.seen]
            self.seen += 1
            if self.blocks and ceil(guest.most / self.blocks.size) > self.blocks.count:
                guest.outcome, guest.end_s = "refused", guest.request.arrival_s
            else:
                self.waiting.append(guest)
        for guest in [*self.waiting, *self.inside]:
            if guest.request.cancel_s <= self.now * SAME:
                (self.inside if guest in self.inside else self.waiting).remove(guest)
                if isinstance(self.policy, Static) and guest.cached:
                    self.rows.append(guest)
                guest.outcome, guest.end_s = "cancelled", self.now
        self.sweep()

    def sweep(self) -> None:
        if not self.inside:
            self.rows = []

    def used(self) -> int:
        """Blocks: of a prompt from the start, of an answer as it grows."""
        size = self.blocks.size
        return sum(ceil(max(g.cached, g.goal) / size) for g in [*self.inside, *self.rows])

    def decoding(self) -> list[Guest]:
        return [g for g in [*self.inside, *self.rows] if not g.filling]

    def growth(self) -> int:
        """Blocks of one decode step."""
        return sum(g.cached % self.blocks.size == 0 for g in self.decoding())

    def admit(self) -> Guest | None:
        slots = self.policy.batch if isinstance(self.policy, Static) else self.policy.slots
        if not self.waiting or len(self.inside) + len(self.rows) >= slots:
            return None
        guest = self.waiting[0]
        if self.blocks:
            spare = int(self.blocks.spare * self.blocks.count)
            beside = max(self.growth(), spare) if self.inside else 0
            need = ceil(min(guest.tokens + 1, guest.most) / self.blocks.size)
            if need + beside > self.blocks.count - self.used():
                return None
        self.waiting.pop(0)
        self.inside.append(guest)
        guest.cached, guest.goal = 0, guest.tokens
        return guest

    def token(self, guest: Guest) -> None:
        guest.times.append(self.now)
        if len(guest.times) == guest.request.output:
            guest.outcome, guest.end_s = "finished", self.now
            self.inside.remove(guest)
            if isinstance(self.policy, Static):
                self.rows.append(guest)

    def decode(self, pieces: list[tuple[Guest, int]]) -> None:
        """One step of everybody who decodes, and these pieces; the last to come goes where blocks run out."""
        batch = self.decoding()
        if self.blocks and batch and self.used() + self.growth() > self.blocks.count:
            last = max(self.inside, key=lambda g: g.order)
            self.inside.remove(last)
            self.waiting.insert(0, last)
            return
        self.now += self.seconds(batch, pieces)
        live = [g for g in batch if g in self.inside]
        for guest in batch:
            guest.cached += 1
        for guest in live:
            self.token(guest)
        for guest, part in pieces:
            guest.cached += part
            if not guest.filling:
                self.token(guest)
        self.sweep()

    def seconds(self, batch: list[Guest], pieces: list[tuple[Guest, int]]) -> float:
        """Prompts in one step cost what as many equal ones would that make as many pairs of tokens."""
        kv, chunk = sum(g.cached for g in batch), sum(part for _, part in pieces)
        if not chunk:
            return self.costs.step_s(len(batch), kv)
        pairs = sum(part * g.cached + part * part / 2 for g, part in pieces)
        context = max(pairs / chunk - chunk / len(pieces) / 2, 0.0)
        return self.costs.step_s(len(batch), kv, chunk, context, len(pieces))

    def prefill(self, group: list[Guest]) -> None:
        self.now += self.seconds([], [(g, g.goal) for g in group])
        for guest in group:
            guest.cached = guest.goal
            self.token(guest)
        self.sweep()

    def continuous(self) -> bool:
        group: list[Guest] = []
        while len(group) < self.policy.prompts and (guest := self.admit()):
            group.append(guest)
        busy = bool(self.inside)
        if group:
            self.prefill(group)
        elif busy:
            self.decode([])
        return busy

    def chunked(self) -> bool:
        room, pieces = self.policy.budget - len(self.decoding()), []
        waiting = [g for g in self.inside if g.filling]
        while room > 0 and (guest := waiting.pop(0) if waiting else self.admit()):
            part = min(guest.goal - guest.cached, room)
            pieces.append((guest, part))
            room -= part
        busy = bool(self.inside)
        if busy:
            self.decode(pieces)
        return busy

    def static(self) -> bool:
        if self.inside:
            self.decode([])
            return True
        group: list[Guest] = []
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
            guest = self.admit()
            if guest is None:
                break
            group.append(guest)
        if group:
            self.prefill(group)
        return bool(group)


def play(requests, costs, policy, blocks=None) -> list[Guest]:
    return Naive(requests, costs, policy, blocks).play()
