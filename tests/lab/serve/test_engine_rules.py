"""Random submissions, cancellations and steps keep the scheduler's invariants.

A cache of plain numbers replaces the devices: it records which token each slot holds, and a row that reads
another sequence's token fails at once.
"""

import contextlib
import functools
import pickle

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from writing import TINY

from scalingbook_lab.serve import engine
from scalingbook_lab.serve.layout import Config
from scalingbook_lab.serve.requests import RequestState
from scalingbook_lab.serve.worker import Worker
from tests.core import repeatable

BLOCK, TOKENS = 2, 10


class Plain(Worker):
    """A worker whose next token is the sum of all tokens so far, modulo 3."""

    def __init__(self, weights, config, *, share_prefixes=True):
        self._set_up(config, share_prefixes)
        self.memory = {}

    def run(self, rows, *, T, rows_per_group):
        rows = list(rows)
        for group in range(self.groups):
            assert sum(row.request.group == group for row in rows) <= rows_per_group
        for row in rows:  # all are written before any is read
            assert 0 < row.count <= T
            for at in range(row.first, row.first + row.count):
                self.memory[self.place(row.request, at)] = row.request.tokens[at]
        self.runs[T, self.groups * rows_per_group] += 1
        return [self.word(row) for row in rows]

    def place(self, s, at):
        return s.group, s.blocks[at // BLOCK], at % BLOCK

    def word(self, row):
        end = row.first + row.count
        read = [self.memory[self.place(row.request, at)] for at in range(end)]
        assert read == list(row.request.tokens[:end]), "these are another's tokens"
        return sum(read) % 3

    def send(self, s):
        return [[self.memory.get((s.group, block, i)) for i in range(BLOCK)] for block in s.blocks]

    def receive(self, blocks, group, to):
        self.memory |= {(group, b, i): t for b, of in zip(to, blocks, strict=True) for i, t in enumerate(of)}

    @property
    def block_bytes(self):
        return 1

    @property
    def flops(self):
        return 0


def words(prompt, limit):
    tokens = list(prompt)
    for _ in range(limit):
        tokens.append(sum(tokens) % 3)
    return tokens[len(prompt) :]


def plain(config, **how):
    """An engine with plain workers."""
    real, engine.Worker = engine.Worker, Plain
    try:
        return engine.Engine({}, config, **how)
    finally:
        engine.Worker = real


class Requests(RuleBasedStateMachine):
    """Any engine, operated in any order."""

    @initialize(
        groups=st.integers(1, 2), slots=st.integers(1, 3), blocks=st.integers(5, 9), apart=st.booleans(),
        chunk=st.sampled_from([None, 1, 3]), prefixes=st.booleans(), continuous=st.booleans(),
    )  # fmt: skip
    def start(self, groups, slots, blocks, apart, chunk, prefixes, continuous):
        config = functools.partial(Config, TINY, tokens=TOKENS, block=BLOCK)
        one = config({"Z": groups}, sequences=groups * slots, blocks=groups * blocks)
        prefill = config({"Z": 1}, sequences=slots, blocks=5) if apart else None
        self.engine = plain(one, chunk=chunk, prefix_cache=prefixes, prefill=prefill, continuous=continuous)

    @rule(prompt=st.lists(st.integers(0, 1), min_size=1, max_size=7), limit=st.integers(1, 4))
    def come(self, prompt, limit):
        self.engine.submit(prompt, limit)

    @precondition(lambda self: self.engine.requests)
    @rule(data=st.data())
    def go(self, data):
        self.engine.cancel(data.draw(st.sampled_from(sorted(self.engine.requests))))

    @precondition(lambda self: any(s.over for s in self.engine.requests.values()))
    @rule(data=st.data())
    def hand_over(self, data):
        over = [s for s in self.engine.requests.values() if s.over]
        one, before = data.draw(st.sampled_from(over)), self.engine.report
        assert self.engine.pop(one.ticket) is one
        assert self.engine.report == before
        with pytest.raises(ValueError, match="was popped"):
            self.engine.output(one.ticket)

    @precondition(lambda self: self.engine.busy)
    @rule()
    def step(self):
        before = self.progress()
        self.engine.step()
        assert self.progress() > before, "a step in which nothing happened"

    def progress(self):
        """The progress of each request, oldest first: every step increases it."""
        return [
            (s.over, s.admitted is not None, len(s.output), s.cached) for s in self.engine.requests.values()
        ]

    @invariant()
    def blocks_are_held_by_those_inside_alone(self):
        for worker in {id(w): w for w in (self.engine.prefill_worker, self.engine.decode_worker)}.values():
            for group, pool in enumerate(worker.pools):
                held = [b for s in worker.in_group(group) for b in s.blocks]
                assert pool.references == [held.count(b) for b in range(pool.count)]
                assert pool.available == sum(n == 0 for n in pool.references)
                assert (
                    len({s.slot for s in worker.in_group(group)})
                    == len(worker.in_group(group))
                    <= worker.slots
                )

    @invariant()
    def everybody_is_in_one_place(self):
        one = self.engine
        lines = [one.waiting, one.prefill_worker.running] + [one.decode_worker.running] * (
            one.decode_worker is not one.prefill_worker
        )
        found = sorted(s.ticket for line in lines for s in line)
        assert found == [s.ticket for s in one.requests.values() if not s.over]
        for line in lines:  # who gave way is older than others that wait, and goes before them
            assert [s.ticket for s in line] == sorted(s.ticket for s in line)

    @invariant()
    def what_is_written_is_right_so_far(self):
        for s in self.engine.requests.values():
            assert s.output == words(s.request.prompt, s.request.limit)[: len(s.output)]
            assert (s.state is RequestState.DONE) == (len(s.output) == s.request.limit)

    def teardown(self):
        if hasattr(self, "engine"):
            self.engine.run(2000)
            admitted = [s.admitted for s in self.engine.requests.values() if s.admitted is not None]
            assert admitted == sorted(admitted)
            assert all(s.over for s in self.engine.requests.values())


TestRequests = Requests.TestCase
TestRequests.settings = repeatable.examples(150, stateful_step_count=40, deadline=None)


def test_a_popped_request_takes_no_memory():
    """Three times the requests take no more memory; unpopped ones would stay."""
    one, sizes = plain(Config(TINY, {"Z": 1}, sequences=2, tokens=TOKENS, blocks=8, block=BLOCK)), []
    for _ in range(2):
        for n in range(len(sizes) * 200 + 100):
            ticket = one.submit([n % 2, n % 3], 1 + n % 4)
            if n % 7 == 0:
                one.cancel(ticket)
            with pytest.raises(ValueError, match="is not over") if n % 7 else contextlib.nullcontext():
                one.pop(ticket)
            one.run()
            if n % 7:
                assert one.pop(ticket).output == words([n % 2, n % 3], 1 + n % 4)
        assert not one.requests
        sizes.append(
            len(
                pickle.dumps(
                    (vars(one) | {"decode_worker": None, "prefill_worker": None}, one.decode_worker.pools)
                )
            )
        )
    assert one.report.done + one.report.canceled == 400
    assert sizes[1] < 1.05 * sizes[0]
