"""Property tests of the serving simulator: random requests, costs, caches and policies."""

import math
from itertools import pairwise

import pytest
from reference_server import reference_run

from scalingbook_lib.serving import (
    Affine,
    Chunked,
    Continuous,
    Disaggregated,
    PagedCache,
    Request,
    Static,
    simulate,
)
from scalingbook_lib.serving.results import token_gaps
from tests.core import repeatable

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

SETTINGS = repeatable.examples(100)
CLOSE = {"rel": 1e-9, "abs": 1e-9}


class PiecewiseCosts:
    """Costs whose bottleneck changes with the batch and with the tokens in the cache."""

    def step_s(self, decodes, kv_tokens, chunk=0, chunk_context=0, prompts=1):
        window = min(kv_tokens, 60 * decodes)
        attention = max(2e-4 * kv_tokens, 5e-3 + 3e-5 * window)
        linear = max(0.01, 7e-4 * (decodes + chunk))
        return linear + attention + 1e-6 * chunk * (chunk_context + chunk / prompts / 2)


seconds = st.floats(0, 3, allow_subnormal=False)
costs = st.one_of(
    st.just(PiecewiseCosts()),
    st.builds(
        Affine,
        weights_s=st.floats(1e-3, 0.1), token_s=st.floats(1e-5, 1e-3), cached_s=st.floats(0, 1e-4),
        fixed_s=st.floats(0, 0.01),
    ),
)  # fmt: skip
colocated = st.one_of(
    st.builds(Static, st.integers(1, 6)),
    st.builds(Continuous, st.integers(1, 6), st.integers(1, 3)),
    st.builds(Chunked, st.integers(1, 6), st.integers(7, 40)),
)
disaggregated = st.builds(
    Disaggregated, st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.sampled_from((0.0, 1e-4, 0.01))
)
policies = st.one_of(colocated, disaggregated)
caches = st.one_of(
    st.none(), st.builds(PagedCache, st.integers(3, 40), st.integers(1, 9), st.sampled_from((0, 0.1)))
)


loads = st.one_of(st.none(), st.integers(1, 6))  # open-loop arrivals, or closed-loop clients


@st.composite
def request_lists(draw, most=25):
    """Random arrivals, lengths, families with shared prefixes, and cancellation times."""
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
@hypothesis.given(request_lists(), costs, colocated, caches)
def test_the_simulator_equals_one_that_computes_every_token(requests, cost, policy, blocks):
    run = simulate(requests, cost, policy, blocks=blocks)
    references = {
        id(reference.request): reference for reference in reference_run(requests, cost, policy, blocks)
    }
    for i, served in enumerate(run.requests):
        reference = references[id(served.request)]
        assert served.outcome == reference.outcome
        assert run.token_times(i) == pytest.approx(reference.times, **CLOSE)
        assert served.end_s == pytest.approx(reference.end_s, **CLOSE)


@SETTINGS
@hypothesis.given(request_lists(), costs, policies, caches, st.booleans(), loads)
def test_fused_steps_equal_steps_one_by_one(requests, cost, policy, blocks, keep, clients):
    asked = {"blocks": blocks, "prefix_cache": keep, "clients": clients}
    quick = simulate(requests, cost, policy, **asked)
    slow = simulate(requests, cost, policy, **asked, max_fused_steps=1)
    for i, (a, b) in enumerate(zip(quick.requests, slow.requests, strict=True)):
        assert a.outcome == b.outcome
        assert quick.token_times(i) == pytest.approx(slow.token_times(i), **CLOSE)
    assert quick.evictions == slow.evictions
    assert quick.evicted_blocks == slow.evicted_blocks


@SETTINGS
@hypothesis.given(request_lists(), costs, policies, caches, st.booleans(), loads)
def test_every_request_ends_once_and_its_tokens_come_in_order(requests, cost, policy, blocks, keep, clients):
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
            fits = blocks is None or blocks.needed_for(request.prompt + request.output - 1) <= blocks.count
            assert served.outcome == ("finished" if fits else "refused")
            assert len(served.residencies) == (served.evictions + 1 if fits else 0)


@SETTINGS
@hypothesis.given(request_lists(), costs, policies, caches, st.booleans())
def test_every_prompt_token_is_computed_or_a_prefix_cache_hit(requests, cost, policy, blocks, keep):
    run = simulate(requests, cost, policy, blocks=blocks, prefix_cache=keep)
    computed = 0
    for served in run.requests:
        emitted = 0
        for residency in served.residencies:
            computed += residency.computed
            if residency.tokens:
                assert residency.computed + residency.cached == served.request.prompt + emitted
            assert residency.cached <= served.request.prefix
            emitted += residency.tokens
    assert computed == run.prompt_tokens[0] == sum(chunk.tokens for chunk in run.chunks)
    assert 0 <= run.hit_rate < 1
    assert keep or run.hit_rate == 0
    steps = [step_run for row in run.step_runs for step_run in row]
    assert run.tokens == sum(s.steps * s.live for s in steps) + sum(
        residency.tokens > 0 for served in run.requests for residency in served.residencies
    )


@SETTINGS
@hypothesis.given(request_lists(), costs, policies, caches, loads)
def test_littles_law_holds_for_every_run(requests, cost, policy, blocks, clients):
    run = simulate(requests, cost, policy, blocks=blocks, clients=clients)
    sojourns = sum(served.latency_s for served in run.requests)
    assert run.mean_in_system * run.end_s == pytest.approx(sojourns, **CLOSE)
    assert [moment.time_s for moment in run.queue] == sorted(moment.time_s for moment in run.queue)
    if run.queue:
        last = run.queue[-1]
        assert (last.waiting, last.running, last.used_blocks) == (0, 0, 0)
    assert 0 <= run.occupancy <= 1 + 1e-9
    first = max((request.arrival_s for request in requests[:clients]), default=0.0)
    later = [m.waiting + m.running for m in run.queue if m.time_s > first]
    assert clients is None or max(later, default=0) <= clients


@SETTINGS
@hypothesis.given(request_lists(), costs, policies, caches, st.booleans())
def test_used_blocks_never_exceed_the_cache_and_are_all_freed(requests, cost, policy, blocks, keep):
    run = simulate(requests, cost, policy, blocks=blocks, prefix_cache=keep)
    servers = policy.prefill + policy.decode if isinstance(policy, Disaggregated) else 1
    assert all(0 <= m.used_blocks <= (servers * blocks.count if blocks else 0) for m in run.queue)
    if run.queue:
        assert run.queue[-1].used_blocks == 0


@SETTINGS
@hypothesis.given(request_lists(), costs, policies, caches)
def test_token_gaps_are_the_differences_of_token_times(requests, cost, policy, blocks):
    run = simulate(requests, cost, policy, blocks=blocks)
    told = [gap for gap, often in token_gaps(run.requests, run.step_runs) for _ in range(often)]
    times = [run.token_times(i) for i in range(len(requests))]
    gaps = sorted(b - a for row in times for a, b in pairwise(row))
    assert sorted(told) == pytest.approx(gaps, **CLOSE)
    if gaps:
        for percentile in (0, 1, 50, 90, 100):
            rank = max(math.ceil(len(gaps) * percentile / 100 - 1e-9), 1)
            assert run.itl(percentile) == pytest.approx(gaps[rank - 1], abs=1e-9)
