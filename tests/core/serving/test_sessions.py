"""Tests of agent sessions in the simulator: turns, tool calls, eviction, host memory and routing."""

import math
from random import Random

import pytest

from scalingbook_lib.serving import (
    Affine,
    Chunked,
    Continuous,
    HostMemory,
    PagedCache,
    PrefixTree,
    Request,
    ServingError,
    Session,
    Static,
    Turn,
    agent_sessions,
    erlang_gaps,
    exponential,
    lru_reuse,
    serve_sessions,
    shuffled_reuse,
    simulate,
)

PLAIN = Affine(weights_s=0.1, token_s=0.001, cached_s=0.0)  # 0.1 s for up to 100 tokens, then 1 ms a token
QUICK = Affine(weights_s=1e-7, token_s=1e-9, cached_s=0.0)  # negligible compared with the tools


def two_turns(at=0.0, tool_s=2.0):
    return Session(at, (Turn(96, 3, tool_s), Turn(61, 2)))


# Small cases.


def test_times_of_a_session_match_a_hand_computation():
    run = serve_sessions([two_turns()], PLAIN, Continuous(2), blocks=PagedCache(100))
    first, second = run.turns[0]
    assert (first.ttft_s, first.latency_s) == pytest.approx((0.1, 0.3))
    # 96 + 3 tokens, of which the last is not in the cache; 6 full blocks of 16 tokens are shared
    assert (second.request.arrival_s, second.request.prompt) == (pytest.approx(2.3), 160)
    assert second.residencies[0].cached == 96
    assert (second.ttft_s, run.session_s(100)) == pytest.approx((0.1, 2.5))
    found = [(one.residencies[0].cached, one.residencies[0].computed) for one in run.turns[0]]
    assert run.hit_rate == 96 / sum(map(sum, found))
    assert (run.interactivity(50), run.interactivity(90)) == pytest.approx((10.0, 10.0))


def test_without_a_prefix_cache_every_turn_prefills_its_whole_history():
    session = Session(0.0, (Turn(1000, 50, 1.0), *(Turn(200, 50, 1.0),) * 19))
    run = serve_sessions([session], PLAIN, Continuous(1), prefix_cache=False)
    assert run.hit_rate == run.history_hit_rate == 0.0
    assert session.prompt_tokens == sum(1000 + 250 * i for i in range(20)) == 67_500
    kept = serve_sessions([session], PLAIN, Continuous(1))
    assert kept.history_hit_rate == pytest.approx(1, abs=0.02)  # all but an incomplete block
    assert kept.hit_rate == pytest.approx(1 - (1000 + 19 * 200) / 67_500, abs=0.03)


@pytest.mark.parametrize("policy", [Continuous(3), Chunked(3, 200)])
def test_sessions_of_one_turn_are_plain_requests(policy):
    sessions = agent_sessions(0.5, 30, turns=1, first=300, prompt=1, output=20, tool_s=0.0, seed=3)
    requests = [Request(s.arrival_s, 300, 20) for s in sessions]
    plain = simulate(requests, PLAIN, policy)
    run = serve_sessions(sessions, PLAIN, policy)
    assert [turn.end_s for (turn,) in run.turns] == pytest.approx([one.end_s for one in plain.requests])
    assert run.ttft(90) == pytest.approx(plain.ttft(90))
    assert run.latency(50) == pytest.approx(plain.latency(50))


def test_tokens_are_found_computed_or_loaded_and_nothing_is_lost():
    sessions = agent_sessions(
        0.5, 25, turns=6, first=800, prompt=100, output=20, tool_s=exponential(10.0), seed=1
    )
    for blocks in (200, 400, 5000):
        run = serve_sessions(
            sessions,
            PLAIN,
            Continuous(4),
            blocks=PagedCache(blocks),
            host=HostMemory(2 * blocks, 1e-5),
            replicas=2,
        )
        for row in run.turns:
            for turn in row:
                assert turn.outcome == "finished"
                for one in turn.residencies:
                    assert 0 <= one.loaded <= one.cached
            ends = [turn.end_s for turn in row[:-1]]
            starts = [turn.request.arrival_s for turn in row[1:]]
            assert all(end < start for end, start in zip(ends, starts, strict=True))
        assert 0 <= run.loaded_rate <= run.hit_rate < 1
        assert sum(len(each.requests) for each in run.runs) == sum(len(row) for row in run.turns) == 150
    assert run.history_hit_rate > 0.97
    assert run.loaded_rate == 0.0  # the largest pool evicts nothing


