"""Tests of the serving simulator on small cases that can be computed by hand."""

import gc
import math

import pytest

from scalingbook_lib import serving
from scalingbook_lib.serving import (
    Affine,
    Chunked,
    Continuous,
    Disaggregated,
    PagedCache,
    Request,
    ServingError,
    Static,
    poisson,
    simulate,
)

PLAIN = Affine(weights_s=0.1, token_s=0.001, cached_s=0.0)  # 0.1 s for up to 100 tokens, then 1 ms a token


def crowd(count, prompt, output):
    """Requests that all arrive at time 0."""
    return [Request(0.0, prompt, output)] * count


# Small cases.


def test_times_of_a_single_request_match_a_hand_computation():
    run = simulate([Request(1.0, 50, 3)], Affine(weights_s=0.1, token_s=0.001, cached_s=0.01), Continuous(4))
    assert run.token_times(0) == pytest.approx([1.1, 1.1 + 0.6, 1.1 + 0.6 + 0.61])  # 50, then 51 tokens read
    served = run.requests[0]
    assert (served.ttft_s, served.itl_s, served.latency_s) == pytest.approx((0.1, 0.605, 1.31))
    assert run.end_s == pytest.approx(2.31)
    assert run.tokens_per_s == pytest.approx(3 / 2.31)


def test_a_whole_prefill_stalls_decoding_and_chunked_prefill_does_not():
    two = [Request(0.0, 100, 4), Request(0.15, 1000, 2)]
    stalled = simulate(two, PLAIN, Continuous(2))
    assert stalled.token_times(0) == pytest.approx([0.1, 0.2, 1.3, 1.4])  # the other prompt takes 1 s
    assert stalled.token_times(1) == pytest.approx([1.2, 1.3])
    chunked = simulate(two, PLAIN, Chunked(2, 201))
    assert chunked.token_times(0) == pytest.approx([0.1, 0.2, 0.401, 0.602])
    assert chunked.itl(100) < stalled.itl(100)


def test_a_static_batch_runs_until_its_longest_answer_ends():
    run = simulate([*crowd(1, 10, 2), *crowd(1, 10, 5), *crowd(1, 10, 1)], PLAIN, Static(2))
    assert run.token_times(0) == pytest.approx([0.1, 0.2])
    assert run.token_times(1) == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    assert run.token_times(2) == pytest.approx([0.6])
    assert [step_run.rows for step_run in run.step_runs[0]] == [2, 2]
    assert [step_run.live for step_run in run.step_runs[0]] == [2, 1]


def test_disaggregated_prefill_transfers_the_cache_and_never_stalls_decoding():
    two = [Request(0.0, 100, 4), Request(0.15, 1000, 2)]
    run = simulate(two, PLAIN, Disaggregated(1, 1, 2, transfer_s=1e-4))
    assert run.token_times(0) == pytest.approx([0.1, 0.21, 0.31, 0.41])  # 100 tokens move in 10 ms
    assert run.token_times(1) == pytest.approx([1.15, 1.35])  # 1000 in 100 ms
    assert {span.row[0] for span in run.spans} == {"prefill", "decode"}
    slow = Affine(weights_s=0.2, token_s=0.002, cached_s=0.0)
    assert simulate(two, PLAIN, Disaggregated(1, 1, 2), prefill_costs=slow).ttft(0) == pytest.approx(0.2)


def test_an_evicted_sequence_returns_and_keeps_its_tokens():
    run = simulate(crowd(2, 4, 8), PLAIN, Continuous(2), blocks=PagedCache(4, 4, spare=0))
    assert [served.evictions for served in run.requests] == [0, 1]
    assert run.evictions == 1
    first, second = run.requests[1].residencies
    assert first.tokens + second.tokens == run.requests[1].tokens == 8
    assert second.computed == 4 + first.tokens  # its prompt and its answer so far are recomputed
    assert run.requests[0].outcome == run.requests[1].outcome == "finished"


def test_requests_that_never_fit_are_refused_and_impatient_ones_are_cancelled():
    rows = [Request(0.0, 60, 10), Request(0.0, 10, 100, cancel_s=0.55), Request(0.2, 10, 5, cancel_s=0.25)]
    run = simulate(rows, PLAIN, Continuous(1), blocks=PagedCache(8, 8))
    assert [served.outcome for served in run.requests] == ["refused", "refused", "cancelled"]
    run = simulate(rows, PLAIN, Continuous(1))
    assert run.outcomes() == {"finished": 1, "cancelled": 2, "refused": 0}
    run = simulate(rows[1:], PLAIN, Continuous(1))
    assert [served.outcome for served in run.requests] == ["cancelled", "cancelled"]
    assert run.requests[0].end_s == pytest.approx(0.6)  # the next boundary
    assert run.requests[0].tokens == 6
    assert math.isnan(run.requests[1].ttft_s)


