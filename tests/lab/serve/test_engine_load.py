"""Two thousand requests, more than there is room for, some of them given up: none lost, starved or mixed."""

import dataclasses
import functools

import numpy as np
import pytest
from writing import CLOSE, weights, written

from scalingbook_lib import models
from scalingbook_lib.lab.serve import requests
from scalingbook_lib.lab.serve.engine import Engine
from scalingbook_lib.lab.serve.layout import Config, beside
from scalingbook_lib.lab.serve.requests import RequestState

COUNT, WORDS, GIVEN_UP = 2000, (1, 8), 0.1
PATIENCE = 60  # steps: from its place to its last word, whatever comes after it
MICRO = models.Transformer(name="micro", D=32, L=2, V=64, N=8, K=4, H=8, F=64)
CONFIG = Config(MICRO, {"Z": 2, "Y": 2}, sequences=48, tokens=24, blocks=80, block=4)  # 24 find room


@functools.cache
def asked():
    """Requests with their words: no prompt twice, every word leads clearly, a third begin as others do."""
    drawn = np.random.default_rng(5)
    starts = drawn.integers(64, size=(6, 8)).tolist()
    found = list(requests.load(2300, per_step=5, prompt=(2, 16), words=WORDS, vocabulary=64, seed=4))
    for i in range(0, len(found), 3):
        r = found[i]
        found[i] = requests.EngineRequest((*starts[i % 6], *r.prompt[:8]), r.limit, r.arrival)
    words, lead = written(MICRO, [r.prompt for r in found], WORDS[1])
    kept = {r.prompt: (r, row) for r, row, by in zip(found, words.tolist(), lead, strict=True) if by > CLOSE}
    in_order = sorted(kept.values(), key=lambda one: one[0].arrival)
    return [(r, row[: r.limit]) for r, row in in_order][:COUNT]


def given_up():
    """At which step who is given up: before its first word, while it is written, or when it is over."""
    drawn = np.random.default_rng(6)
    return {
        (ticket, request.arrival + int(drawn.integers(120)))
        for ticket, (request, _) in enumerate(asked())
        if drawn.random() < GIVEN_UP
    }


def play(engine):
    """Submit and cancel as time goes by, until all is over: how many waited at most."""
    coming, leaving, longest = list(asked())[::-1], sorted(given_up(), key=lambda one: -one[1]), 0
    while coming or engine.busy:
        while coming and coming[-1][0].arrival <= engine.steps:
            request, _ = coming.pop()
            engine.submit(request.prompt, request.limit)
        while leaving and leaving[-1][1] <= engine.steps:
            engine.cancel(leaving.pop()[0])
        engine.step()
        longest = max(longest, len(engine.waiting))
    return longest


@pytest.fixture(scope="module", params=["chunks", "apart"])
def played(request):
    """An engine that is through with all of them, and how many waited for it at most."""
    config = dataclasses.replace(CONFIG, blocks=40) if request.param == "apart" else CONFIG
    reader = beside(CONFIG, {"Z": 4}) if request.param == "apart" else None
    engine = Engine(weights(MICRO), config, chunk=16, reader=reader)
    return engine, play(engine)


def test_there_was_more_than_it_could_hold(played):
    engine, longest = played
    assert longest > 4 * CONFIG.sequences
    assert engine.report.preemptions > 100
    assert engine.report.found > COUNT
    assert engine.report.evictions > COUNT


def test_none_is_lost(played):
    engine, _ = played
    gone = {ticket for ticket, _ in given_up()}
    assert len(engine.requests) == COUNT
    assert engine.report.done + engine.report.canceled == COUNT
    assert COUNT - len(gone) <= engine.report.done < COUNT
    assert all(s.ticket in gone for s in engine.requests.values() if s.state is RequestState.CANCELED)
    for worker in (engine.reader, engine.writer):
        assert not worker.inside
        assert all(pool.available == pool.count and not any(pool.holders) for pool in worker.pools)


def test_none_gets_the_words_of_another(played):
    for s, (request, words) in zip(played[0].requests.values(), asked(), strict=True):
        assert s.request.prompt == request.prompt
        assert s.words == (words if s.state is RequestState.DONE else words[: len(s.words)])


def test_none_starves(played):
    inside = [s for s in played[0].requests.values() if s.admitted is not None]
    assert [s.admitted for s in inside] == sorted(s.admitted for s in inside)
    assert max(s.ended - s.admitted for s in inside) < PATIENCE
    assert all(s.first >= s.admitted >= s.request.arrival for s in inside if s.words)


def test_some_were_given_up_at_every_stage(played):
    canceled = [s for s in played[0].requests.values() if s.state is RequestState.CANCELED]
    assert any(s.admitted is None for s in canceled)
    assert any(s.admitted is not None and not s.words for s in canceled)
    assert any(s.words for s in canceled)
