"""A serving engine that takes requests and generates tokens by greedy decoding.

`Engine(weights, config)` accepts requests at any time (`submit`). Every `step` admits requests to free slots,
prefills some of the prompts, and decodes one token of every other sequence: continuous batching over a paged
cache. Without `continuous`, no request is admitted before all running ones are done (static batching). With
`chunk`, a step prefills at most that many tokens, in the program that also decodes (chunked prefill); without
it a step prefills whole prompts while decoding waits. With `prefill`, prompts are prefilled on separate
devices, and their blocks are transferred (disaggregation). When blocks run out, the youngest sequence is
preempted and prefilled again later. A finished request is stored until `pop` returns it, so the memory of a
long-running engine does not grow. Chapter: Inference.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from scalingbook_lab.serve.layout import Config
from scalingbook_lab.serve.paging import OutOfBlocks
from scalingbook_lab.serve.requests import EngineReport, EngineRequest, RequestState, ServedRequest
from scalingbook_lab.serve.worker import CacheWrite, Worker
from scalingbook_lib.units import Result


class Engine(Result):
    """An engine that decodes greedily, so the output depends on the prompt alone."""

    def __init__(
        self,
        weights: Mapping[str, Any],
        config: Config,
        *,
        chunk: int | None = None,
        prefix_cache: bool = True,
        prefill: Config | None = None,
        continuous: bool = True,
    ) -> None:
        self.decode_worker = Worker(weights, config, share_prefixes=prefix_cache and not prefill)
        self.prefill_worker = (
            Worker(weights, prefill, share_prefixes=prefix_cache) if prefill else self.decode_worker
        )
        self.chunk, self.continuous = chunk, continuous
        self.steps, self.computed, self.transfers, self.transfer_bytes = 0, 0, 0, 0
        self.requests: dict[int, ServedRequest] = {}  # by ticket: all requests that have not been popped
        self._tickets, self._popped = 0, Counter[str]()
        self.waiting: list[ServedRequest] = []  # oldest first
        self.transferring: list[ServedRequest] = []  # prefilled on other devices, waiting for a decode slot
        if prefill and prefill.block != config.block:
            sizes = f"blocks of {prefill.block} tokens do not fit those of {config.block}"
            raise ValueError(f"{sizes}; make them equal")

    def submit(self, prompt: Sequence[int], limit: int) -> int:
        """Queue a request for up to `limit` tokens after a prompt, and return its ticket.

        Raises ValueError if the prompt and the limit do not fit in a sequence's cache.
        """
        tokens = len(prompt) + limit - 1  # the last output token is never cached
        workers = (self.prefill_worker, self.decode_worker)
        longest = min(min(w.config.tokens, w.pools[0].count * w.config.block) for w in workers)
        if not len(prompt) or limit < 1 or tokens > longest:
            asked = f"a prompt of {len(prompt)} tokens and an output of {limit}"
            raise ValueError(f"{asked}: give at least one of each and at most {longest} of both together")
        s = ServedRequest(self._tickets, EngineRequest(tuple(map(int, prompt)), limit, self.steps))
        self._tickets += 1
        self.requests[s.ticket] = s
        self.waiting.append(s)
        return s.ticket

    def cancel(self, ticket: int) -> None:
        """Cancel a request and free its slot and blocks at once."""
        s = self.request(ticket)
        if not s.over:
            self._remove(s)
            s.state, s.ended = RequestState.CANCELED, self.steps

    def output(self, ticket: int) -> list[int]:
        """Return the tokens that a request has generated so far."""
        return list(self.request(ticket).output)

    def request(self, ticket: int) -> ServedRequest:
        """Return the request of a ticket. Raises ValueError if the ticket is unknown or was popped."""
        if not 0 <= ticket < self._tickets:
            raise ValueError(f"ticket {ticket}: {self._tickets} were given out; submit() gives the next")
        if ticket not in self.requests:
            raise ValueError(f"ticket {ticket} was popped; keep what pop() returns")
        return self.requests[ticket]

    def pop(self, ticket: int) -> ServedRequest:
        """Return a finished request and drop it from the engine, except for its counts.

        Raises ValueError if the request is not finished.
        """
        s = self.request(ticket)
        if not s.over:
            raise ValueError(f"{s}: it is not over; take further steps, or cancel it first")
        self._popped.update(s.counts)
        return self.requests.pop(ticket)

    @property
    def busy(self) -> bool:
        """Whether any request is waiting or running."""
        return bool(self.waiting or self.prefill_worker.running or self.decode_worker.running)

    def run(self, limit: int = 100_000) -> EngineReport:
        """Step until all requests are finished, and return the report. Raises RuntimeError after `limit`
        steps.
        """
        for _ in range(limit):
            if not self.busy:
                return self.report
            self.step()
        raise RuntimeError(f"{limit} steps were not enough: {self.report}")

    def step(self) -> None:
        """Run one step: admit requests, prefill prompts, and decode one token of every prefilled sequence."""
        if self.continuous or not (self.prefill_worker.running or self.decode_worker.running):
            self._admit()
        if self.chunk and self.prefill_worker is self.decode_worker:
            self._mixed(self.chunk)
        else:
            self._prefill()
            self._transfer()
            self._decode()
        self.steps += 1

    def _admit(self) -> None:
        """Admit requests in ticket order; if the oldest finds no slot, no other overtakes it."""
        while self.waiting and self._place(self.waiting[0]):
            s = self.waiting.pop(0)
            s.state, s.admitted = RequestState.PREFILL, self.steps if s.admitted is None else s.admitted

    def _place(self, s: ServedRequest) -> bool:
        """Place a request in the group that caches most of its tokens, preferring more free blocks on a tie.

        Returns whether a group had a slot and enough blocks.
        """
        worker = self.prefill_worker
        open_groups = [g for g in range(worker.groups) if len(worker.in_group(g)) < worker.slots]
        known = {g: worker.pools[g].match(s.tokens) for g in open_groups}
        # a shared prefix is worth more than an empty group, because its tokens are not recomputed
        for g in sorted(open_groups, key=lambda g: (-len(known[g]), -worker.pools[g].available, g)):
            if (blocks := worker.pools[g].extend(known[g], len(s.tokens))) is not None:
                worker.add(s, g, blocks, len(known[g]) * worker.config.block)
                s.prefix_hits += s.cached
                return True
        return False

    def _prefill(self) -> None:
        """Prefill the oldest prompt of each group.

        A whole prompt runs in a program whose number of tokens is a power of two; otherwise one chunk of it
        runs.
        """
        prefilling = [s for s in self.prefill_worker.running if s.state is RequestState.PREFILL]
        oldest = {s.group: s for s in reversed(prefilling)}.values()
        rows = [CacheWrite(s, s.cached, min(s.pending, self.chunk or s.pending)) for s in oldest]
        if rows:
            longest = max(row.count for row in rows)
            T = self.chunk or 1 << (longest - 1).bit_length()
            self._run(self.prefill_worker, rows, T=T, rows_per_group=1)

    def _decode(self) -> None:
        """Decode one token of every decoding sequence."""
        if rows := self._decode_rows():
            self._run(self.decode_worker, rows, T=1, rows_per_group=self.decode_worker.slots)

    def _mixed(self, chunk: int) -> None:
        """Decode one token of every decoding sequence and prefill a chunk of prompts, in one program.

        Every token is a row of its own.
        """
        rows, prefilled = self._decode_rows(), 0
        for g in range(self.decode_worker.groups):
            left = chunk
            for s in self.decode_worker.in_group(g):
                n = min(left, s.pending) if s.state is RequestState.PREFILL else 0
                rows += [CacheWrite(s, s.cached + i, 1) for i in range(n)]
                left, prefilled = left - n, prefilled + n
        if rows:
            rows_per_group = self.decode_worker.slots + chunk * bool(prefilled)
            self._run(self.decode_worker, rows, T=1, rows_per_group=rows_per_group)

    def _decode_rows(self) -> list[CacheWrite]:
        """Return a row for each decoding sequence, once it has a block for its next token."""
        for s in list(self.decode_worker.running):
            if s.state is RequestState.DECODE:
                self._grow(s)
        return [
            CacheWrite(s, s.cached, 1) for s in self.decode_worker.running if s.state is RequestState.DECODE
        ]

    def _grow(self, s: ServedRequest) -> None:
        """Allocate a block for a sequence's next token, preempting the youngest sequences of its group if
        necessary.
        """
        pool = self.decode_worker.pools[s.group]
        while s.blocks and pool.needed(s.cached + 1) > len(s.blocks):
            try:
                s.blocks += pool.allocate(1)
            except OutOfBlocks:
                self._preempt(self.decode_worker.in_group(s.group)[-1])

    def _preempt(self, s: ServedRequest) -> None:
        """Release a sequence's slot and blocks, and queue it again by its ticket."""
        self._remove(s)
        s.state, s.preemptions = RequestState.WAITING, s.preemptions + 1
        self.waiting = sorted([*self.waiting, s], key=lambda s: s.ticket)

    def _run(self, worker: Worker, rows: list[CacheWrite], *, T: int, rows_per_group: int) -> None:
        """Run the rows, advance each sequence's cached tokens, and append the new tokens."""
        for row, token in zip(rows, worker.run(rows, T=T, rows_per_group=rows_per_group), strict=True):
            s, last = row.request, row.last
            s.cached += row.count
            self.computed += row.count
            worker.register(s)
            if last:
                self._append(s, token)

    def _append(self, s: ServedRequest, token: int) -> None:
        """Append a new token; a sequence whose prompt is prefilled starts to decode, here or on other
        devices.
        """
        s.output.append(token)
        s.first_token = self.steps if s.first_token is None else s.first_token
        if len(s.output) == s.request.limit:
            self._remove(s)
            s.state, s.ended = RequestState.DONE, self.steps
        elif s.state is RequestState.PREFILL:
            s.state = (
                RequestState.DECODE if self.prefill_worker is self.decode_worker else RequestState.TRANSFER
            )
            self.transferring += [s] if s.state is RequestState.TRANSFER else []

    def _transfer(self) -> None:
        """Transfer the caches of prefilled prompts to the decode devices, in order, as slots become free."""
        self.transferring.sort(key=lambda s: s.ticket)
        while self.transferring and self._try_transfer(self.transferring[0]):
            s = self.transferring.pop(0)
            s.state, self.transfers = RequestState.DECODE, self.transfers + 1

    def _try_transfer(self, s: ServedRequest) -> bool:
        """Transfer the cache of one sequence; return whether there was a slot with enough blocks."""
        to, n = self.decode_worker, len(s.blocks)
        open_groups = [g for g in range(to.groups) if len(to.in_group(g)) < to.slots]
        open_groups = [g for g in open_groups if to.pools[g].available >= n]
        if not open_groups:
            return False
        g = max(open_groups, key=lambda g: to.pools[g].available)
        blocks, cached, sent = to.pools[g].allocate(n), s.cached, self.prefill_worker.send(s)
        self.prefill_worker.remove(s)
        to.receive(sent, g, blocks)
        to.add(s, g, blocks, cached)
        self.transfer_bytes += n * to.block_bytes
        return True

    def _remove(self, s: ServedRequest) -> None:
        """Remove a request from the queue or worker that holds it."""
        for worker in (self.prefill_worker, self.decode_worker):
            if s in worker.running:
                worker.remove(s)
        queues = (self.waiting, self.transferring)
        self.waiting, self.transferring = ([other for other in queue if other is not s] for queue in queues)

    @property
    def report(self) -> EngineReport:
        """Return what the engine has done so far."""
        workers = {id(w): w for w in (self.prefill_worker, self.decode_worker)}.values()
        counts = sum((Counter(s.counts) for s in self.requests.values()), self._popped)
        return EngineReport(
            steps=self.steps,
            done=counts["done"],
            canceled=counts["canceled"],
            output=counts["output"],
            computed=self.computed,
            prefix_hits=counts["prefix_hits"],
            preemptions=counts["preemptions"],
            evictions=sum(pool.evictions for w in workers for pool in w.pools),
            transfers=self.transfers,
            transfer_bytes=self.transfer_bytes,
            programs=sum(len(w.runs) for w in workers),
            flops=sum(w.flops for w in workers),
        )

    def __str__(self) -> str:
        return str(self.report)
