"""Requests come, are given up, are stepped in any order: the scheduler keeps its promises, whoever computes.

A cache of plain numbers takes the place of the devices: it knows which token each place has, and a row that
reads a place with another sequence's token fails at once.
"""

import contextlib
import functools
import pickle

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from writing import TINY

from scalingbook_lib.lab.serve import engine
from scalingbook_lib.lab.serve.layout import Config
from scalingbook_lib.lab.serve.requests import RequestState
from scalingbook_lib.lab.serve.worker import Worker
from tests.core import repeatable

BLOCK, TOKENS = 2, 10


class Plain(Worker):
    """A worker whose next word is the sum of all tokens so far, modulo 3."""

    def __init__(self, weights, config, *, prefixes=True):
        self._set_up(config, prefixes)
        self.memory = {}

    def run(self, rows, *, T, places):
        rows = list(rows)
        for group in range(self.groups):
            assert sum(row.of.group == group for row in rows) <= places
        for row in rows:  # all are written before any is read
            assert 0 < row.count <= T
            for at in range(row.first, row.first + row.count):
                self.memory[self.place(row.of, at)] = row.of.tokens[at]
        self.ran[T, self.groups * places] += 1
        return [self.word(row) for row in rows]

    def place(self, s, at):
        return s.group, s.blocks[at // BLOCK], at % BLOCK

    def word(self, row):
        end = row.first + row.count
        read = [self.memory[self.place(row.of, at)] for at in range(end)]
        assert read == list(row.of.tokens[:end]), "these are another's tokens"
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
    """An engine whose workers are plain."""
    real, engine.Worker = engine.Worker, Plain
    try:
        return engine.Engine({}, config, **how)
    finally:
        engine.Worker = real


class Requests(RuleBasedStateMachine):
    """Any engine, asked in any order."""

    @initialize(
        groups=st.integers(1, 2), slots=st.integers(1, 3), blocks=st.integers(5, 9), apart=st.booleans(),
        chunk=st.sampled_from([None, 1, 3]), prefixes=st.booleans(), continuous=st.booleans(),
    )  # fmt: skip
    def start(self, groups, slots, blocks, apart, chunk, prefixes, continuous):
        config = functools.partial(Config, TINY, tokens=TOKENS, block=BLOCK)
        one = config({"Z": groups}, sequences=groups * slots, blocks=groups * blocks)
        reader = config({"Z": 1}, sequences=slots, blocks=5) if apart else None
        self.engine = plain(one, chunk=chunk, prefix_cache=prefixes, reader=reader, continuous=continuous)

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
        assert self.engine.hand_over(one.ticket) is one
        assert self.engine.report == before
        with pytest.raises(ValueError, match="was handed over"):
            self.engine.words(one.ticket)

    @precondition(lambda self: self.engine.busy)
    @rule()
    def step(self):
        before = self.progress()
        self.engine.step()
        assert self.progress() > before, "a step in which nothing happened"

    def progress(self):
        """What the oldest of all has: in every step it gains."""
        return [
            (s.over, s.admitted is not None, len(s.words), s.cached) for s in self.engine.requests.values()
        ]

    @invariant()
    def blocks_are_held_by_those_inside_alone(self):
        for worker in {id(w): w for w in (self.engine.reader, self.engine.writer)}.values():
            for group, pool in enumerate(worker.pools):
                held = [b for s in worker.of(group) for b in s.blocks]
                assert pool.holders == [held.count(b) for b in range(pool.count)]
                assert pool.available == sum(n == 0 for n in pool.holders)
                assert len({s.slot for s in worker.of(group)}) == len(worker.of(group)) <= worker.slots

    @invariant()
    def everybody_is_in_one_place(self):
        one = self.engine
        lines = [one.waiting, one.reader.inside] + [one.writer.inside] * (one.writer is not one.reader)
        found = sorted(s.ticket for line in lines for s in line)
        assert found == [s.ticket for s in one.requests.values() if not s.over]
        for line in lines:  # who gave way is older than others that wait, and goes before them
            assert [s.ticket for s in line] == sorted(s.ticket for s in line)

    @invariant()
    def what_is_written_is_right_so_far(self):
        for s in self.engine.requests.values():
            assert s.words == words(s.request.prompt, s.request.limit)[: len(s.words)]
            assert (s.state is RequestState.DONE) == (len(s.words) == s.request.limit)

    def teardown(self):
        if hasattr(self, "engine"):
            self.engine.run(2000)
            admitted = [s.admitted for s in self.engine.requests.values() if s.admitted is not None]
            assert admitted == sorted(admitted)
            assert all(s.over for s in self.engine.requests.values())


TestRequests = Requests.TestCase
TestRequests.settings = repeatable.examples(150, stateful_step_count=40, deadline=None)


def test_what_is_handed_over_is_kept_no_longer():
    """Three times the requests take no more room; without it every answer stays."""
    one, sizes = plain(Config(TINY, {"Z": 1}, sequences=2, tokens=TOKENS, blocks=8, block=BLOCK)), []
    for _ in range(2):
        for n in range(len(sizes) * 200 + 100):
            ticket = one.submit([n % 2, n % 3], 1 + n % 4)
            if n % 7 == 0:
                one.cancel(ticket)
            with pytest.raises(ValueError, match="is not over") if n % 7 else contextlib.nullcontext():
                one.hand_over(ticket)
            one.run()
            if n % 7:
                assert one.hand_over(ticket).words == words([n % 2, n % 3], 1 + n % 4)
        assert not one.requests
        sizes.append(len(pickle.dumps((vars(one) | {"writer": None, "reader": None}, one.writer.pools))))
    assert one.report.done + one.report.canceled == 400
    assert sizes[1] < 1.05 * sizes[0]
