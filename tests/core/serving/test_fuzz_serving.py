"""Whoever comes, whatever the policy: laws that a served queue must keep."""

import math
from itertools import pairwise

import pytest
from naive_server import play

from scalingbook_lib.serving import (
    Affine,
    Blocks,
    Chunked,
    Continuous,
    Disaggregated,
    Request,
    Static,
    simulate,
)
from scalingbook_lib.serving.served import gaps as gaps_of
from tests.core import repeatable

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

SETTINGS = repeatable.examples(100)
CLOSE = {"rel": 1e-9, "abs": 1e-9}


class Bent:
    """Costs of many resources: what binds changes with the batch and with the tokens in the cache."""

    def step_s(self, decodes, kv_tokens, chunk=0, chunk_context=0, prompts=1):
        window = min(kv_tokens, 60 * decodes)
        attention = max(2e-4 * kv_tokens, 5e-3 + 3e-5 * window)
        linear = max(0.01, 7e-4 * (decodes + chunk))
        return linear + attention + 1e-6 * chunk * (chunk_context + chunk / prompts / 2)


seconds = st.floats(0, 3, allow_subnormal=False)
costs = st.one_of(
    st.just(Bent()),
    st.builds(
        Affine,
        weights_s=st.floats(1e-3, 0.1), token_s=st.floats(1e-5, 1e-3), cached_s=st.floats(0, 1e-4),
        fixed_s=st.floats(0, 0.01),
    ),
)  # fmt: skip
alone = st.one_of(
    st.builds(Static, st.integers(1, 6)),
    st.builds(Continuous, st.integers(1, 6), st.integers(1, 3)),
    st.builds(Chunked, st.integers(1, 6), st.integers(7, 40)),
)
apart = st.builds(
    Disaggregated, st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.sampled_from((0.0, 1e-4, 0.01))
)
policies = st.one_of(alone, apart)
caches = st.one_of(
    st.none(), st.builds(Blocks, st.integers(3, 40), st.integers(1, 9), st.sampled_from((0, 0.1)))
)


loads = st.one_of(st.none(), st.integers(1, 6))  # requests that come when they say, or clients


@st.composite
def request_lists(draw, most=25):
    """Arrivals, lengths, families that share prefixes, and some who do not wait for ever."""
    made = []
    for _ in range(draw(st.integers(0, most))):
        prompt, output, arrival_s = draw(st.integers(1, 60)), draw(st.integers(1, 40)), draw(seconds)
        patience_s = draw(st.one_of(st.just(math.inf), st.just(math.inf), seconds))
        prefix = draw(st.integers(0, prompt + output))
        made.append(
            Request(arrival_s, prompt, output, prefix, draw(st.integers(0, 2)), arrival_s + patience_s)
        )
    return made


@SETTINGS
@hypothesis.given(request_lists(), costs, alone, caches)
def test_the_simulator_equals_one_that_plays_every_token(requests, cost, policy, blocks):
    run = simulate(requests, cost, policy, blocks=blocks)
    guests = {id(guest.request): guest for guest in play(requests, cost, policy, blocks)}
    for i, served in enumerate(run.requests):
        guest = guests[id(served.request)]
        assert served.outcome == guest.outcome
        assert run.token_times(i) == pytest.approx(guest.times, **CLOSE)
        assert served.end_s == pytest.approx(guest.end_s, **CLOSE)


@SETTINGS
@hypothesis.given(request_lists(), costs, policies, caches, st.booleans(), loads)
def test_steps_told_at_once_are_the_steps_one_by_one(requests, cost, policy, blocks, keep, clients):
    asked = {"blocks": blocks, "prefix_cache": keep, "clients": clients}
    quick = simulate(requests, cost, policy, **asked)
    slow = simulate(requests, cost, policy, **asked, at_once=1)
    for i, (a, b) in enumerate(zip(quick.requests, slow.requests, strict=True)):
        assert a.outcome == b.outcome
        assert quick.token_times(i) == pytest.approx(slow.token_times(i), **CLOSE)
    assert quick.evictions == slow.evictions
    assert quick.evicted_blocks == slow.evicted_blocks