# The prefix cache.


def test_a_shared_prefix_is_computed_once():
    rows = [Request(float(i), 100, 2, prefix=70, family=1) for i in range(4)]
    run = simulate(rows, PLAIN, Continuous(2), blocks=PagedCache(64, 16), prefix_cache=True)
    assert [served.residencies[0].cached for served in run.requests] == [
        0,
        64,
        64,
        64,
    ]  # only whole blocks are shared
    assert run.hit_rate == pytest.approx(192 / 400)
    assert simulate(rows, PLAIN, Continuous(2), blocks=PagedCache(64, 16)).hit_rate == 0
    others = [Request(float(i), 100, 2, prefix=70, family=i) for i in range(4)]
    assert simulate(others, PLAIN, Continuous(2), prefix_cache=True).hit_rate == 0


def test_the_next_turn_of_a_conversation_hits_its_earlier_answers():
    turns = [Request(9.0 * i, 32 + 48 * i, 17, prefix=32 + 48 * i + 17, family=5) for i in range(3)]
    run = simulate(turns, PLAIN, Continuous(2), prefix_cache=True)
    assert [served.residencies[0].cached for served in run.requests] == [0, 48, 96]


def test_the_least_recently_used_prefix_is_evicted_first():
    def ask(at, family):
        return Request(float(at), 65, 1, prefix=64, family=family)

    order = [ask(i, family) for i, family in enumerate((1, 2, 1, 3, 1, 2))]
    run = simulate(order, PLAIN, Continuous(1), blocks=PagedCache(9, 16, spare=0), prefix_cache=True)
    assert [served.residencies[0].cached for served in run.requests] == [0, 0, 64, 0, 64, 0]
    assert run.evicted_blocks == 8  # of family 2 for 3's, then of 3 for 2's
    assert simulate(order, PLAIN, Continuous(1), prefix_cache=True).evicted_blocks == 0


# Latencies under load.


@pytest.mark.parametrize("policy", [Continuous(8), Chunked(8, 300), Disaggregated(1, 1, 8), Static(8)])
def test_closed_loop_clients_keep_their_concurrency_and_obey_littles_law(policy):
    """The interactive response time law: throughput times latency is the number of clients."""
    rows = [Request(0.0, 20 + i % 7, 5 + i % 11) for i in range(300)]
    run = simulate(rows, PLAIN, policy, clients=5)
    upto = run.requests[-1].request.arrival_s
    running = [moment.waiting + moment.running for moment in run.queue if 0 < moment.time_s < upto]
    assert max(running) == 5
    mean = sum(served.latency_s for served in run.requests) / 300
    assert 300 / run.end_s * mean == pytest.approx(5, rel=0.03)
    assert simulate(rows, PLAIN, policy, clients=300).requests == simulate(rows, PLAIN, policy).requests


def test_a_single_client_never_queues():
    rows = [Request(0.0, 50, 4), Request(0.0, 50, 2), Request(0.0, 5000, 9), Request(0.0, 50, 3)]
    run = simulate(rows, PLAIN, Continuous(4), clients=1, blocks=PagedCache(10))
    assert [served.outcome for served in run.requests] == ["finished", "finished", "refused", "finished"]
    assert [served.request.arrival_s for served in run.requests] == pytest.approx([0, 0.4, 0.6, 0.6])
    assert [s.ttft_s for s in run.requests if s.tokens] == pytest.approx([0.1, 0.1, 0.1])
    gone = [Request(0.0, 50, 9, cancel_s=0.35), Request(0.0, 50, 9, cancel_s=0.35)]
    run = simulate(gone, PLAIN, Continuous(4), clients=1)
    assert [served.request.cancel_s for served in run.requests] == pytest.approx([0.35, 0.75])
    assert [served.tokens for served in run.requests] == [4, 4]


def test_latency_grows_with_load_and_throughput_saturates():
    """The shape of published load curves: flat, then a knee, then saturation."""
    cost = Affine()
    loads = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0)
    runs = [
        simulate(poisson(load, 600, prompt=serving.lognormal(500), output=200, seed=1), cost, Continuous(32))
        for load in loads
    ]
    rates, firsts = [run.tokens_per_s for run in runs], [run.ttft(90) for run in runs]
    assert firsts == sorted(firsts)
    assert rates[1] == pytest.approx(2 * rates[0], rel=0.02)  # below saturation
    assert rates[-1] == pytest.approx(rates[-2], rel=0.03)  # saturated
    assert firsts[-1] > 20 * firsts[0]
    goods = [run.goodput(ttft_s=0.5, itl_s=0.05) for run in runs]
    assert goods.index(max(goods)) not in (0, len(loads) - 1)  # the best load lies in between
    assert goods[-1] < 0.5 * max(goods)