# Host memory.


def test_host_memory_turns_evicted_prefixes_into_loads():
    sessions = [Session(0.2 * i, (Turn(1000, 2, 30.0),) * 3) for i in range(10)]
    small = PagedCache(200)  # 3,200 tokens for 10 sessions of 1,000 to 3,000
    lost = serve_sessions(sessions, PLAIN, Continuous(2), blocks=small)
    kept = serve_sessions(sessions, PLAIN, Continuous(2), blocks=small, host=HostMemory(4000, 1e-5))
    assert lost.history_hit_rate < 0.1
    assert kept.history_hit_rate > 0.98
    assert kept.loaded_rate > 0.9 * kept.hit_rate
    assert kept.ttft(50) < lost.ttft(50)
    slow = serve_sessions(sessions, PLAIN, Continuous(2), blocks=small, host=HostMemory(4000, 0.01))
    assert slow.hit_rate == pytest.approx(kept.hit_rate, abs=0.01)
    assert slow.ttft(50) > 5 * kept.ttft(50)


def test_a_load_takes_the_time_of_its_tokens():
    slow = HostMemory(10_000, 0.01)
    one, other = Session(0.0, (Turn(1600, 1, 50.0), Turn(10, 1))), Session(20.0, (Turn(1700, 1),))
    run = serve_sessions([one, other], PLAIN, Continuous(1), blocks=PagedCache(110, spare=0.0), host=slow)
    back = run.turns[0][1].residencies[0]
    assert back.loaded > 0
    assert run.turns[0][1].ttft_s == pytest.approx(0.01 * back.loaded)


# Routing.


def test_sessions_stay_on_their_replica_with_affinity_and_move_without_it():
    # short and long answers, so that the least loaded replica changes
    sessions = agent_sessions(
        2.0,
        24,
        turns=8,
        first=1500,
        prompt=100,
        output=lambda rng: 1 + int(rng.random() * 60),
        tool_s=exponential(5.0),
        seed=2,
    )
    stay = serve_sessions(sessions, PLAIN, Continuous(8), replicas=4)
    move = serve_sessions(sessions, PLAIN, Continuous(8), replicas=4, routing="least loaded")
    where = {turn.request.family: i for i, run in enumerate(stay.runs) for turn in run.requests}
    assert all(where[turn.request.family] == i for i, run in enumerate(stay.runs) for turn in run.requests)
    assert stay.history_hit_rate > 0.98
    assert 0.2 < move.history_hit_rate < 0.8
    assert move.session_s(50) > stay.session_s(50)


def test_one_replica_serves_the_same_with_either_routing():
    sessions = agent_sessions(
        0.8, 20, turns=5, first=900, prompt=50, output=30, tool_s=exponential(4.0), seed=7
    )
    runs = [
        serve_sessions(sessions, PLAIN, Continuous(4), blocks=PagedCache(600), routing=routing)
        for routing in ("affinity", "least loaded")
    ]
    ends = [[turn.end_s for row in run.turns for turn in row] for run in runs]
    assert ends[0] == pytest.approx(ends[1])


def test_bad_arguments_are_refused():
    one = [two_turns()]
    for replicas, routing in ((0, "affinity"), (2, "random")):
        with pytest.raises(ServingError, match="write at least 1"):
            serve_sessions(one, PLAIN, Continuous(1), replicas=replicas, routing=routing)
    with pytest.raises(ServingError, match="Continuous or Chunked"):
        serve_sessions(one, PLAIN, Static(2))  # type: ignore[arg-type]
    for bad in (lambda: Turn(0, 1), lambda: Turn(1, 1, -1.0), lambda: Session(0.0, ())):
        with pytest.raises(ServingError, match="write"):
            bad()
    for bad in (lambda: lru_reuse(0.0, [1.0]), lambda: lru_reuse(0.5, []), lambda: erlang_gaps(0)):
        with pytest.raises(ValueError, match="write"):
            bad()