@SETTINGS
@hypothesis.given(request_lists(), costs, policies, caches, st.booleans(), loads)
def test_nobody_is_lost_and_nothing_is_done_twice(requests, cost, policy, blocks, keep, clients):
    run = simulate(requests, cost, policy, blocks=blocks, prefix_cache=keep, clients=clients)
    asked = [(served.request.prompt, served.request.output) for served in run.requests]
    assert asked == [(request.prompt, request.output) for request in requests]
    assert sum(run.outcomes().values()) == len(requests)
    for i, served in enumerate(run.requests):
        times, request = run.token_times(i), served.request
        assert served.tokens == len(times) == (request.output if served.outcome == "finished" else len(times))
        assert times == sorted(times)
        assert all(at > request.arrival_s - 1e-9 for at in times)
        if times:
            assert (times[0], times[-1]) == (served.first_s, pytest.approx(served.last_s))
            assert served.last_s <= served.end_s + 1e-9
        if request.cancel_s == math.inf:
            fits = blocks is None or blocks.of(request.prompt + request.output - 1) <= blocks.count
            assert served.outcome == ("finished" if fits else "refused")
            assert len(served.stays) == (served.evictions + 1 if fits else 0)


@SETTINGS
@hypothesis.given(request_lists(), costs, policies, caches, st.booleans())
def test_every_prompt_token_is_computed_or_found(requests, cost, policy, blocks, keep):
    run = simulate(requests, cost, policy, blocks=blocks, prefix_cache=keep)
    computed = 0
    for served in run.requests:
        emitted = 0
        for stay in served.stays:
            computed += stay.computed
            if stay.tokens:
                assert stay.computed + stay.cached == served.request.prompt + emitted
            assert stay.cached <= served.request.prefix
            emitted += stay.tokens
    assert computed == run.prompt_tokens[0] == sum(chunk.tokens for chunk in run.chunks)
    assert 0 <= run.hit_rate < 1
    assert keep or run.hit_rate == 0
    steps = [stretch for row in run.stretches for stretch in row]
    assert run.tokens == sum(s.steps * s.live for s in steps) + sum(
        stay.tokens > 0 for served in run.requests for stay in served.stays
    )


@SETTINGS
@hypothesis.given(request_lists(), costs, policies, caches, loads)
def test_littles_law(requests, cost, policy, blocks, clients):
    run = simulate(requests, cost, policy, blocks=blocks, clients=clients)
    sojourns = sum(served.latency_s for served in run.requests)
    assert run.mean_present * run.end_s == pytest.approx(sojourns, **CLOSE)
    assert [moment.time_s for moment in run.queue] == sorted(moment.time_s for moment in run.queue)
    if run.queue:
        last = run.queue[-1]
        assert (last.waiting, last.inside, last.held) == (0, 0, 0)
    assert 0 <= run.occupancy <= 1 + 1e-9
    first = max((request.arrival_s for request in requests[:clients]), default=0.0)
    later = [m.waiting + m.inside for m in run.queue if m.time_s > first]
    assert clients is None or max(later, default=0) <= clients


@SETTINGS
@hypothesis.given(request_lists(), costs, policies, caches, st.booleans())
def test_blocks_come_back_and_are_never_more_than_there_are(requests, cost, policy, blocks, keep):
    run = simulate(requests, cost, policy, blocks=blocks, prefix_cache=keep)
    servers = policy.prefill + policy.decode if isinstance(policy, Disaggregated) else 1
    assert all(0 <= m.held <= (servers * blocks.count if blocks else 0) for m in run.queue)
    if run.queue:
        assert run.queue[-1].held == 0


@SETTINGS
@hypothesis.given(request_lists(), costs, policies, caches)
def test_gaps_are_those_between_the_tokens(requests, cost, policy, blocks):
    run = simulate(requests, cost, policy, blocks=blocks)
    told = [gap for gap, often in gaps_of(run.requests, run.stretches) for _ in range(often)]
    times = [run.token_times(i) for i in range(len(requests))]
    gaps = sorted(b - a for row in times for a, b in pairwise(row))
    assert sorted(told) == pytest.approx(gaps, **CLOSE)
    if gaps:
        for percentile in (0, 1, 50, 90, 100):
            rank = max(math.ceil(len(gaps) * percentile / 100 - 1e-9), 1)
            assert run.itl(percentile) == pytest.approx(gaps[rank - 1], abs=1e-9)