def test_goodput_and_percentiles_match_a_hand_computation():
    run = simulate(crowd(4, 100, 2), PLAIN, Continuous(1))
    assert [round(served.ttft_s, 6) for served in run.requests] == [0.1, 0.3, 0.5, 0.7]
    assert (run.ttft(50), run.ttft(51), run.ttft(100)) == pytest.approx((0.3, 0.5, 0.7))
    assert run.latency(0) == pytest.approx(0.2)
    assert run.slo_attainment(ttft_s=0.4) == 0.5
    assert run.slo_attainment(ttft_s=0.4, itl_s=0.05) == 0
    assert run.goodput(ttft_s=0.4) == pytest.approx(2 / 0.8)
    assert run.requests_per_s == pytest.approx(4 / 0.8)
    assert (run.mean_in_system, run.occupancy) == pytest.approx((2.5, 1))  # one of them holds the slot


def test_results_print_as_sentences():
    run = simulate(
        [Request(0, 100, 3), Request(0, 9000, 3)], PLAIN, Continuous(2), blocks=PagedCache(100, 16)
    )
    assert str(run) == (
        "continuous batching in 2 slots, prefill-prioritized: 1 finished, 1 refused in 300 ms, 10 tokens/s; "
        "TTFT p50 100 ms, p99 100 ms; ITL p50 100 ms, p99 100 ms; slot occupancy 50%"
    )
    assert str(run.requests[0]) == "finished: TTFT 100 ms, 3 tokens, mean ITL 100 ms, latency 300 ms"
    assert str(run.requests[1]) == "refused without a token after 0 s"
    assert str(simulate([], PLAIN, Static(4))).startswith("static batches of up to 4:")
    for told in (
        Chunked(2, 300),
        Disaggregated(1, 2, 3, 1e-6),
        PagedCache(5),
        Affine(),
        Request(1, 2, 3, 2, 1),
    ):
        assert str(told) == f"{told}" != repr(told)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Request(-1, 5, 5), "at least 0"),
        (lambda: Request(0, 0, 5), "at least 1 of each"),
        (lambda: Request(0, 5, 5, prefix=11), "write 0 to 10"),
        (lambda: Request(2, 5, 5, cancel_s=1), "before its arrival"),
        (lambda: poisson(0, 5, prompt=1, output=1), "positive rate"),
        (lambda: poisson(1, 5, prompt=1, output=1, prefix=5), "write both"),
        (lambda: serving.trace([{"prompt": 5}]), "no arrival_s"),
        (lambda: serving.uniform(5, 4), "low <= high"),
        (lambda: serving.geometric(0.5), "at least 1"),
        (lambda: serving.lognormal(0.5), "at least 1"),
        (lambda: Static(0), "of at least 1"),
        (lambda: Continuous(4, prompts=0), "of at least 1"),
        (lambda: Chunked(64, 64), "more than 64"),
        (lambda: Disaggregated(1, 1, 1, transfer_s=-1), "at least 0"),
        (lambda: PagedCache(4, spare=1.0), "below 1"),
        (lambda: simulate([], PLAIN, "greedy"), "is not a policy"),
        (lambda: simulate([], PLAIN, Static(1), clients=0), "at least 1"),
        (lambda: simulate([], PLAIN, Static(1)).ttft(), "no request"),
        (lambda: simulate(crowd(1, 1, 1), PLAIN, Static(1)).ttft(101), "0 to 100"),
        (lambda: simulate(crowd(1, 1, 1), PLAIN, Static(1)).itl(), "no request"),
        (
            lambda: simulate(crowd(1, 1, 1), PLAIN, Static(1)).tokens_per_s_between(2, 1),
            "the first time must be before the second",
        ),
    ],
)
def test_invalid_arguments_raise_an_error_that_says_what_to_write(made, words):
    with pytest.raises(ServingError, match=words):
        made()


@pytest.mark.parametrize("collects", [True, False])
def test_a_simulation_leaves_the_garbage_collector_as_it_was(collects):
    (gc.enable if collects else gc.disable)()
    try:
        simulate(crowd(3, 10, 10), PLAIN, Static(2))
        assert gc.isenabled() == collects
    finally:
        gc.enable()
