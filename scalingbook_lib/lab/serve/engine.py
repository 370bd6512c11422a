"""How are many requests served at once? A small engine that really does it.

`Engine(weights, config)` takes requests at any time (`submit`). Every `step` lets in who finds a place, reads
some of the prompts, and writes one word of everybody else: continuous batching over a paged cache; without
`continuous` nobody gets in before everybody is out (static batches). With `chunk` a step reads at most so
many tokens, in one program with the words that it writes; without it whole prompts, and who writes waits.
With `reader`, prompts are read on devices of their own, and their blocks are moved. When blocks run out, the
youngest gives its own back and is read again later. What is over is kept until it is asked for with
`hand_over`: an engine that runs for long holds what is on its way alone. Chapter: Inference.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from scalingbook_lib.lab.serve.layout import Config
from scalingbook_lib.lab.serve.paging import OutOfBlocks
from scalingbook_lib.lab.serve.requests import EngineReport, EngineRequest, RequestState, Served
from scalingbook_lib.lab.serve.worker import CacheWrite, Worker
from scalingbook_lib.units import Result


class Engine(Result):
    """Requests in, words out; greedy, so that what is written depends on the prompt alone."""

    def __init__(
        self,
        weights: Mapping[str, Any],
        config: Config,
        *,
        chunk: int | None = None,
        prefix_cache: bool = True,
        reader: Config | None = None,
        continuous: bool = True,
    ) -> None:
        self.writer = Worker(weights, config, prefixes=prefix_cache and not reader)
        self.reader = Worker(weights, reader, prefixes=prefix_cache) if reader else self.writer
        self.chunk, self.continuous = chunk, continuous
        self.steps, self.read, self.moved, self.moved_bytes = 0, 0, 0, 0
        self.requests: dict[int, Served] = {}  # by ticket: all that were not handed over
        self._tickets, self._handed = 0, Counter[str]()
        self.waiting: list[Served] = []  # oldest first
        self.moving: list[Served] = []  # read elsewhere, without a place to write yet
        if reader and reader.block != config.block:
            both = f"blocks of {reader.block} tokens do not fit those of {config.block}"
            raise ValueError(f"{both}; make them equal")

    def submit(self, prompt: Sequence[int], limit: int) -> int:
        """Ask for up to `limit` words after a prompt: a ticket."""
        tokens = len(prompt) + limit - 1  # the last word is never read
        both = (self.reader, self.writer)
        most = min(min(w.config.tokens, w.pools[0].count * w.config.block) for w in both)
        if not len(prompt) or limit < 1 or tokens > most:
            raise ValueError(f"{len(prompt)} tokens and {limit} words: write 1 to {most} of both together")
        s = Served(self._tickets, EngineRequest(tuple(map(int, prompt)), limit, self.steps))
        self._tickets += 1
        self.requests[s.ticket] = s
        self.waiting.append(s)
        return s.ticket

    def cancel(self, ticket: int) -> None:
        """Nobody waits for it any more: its place and blocks are free at once."""
        s = self.of(ticket)
        if not s.over:
            self._out(s)
            s.state, s.ended = RequestState.CANCELED, self.steps

    def words(self, ticket: int) -> list[int]:
        """What is written so far."""
        return list(self.of(ticket).words)

    def of(self, ticket: int) -> Served:
        """The request of a ticket, on its way or over."""
        if not 0 <= ticket < self._tickets:
            raise ValueError(f"ticket {ticket}: {self._tickets} were given out; submit() gives the next")
        if ticket not in self.requests:
            raise ValueError(f"ticket {ticket} was handed over; keep what hand_over() gives")
        return self.requests[ticket]

    def hand_over(self, ticket: int) -> Served:
        """What became of a request that is over; the engine then keeps nothing of it but its counts."""
        s = self.of(ticket)
        if not s.over:
            raise ValueError(f"{s}: it is not over; take further steps, or cancel it first")
        self._handed.update(s.counts)
        return self.requests.pop(ticket)

    @property
    def busy(self) -> bool:
        """Is there anything left to do?"""
        return bool(self.waiting or self.reader.inside or self.writer.inside)

    def run(self, most: int = 100_000) -> EngineReport:
        """Step until everything is over."""
        for _ in range(most):
            if not self.busy:
                return self.report
            self.step()
        raise RuntimeError(f"{most} steps were not enough: {self.report}")

    def step(self) -> None:
        """Let in who finds a place; read; write one word of everybody who is read."""
        if self.continuous or not (self.reader.inside or self.writer.inside):
            self._admit()
        if self.chunk and self.reader is self.writer:
            self._mixed(self.chunk)
        else:
            self._prefill()
            self._move()
            self._write()
        self.steps += 1

    def _admit(self) -> None:
        """In the order of their tickets: where the first finds no place, nobody overtakes it."""
        while self.waiting and self._enter(self.waiting[0]):
            s = self.waiting.pop(0)
            s.state, s.admitted = RequestState.READING, self.steps if s.admitted is None else s.admitted

    def _enter(self, s: Served) -> bool:
        """A place in the group that knows most of its tokens, then in the one with most blocks."""
        at = self.reader
        open_to = [g for g in range(at.groups) if len(at.of(g)) < at.slots]
        known = {g: at.pools[g].find(s.tokens) for g in open_to}
        # a shared prefix is worth more than an empty group: its tokens are not read again
        for g in sorted(open_to, key=lambda g: (-len(known[g]), -at.pools[g].available, g)):
            if (blocks := at.pools[g].extended(known[g], len(s.tokens))) is not None:
                at.enter(s, g, blocks, len(known[g]) * at.config.block)
                s.reused += s.cached
                return True
        return False

    def _prefill(self) -> None:
        """The oldest prompt of each group, whole in a program of a power of two of tokens, or by chunks."""
        reading = [s for s in self.reader.inside if s.state is RequestState.READING]
        oldest = {s.group: s for s in reversed(reading)}.values()
        rows = [CacheWrite(s, s.cached, min(s.pending, self.chunk or s.pending)) for s in oldest]
        if rows:
            longest = max(row.count for row in rows)
            self._ran(self.reader, rows, T=self.chunk or 1 << (longest - 1).bit_length(), places=1)

    def _write(self) -> None:
        """One word of everybody who is read."""
        if rows := self._next_words():
            self._ran(self.writer, rows, T=1, places=self.writer.slots)

    def _mixed(self, chunk: int) -> None:
        """The words of all and a chunk of prompts, every token a row of its own, in one program."""
        rows, reads = self._next_words(), 0
        for g in range(self.writer.groups):
            left = chunk
            for s in self.writer.of(g):
                n = min(left, s.pending) if s.state is RequestState.READING else 0
                rows += [CacheWrite(s, s.cached + i, 1) for i in range(n)]
                left, reads = left - n, reads + n
        if rows:
            self._ran(self.writer, rows, T=1, places=self.writer.slots + chunk * bool(reads))

    def _next_words(self) -> list[CacheWrite]:
        """A row of each that writes, once it has a block for it."""
        for s in list(self.writer.inside):
            if s.state is RequestState.WRITING:
                self._grow(s)
        return [CacheWrite(s, s.cached, 1) for s in self.writer.inside if s.state is RequestState.WRITING]

    def _grow(self, s: Served) -> None:
        """A block for its next token; where there is none the youngest of its group goes, perhaps itself."""
        pool = self.writer.pools[s.group]
        while s.blocks and pool.needed(s.cached + 1) > len(s.blocks):
            try:
                s.blocks += pool.take(1)
            except OutOfBlocks:
                self._preempt(self.writer.of(s.group)[-1])

    def _preempt(self, s: Served) -> None:
        """It gives its place back, and waits as long as it is older than others that wait."""
        self._out(s)
        s.state, s.preemptions = RequestState.WAITING, s.preemptions + 1
        self.waiting = sorted([*self.waiting, s], key=lambda s: s.ticket)

    def _ran(self, at: Worker, rows: list[CacheWrite], *, T: int, places: int) -> None:
        """Run the rows; each sequence has more in the cache, and perhaps a new word."""
        for row, word in zip(rows, at.run(rows, T=T, places=places), strict=True):
            s, last = row.of, row.last
            s.cached += row.count
            self.read += row.count
            at.learn(s)
            if last:
                self._wrote(s, word)

    def _wrote(self, s: Served, word: int) -> None:
        """A new word; after its prompt is read a sequence writes, here or elsewhere."""
        s.words.append(word)
        s.first = self.steps if s.first is None else s.first
        if len(s.words) == s.request.limit:
            self._out(s)
            s.state, s.ended = RequestState.DONE, self.steps
        elif s.state is RequestState.READING:
            s.state = RequestState.WRITING if self.reader is self.writer else RequestState.MOVING
            self.moving += [s] if s.state is RequestState.MOVING else []

    def _move(self) -> None:
        """Caches of prompts that are read, to the devices that write, in order, as there are places."""
        self.moving.sort(key=lambda s: s.ticket)
        while self.moving and self._received(self.moving[0]):
            s = self.moving.pop(0)
            s.state, self.moved = RequestState.WRITING, self.moved + 1

    def _received(self, s: Served) -> bool:
        to, n = self.writer, len(s.blocks)
        open_to = [g for g in range(to.groups) if len(to.of(g)) < to.slots and to.pools[g].available >= n]
        if not open_to:
            return False
        g = max(open_to, key=lambda g: to.pools[g].available)
        blocks, cached, sent = to.pools[g].take(n), s.cached, self.reader.send(s)
        self.reader.leave(s)
        to.receive(sent, g, blocks)
        to.enter(s, g, blocks, cached)
        self.moved_bytes += n * to.block_bytes
        return True

    def _out(self, s: Served) -> None:
        """Out of wherever it is."""
        for worker in (self.reader, self.writer):
            if s in worker.inside:
                worker.leave(s)
        self.waiting, self.moving = ([o for o in line if o is not s] for line in (self.waiting, self.moving))

    @property
    def report(self) -> EngineReport:
        """What it did so far."""
        workers = {id(w): w for w in (self.reader, self.writer)}.values()
        counts = sum((Counter(s.counts) for s in self.requests.values()), self._handed)
        return EngineReport(
            steps=self.steps,
            done=counts["done"],
            canceled=counts["canceled"],
            words=counts["words"],
            read=self.read,
            found=counts["found"],
            preemptions=counts["preemptions"],
            evictions=sum(pool.evictions for w in workers for pool in w.pools),
            moved=self.moved,
            moved_bytes=self.moved_bytes,
            programs=sum(len(w.ran) for w in workers),
            flops=sum(w.flops for w in workers),
        )

    def __str__(self) -> str:
        return str(self.report)