# The law of the cliff.


def test_the_law_has_its_exact_limits():
    regular, random = [1.0], erlang_gaps(1, sample=4000)
    for fits in (0.1, 0.5, 0.9):
        assert lru_reuse(fits, regular).hit_rate == 0.0
        assert lru_reuse(fits, random).hit_rate == pytest.approx(
            fits, abs=2e-3
        )  # 1 - e^-T fits, and is found
    assert lru_reuse(1.001, regular).hit_rate == lru_reuse(1.5, random).hit_rate == 1.0
    assert lru_reuse(1.001, regular).eviction_age_s == math.inf
    assert lru_reuse(0.3, random, running=0.3).hit_rate == 0.0
    # tokens that are never used again fill a part of the pool: fits = h - r ln(1 - h)
    found = lru_reuse(0.5, random, discarded=0.2).hit_rate
    assert found - 0.2 * math.log(1 - found) == pytest.approx(0.5, abs=5e-3)


def test_erlang_gaps_have_their_mean_and_variance():
    for shape in (1, 4, 64):
        gaps = erlang_gaps(shape, mean_s=5.0, sample=4000)
        mean = sum(gaps) / len(gaps)
        variance = sum((gap - mean) ** 2 for gap in gaps) / len(gaps)
        assert mean == pytest.approx(5.0, rel=0.01)
        assert variance == pytest.approx(25 / shape, rel=0.03)


@pytest.mark.parametrize("shape", [1, 4, 16])
@pytest.mark.parametrize("fits", [0.5, 0.8, 0.9])
def test_the_simulator_obeys_the_law(shape, fits):
    rng, sessions, turns, context = Random(shape), 80, 40, 16_000
    gaps = erlang_gaps(shape, mean_s=100.0)
    agents = [
        Session(
            rng.random() * 100,
            (Turn(context, 1, rng.choice(gaps)), *(Turn(8, 8, rng.choice(gaps)) for _ in range(turns))),
        )
        for _ in range(sessions)
    ]
    mean_tokens = context + 16 * 12  # after the twelfth turn
    pool = PagedCache(int(fits * sessions * mean_tokens / 16), spare=0.0)
    run = serve_sessions(agents, QUICK, Continuous(sessions), blocks=pool)
    # once the pool is full, and before the first sessions end
    steady = [turn for row in run.turns for turn in row if 400 < turn.request.arrival_s < 2000]
    found = sum(one.cached for turn in steady for one in turn.residencies)
    history = sum(turn.request.prompt - 8 for turn in steady)
    assert found / history == pytest.approx(lru_reuse(fits, gaps).hit_rate, abs=0.04)


def test_regular_sessions_fall_off_the_cliff():
    sessions = [Session(float(i), (Turn(1600, 1, 100.0), *(Turn(1, 1, 100.0),) * 9)) for i in range(40)]
    tokens = 40 * (1600 + 20)
    rates = [
        serve_sessions(
            sessions, QUICK, Continuous(4), blocks=PagedCache(int(fits * tokens / 16), spare=0.0)
        ).history_hit_rate
        for fits in (1.1, 0.9)
    ]
    assert rates[0] > 0.98
    assert rates[1] < 0.02


def test_sessions_in_shuffled_rounds_obey_their_own_law():
    for fits in (0.1, 0.36, 0.8):
        exact = fits + (1 - fits) * math.log(1 - fits)
        assert shuffled_reuse(fits, 1.0, 1.0) == pytest.approx(exact, abs=1e-3)
    assert shuffled_reuse(1.0, 1.0, 1.0) == 1.0
    # a prefix tree with equal sessions of 64 tokens in blocks of 4, of which 60% fit
    tree, rng, found = PrefixTree(200 * 16 * 6 // 10, 4), Random(0), []
    talks = [[(client, i) for i in range(64)] for client in range(200)]
    for _ in range(12):
        rng.shuffle(talks)
        found.append(sum(tree.serve(talk) for talk in talks) / (200 * 60))
    assert sum(found[2:]) / 10 == pytest.approx(shuffled_reuse(0.6, 1.0, 1.0), abs=0.03)
    with pytest.raises(ValueError, match="before <= after"):
        shuffled_reuse(1.0, 3.0, 2.0)
