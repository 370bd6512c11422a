"""Two thousand requests, more than fit at once, some canceled: none is lost, starved or mixed up."""

import dataclasses
import functools

import numpy as np
import pytest
from writing import CLOSE, weights, written

from scalingbook_lab.serve import requests
from scalingbook_lab.serve.engine import Engine
from scalingbook_lab.serve.layout import Config, on_other_devices
from scalingbook_lab.serve.requests import RequestState
from scalingbook_lib import models

COUNT, WORDS, GIVEN_UP = 2000, (1, 8), 0.1
PATIENCE = 60  # steps: from its place to its last word, whatever comes after it
MICRO = models.Transformer(name="micro", D=32, L=2, V=64, N=8, K=4, H=8, F=64)
CONFIG = Config(MICRO, {"Z": 2, "Y": 2}, sequences=48, tokens=24, blocks=80, block=4)  # 24 find room


@functools.cache
def asked():
    """Requests with their outputs: distinct prompts, clear choices of
    tokens, a third with common prefixes.
    """
    drawn = np.random.default_rng(5)
    starts = drawn.integers(64, size=(6, 8)).tolist()
    found = list(requests.load(2300, per_step=5, prompt=(2, 16), output=WORDS, vocabulary=64, seed=4))
    for i in range(0, len(found), 3):
        r = found[i]
        found[i] = requests.EngineRequest((*starts[i % 6], *r.prompt[:8]), r.limit, r.arrival)
    words, lead = written(MICRO, [r.prompt for r in found], WORDS[1])
    kept = {r.prompt: (r, row) for r, row, by in zip(found, words.tolist(), lead, strict=True) if by > CLOSE}
    in_order = sorted(kept.values(), key=lambda one: one[0].arrival)
    return [(r, row[: r.limit]) for r, row in in_order][:COUNT]


def given_up():
    """(ticket, step) of cancellations: before the first token, during decoding, or afterwards."""
    drawn = np.random.default_rng(6)
    return {
        (ticket, request.arrival + int(drawn.integers(120)))
        for ticket, (request, _) in enumerate(asked())
        if drawn.random() < GIVEN_UP
    }


def play(engine):
    """Submit and cancel requests over time until all are finished; the longest queue."""
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
    """An engine that has finished all requests, and its longest queue."""
    config = dataclasses.replace(CONFIG, blocks=40) if request.param == "apart" else CONFIG
    prefill = on_other_devices(CONFIG, {"Z": 4}) if request.param == "apart" else None
    engine = Engine(weights(MICRO), config, chunk=16, prefill=prefill)
    return engine, play(engine)


def test_the_load_exceeds_the_capacity_of_the_engine(played):
    engine, longest = played
    assert longest > 4 * CONFIG.sequences
    assert engine.report.preemptions > 100
    assert engine.report.prefix_hits > COUNT
    assert engine.report.evictions > COUNT


def test_every_request_is_finished_or_canceled(played):
    engine, _ = played
    gone = {ticket for ticket, _ in given_up()}
    assert len(engine.requests) == COUNT
    assert engine.report.done + engine.report.canceled == COUNT
    assert COUNT - len(gone) <= engine.report.done < COUNT
    assert all(s.ticket in gone for s in engine.requests.values() if s.state is RequestState.CANCELED)
    for worker in (engine.prefill_worker, engine.decode_worker):
        assert not worker.running
        assert all(pool.available == pool.count and not any(pool.references) for pool in worker.pools)


def test_every_request_gets_its_own_tokens(played):
    for s, (request, words) in zip(played[0].requests.values(), asked(), strict=True):
        assert s.request.prompt == request.prompt
        assert s.output == (words if s.state is RequestState.DONE else words[: len(s.output)])


def test_no_request_waits_longer_than_a_bound(played):
    inside = [s for s in played[0].requests.values() if s.admitted is not None]
    assert [s.admitted for s in inside] == sorted(s.admitted for s in inside)
    assert max(s.ended - s.admitted for s in inside) < PATIENCE
    assert all(s.first_token >= s.admitted >= s.request.arrival for s in inside if s.output)


def test_requests_are_canceled_at_every_stage(played):
    canceled = [s for s in played[0].requests.values() if s.state is RequestState.CANCELED]
    assert any(s.admitted is None for s in canceled)
    assert any(s.admitted is not None and not s.output for s in canceled)
    assert any(s.output for s in canceled)
