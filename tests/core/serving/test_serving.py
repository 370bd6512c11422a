"""The simulator by hand, against closed forms, and against a model on chips."""

import math

import pytest

from scalingbook_lib import inference, models, serving
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import chips, clusters
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.serving import (
    Affine,
    Blocks,
    Chunked,
    Continuous,
    Disaggregated,
    Request,
    ServingError,
    Static,
    poisson,
    simulate,
)

PLAIN = Affine(weights_s=0.1, token_s=0.001, cached_s=0.0)  # 0.1 s for up to 100 tokens, then 1 ms a token


def crowd(count, prompt, output):
    """All at once."""
    return [Request(0.0, prompt, output)] * count


def spread(slots, rest, prompt, output):
    """All at once; the first ones end one after the other, so that later ones do too."""
    first = [Request(0.0, prompt, 1 + i * output // slots) for i in range(slots)]
    return first + crowd(rest, prompt, output)


def middle(run):
    """Tokens per second without the run's ends."""
    return run.rate(0.3 * run.end_s, 0.7 * run.end_s)


# By hand.


def test_one_request_by_hand():
    run = simulate([Request(1.0, 50, 3)], Affine(weights_s=0.1, token_s=0.001, cached_s=0.01), Continuous(4))
    assert run.token_times(0) == pytest.approx([1.1, 1.1 + 0.6, 1.1 + 0.6 + 0.61])  # 50, then 51 tokens read
    served = run.requests[0]
    assert (served.ttft_s, served.itl_s, served.latency_s) == pytest.approx((0.1, 0.605, 1.31))
    assert run.end_s == pytest.approx(2.31)
    assert run.tokens_per_s == pytest.approx(3 / 2.31)


def test_a_prefill_holds_up_the_others_and_a_chunk_does_not():
    two = [Request(0.0, 100, 4), Request(0.15, 1000, 2)]
    stalled = simulate(two, PLAIN, Continuous(2))
    assert stalled.token_times(0) == pytest.approx([0.1, 0.2, 1.3, 1.4])  # 1 s for the other's prompt
    assert stalled.token_times(1) == pytest.approx([1.2, 1.3])
    chunked = simulate(two, PLAIN, Chunked(2, 201))
    assert chunked.token_times(0) == pytest.approx([0.1, 0.2, 0.401, 0.602])
    assert chunked.itl(100) < stalled.itl(100)


def test_a_static_batch_waits_for_its_longest():
    run = simulate([*crowd(1, 10, 2), *crowd(1, 10, 5), *crowd(1, 10, 1)], PLAIN, Static(2))
    assert run.token_times(0) == pytest.approx([0.1, 0.2])
    assert run.token_times(1) == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    assert run.token_times(2) == pytest.approx([0.6])
    assert [stretch.rows for stretch in run.stretches[0]] == [2, 2]
    assert [stretch.live for stretch in run.stretches[0]] == [2, 1]


def test_apart_the_cache_moves_and_nobody_is_held_up():
    two = [Request(0.0, 100, 4), Request(0.15, 1000, 2)]
    run = simulate(two, PLAIN, Disaggregated(1, 1, 2, transfer_s=1e-4))
    assert run.token_times(0) == pytest.approx([0.1, 0.21, 0.31, 0.41])  # 100 tokens move in 10 ms
    assert run.token_times(1) == pytest.approx([1.15, 1.35])  # 1000 in 100 ms
    assert {span.row[0] for span in run.spans} == {"prefill", "decode"}
    slow = Affine(weights_s=0.2, token_s=0.002, cached_s=0.0)
    assert simulate(two, PLAIN, Disaggregated(1, 1, 2), prefill_costs=slow).ttft(0) == pytest.approx(0.2)


def test_out_of_blocks_the_last_comes_back_and_keeps_its_tokens():
    run = simulate(crowd(2, 4, 8), PLAIN, Continuous(2), blocks=Blocks(4, 4, spare=0))
    assert [served.evictions for served in run.requests] == [0, 1]
    assert run.evictions == 1
    first, second = run.requests[1].stays
    assert first.tokens + second.tokens == run.requests[1].tokens == 8
    assert second.computed == 4 + first.tokens  # its prompt and its answer so far, anew
    assert run.requests[0].outcome == run.requests[1].outcome == "finished"


def test_who_can_never_fit_is_refused_and_who_has_enough_goes():
    rows = [Request(0.0, 60, 10), Request(0.0, 10, 100, cancel_s=0.55), Request(0.2, 10, 5, cancel_s=0.25)]
    run = simulate(rows, PLAIN, Continuous(1), blocks=Blocks(8, 8))
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
    run = simulate(rows, PLAIN, Continuous(2), blocks=Blocks(64, 16), prefix_cache=True)
    assert [served.stays[0].cached for served in run.requests] == [0, 64, 64, 64]  # whole blocks alone
    assert run.hit_rate == pytest.approx(192 / 400)
    assert simulate(rows, PLAIN, Continuous(2), blocks=Blocks(64, 16)).hit_rate == 0
    others = [Request(float(i), 100, 2, prefix=70, family=i) for i in range(4)]
    assert simulate(others, PLAIN, Continuous(2), prefix_cache=True).hit_rate == 0


def test_a_conversation_finds_its_answers_too():
    turns = [Request(9.0 * i, 32 + 48 * i, 17, prefix=32 + 48 * i + 17, family=5) for i in range(3)]
    run = simulate(turns, PLAIN, Continuous(2), prefix_cache=True)
    assert [served.stays[0].cached for served in run.requests] == [0, 48, 96]


def test_the_least_recently_used_prefix_goes_first():
    def ask(at, family):
        return Request(float(at), 65, 1, prefix=64, family=family)

    order = [ask(i, family) for i, family in enumerate((1, 2, 1, 3, 1, 2))]
    run = simulate(order, PLAIN, Continuous(1), blocks=Blocks(9, 16, spare=0), prefix_cache=True)
    assert [served.stays[0].cached for served in run.requests] == [0, 0, 64, 0, 64, 0]
    assert run.evicted_blocks == 8  # of family 2 for 3's, then of 3 for 2's
    assert simulate(order, PLAIN, Continuous(1), prefix_cache=True).evicted_blocks == 0


# Limits.


def test_synchronous_rounds_are_their_sum():
    cost, B, P, G = Affine(), 16, 300, 100
    run = simulate(crowd(5 * B, P, G), cost, Continuous(B))
    steps = sum(cost.step_s(B, B * (P + j)) for j in range(G - 1))
    assert run.end_s == pytest.approx(5 * (B * cost.step_s(0, 0, P, 0) + steps))
    static = simulate(crowd(5 * B, P, G), cost, Static(B))
    assert static.end_s == pytest.approx(5 * (cost.step_s(0, 0, B * P, 0, B) + steps))


def test_the_share_that_a_static_batch_wastes():
    B, cost = 32, Affine(weights_s=0.1, token_s=0.0, cached_s=0.0)
    rows = poisson(math.inf, 50 * B, prompt=1, output=serving.uniform(1, 400), seed=3)
    run = simulate(rows, cost, Static(B))
    batches = [[r.output for r in rows[i : i + B]] for i in range(0, len(rows), B)]
    kept = [1 - inference.static_waste(batch) for batch in batches]
    longest = [max(batch) for batch in batches]
    assert run.end_s == pytest.approx(0.1 * sum(longest))
    rate = B / 0.1 * sum(k * n for k, n in zip(kept, longest, strict=True)) / sum(longest)
    assert run.tokens_per_s == pytest.approx(rate)
    best = simulate(rows, cost, Chunked(B, B + 400))
    assert best.tokens_per_s > 1.9 * run.tokens_per_s  # mean over max is near a half


def test_full_chunks_keep_every_step_at_the_budget():
    P, G, budget = 700, 60, 512
    run = simulate(crowd(2000, P, G), Affine(weights_s=0, token_s=1e-4, cached_s=0), Chunked(400, budget))
    assert middle(run) == pytest.approx(G / ((P + G - 1) * 1e-4), rel=5e-3)
    assert run.end_s == pytest.approx(2000 * (P + G - 1) * 1e-4)  # no step that is not full


@pytest.mark.parametrize(("servers", "binds"), [((1, 4), "prefill"), ((4, 1), "decode")])
def test_apart_the_slower_pool_sets_the_pace(servers, binds):
    P, G, slots = 1000, 100, 8
    run = simulate(spread(slots, 600, P, G), Affine(cached_s=0), Disaggregated(*servers, slots))
    prefill = servers[0] / (P * 5e-5) * G
    decode = servers[1] * slots / 0.01 * G / (G - 1)
    assert (prefill < decode) == (binds == "prefill")
    assert middle(run) == pytest.approx(min(prefill, decode), rel=0.02)


def test_the_balance_of_pools():
    """n_p / n_d = prefill time · slots' rate: both pools are busy then, and neither waits."""
    slots, G, step_s, prefill_s = 10, 101, 0.01, 0.05
    cost = Affine(weights_s=step_s, token_s=prefill_s / 1000, cached_s=0)
    need = prefill_s * slots / ((G - 1) * step_s)  # prefill servers for one decode server
    assert need == pytest.approx(0.5)
    rates = [middle(simulate(spread(20, 900, 1000, G), cost, Disaggregated(p, 2, slots))) for p in (1, 2)]
    assert rates[1] == pytest.approx(2 * slots / step_s * G / (G - 1), rel=0.02)
    assert rates[0] > 0.95 * rates[1]


def test_one_at_a_time_waits_as_pollaczek_and_khinchine_say():
    service, load, each = 0.1, 0.5, []
    for seed in range(4):
        rows = poisson(load / service, 8000, prompt=50, output=1, seed=seed)
        each += [served.ttft_s for served in simulate(rows, PLAIN, Continuous(1)).requests]
    assert sum(each) / len(each) == pytest.approx(service + load * service / (2 * (1 - load)), rel=0.015)


def test_prefills_stretch_the_gaps_between_tokens():
    """The mean gap is the step over what prefills leave of the time."""
    step, prompt_s, rate = 0.01, 0.02, 20.0
    cost = Affine(weights_s=step, token_s=prompt_s / 400, cached_s=0)
    run = simulate(poisson(rate, 6000, prompt=400, output=50, seed=5), cost, Continuous(10_000))
    mean = sum(served.itl_s for served in run.requests) / 6000
    assert mean == pytest.approx(step / (1 - rate * prompt_s), rel=0.03)
    assert run.itl(1) == pytest.approx(step)


def test_little_holds_for_the_batch():
    cost, rate, G = Affine(cached_s=0), 12.0, 150
    run = simulate(poisson(rate, 8000, prompt=100, output=G, seed=2), cost, Disaggregated(9, 1, 1000))
    assert run.occupancy * run.slots == pytest.approx(inference.little(rate, (G - 1) * 0.01), rel=0.03)


CASES = [
    ("LLaMA-3 8B", Slice.of(chips.V5E, "2x4"), Layout(tp=8), 1000, 400, 64),
    ("LLaMA-3 70B", Slice.of(chips.V5P, "2x2x2"), Layout(tp=8), 3000, 300, 32),
    ("Gemma-2 9B", Slice.of(chips.V5E, "2x4"), Layout(tp=8), 5000, 500, 16),
    ("Mixtral 8x7B", clusters.Cluster.of(chips.H100, 8), Layout(tp=8), 1000, 200, 48),
    (
        "DeepSeek-V3",
        clusters.Cluster.of(chips.H100, 32),
        Layout(tp=32, attention_dp=32, ep=32),
        900,
        200,
        256,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_queue_without_end_is_the_closed_form_of_inference(case):
    name, machine, layout, P, G, B = case
    model = models.find(name)
    cost = inference.case(model, machine, layout)
    want = inference.serve(model, machine, layout, P=P, G=G, batch=B)
    run = simulate(crowd(4 * B, P, G), cost, Continuous(B, prompts=layout.attention_dp))
    assert run.tokens_per_s == pytest.approx(want.tokens_per_s, rel=1e-3)


@pytest.mark.parametrize("case", CASES[:4], ids=lambda case: case[0])
def test_so_are_the_gaps_between_tokens_and_chunks(case):
    name, machine, layout, P, G, B = case
    model = models.find(name)
    cost = inference.case(model, machine, layout)
    for policy, mine, near in (("interleaved", Continuous(B), 3e-3), ("chunked", Chunked(B, B + 512), 0.02)):
        want = inference.serve(model, machine, layout, P=P, G=G, batch=B, policy=policy, chunk=512)
        run = simulate(spread(B, 12 * B, P, G), cost, mine)
        assert middle(run) == pytest.approx(want.tokens_per_s, rel=near)
        gap = sum(served.itl_s for served in run.requests[4 * B : 8 * B]) / (4 * B)
        assert gap == pytest.approx(want.itl_s, rel=0.03)


@pytest.mark.parametrize("name", ["Gemma-2 9B", "Mixtral 8x7B", "DeepSeek-V3", "LLaMA-3 8B"])
def test_steps_of_a_model_lie_on_lines(name):
    """Windows, experts and latent caches bend the cost; steps told at once are the steps one by one."""
    _, machine, layout, *_ = next(case for case in CASES if case[0] == name)
    cost = inference.case(models.find(name), machine, layout)
    rows = poisson(4, 60, prompt=serving.lognormal(3000), output=serving.geometric(400), seed=4)
    quick, slow = (simulate(rows, cost, Continuous(16), at_once=n) for n in (2**20, 1))
    for i in range(len(rows)):
        assert quick.token_times(i) == pytest.approx(slow.token_times(i), rel=1e-9)


# Latencies under load.


@pytest.mark.parametrize("policy", [Continuous(8), Chunked(8, 300), Disaggregated(1, 1, 8), Static(8)])
def test_clients_keep_as_many_under_way_and_wait_as_little_says(policy):
    """The interactive response time law: throughput times latency is the number of clients."""
    rows = [Request(0.0, 20 + i % 7, 5 + i % 11) for i in range(300)]
    run = simulate(rows, PLAIN, policy, clients=5)
    upto = run.requests[-1].request.arrival_s
    inside = [moment.waiting + moment.inside for moment in run.queue if 0 < moment.time_s < upto]
    assert max(inside) == 5
    mean = sum(served.latency_s for served in run.requests) / 300
    assert 300 / run.end_s * mean == pytest.approx(5, rel=0.03)
    assert simulate(rows, PLAIN, policy, clients=300).requests == simulate(rows, PLAIN, policy).requests


def test_a_client_alone_waits_for_nobody():
    rows = [Request(0.0, 50, 4), Request(0.0, 50, 2), Request(0.0, 5000, 9), Request(0.0, 50, 3)]
    run = simulate(rows, PLAIN, Continuous(4), clients=1, blocks=Blocks(10))
    assert [served.outcome for served in run.requests] == ["finished", "finished", "refused", "finished"]
    assert [served.request.arrival_s for served in run.requests] == pytest.approx([0, 0.4, 0.6, 0.6])
    assert [s.ttft_s for s in run.requests if s.tokens] == pytest.approx([0.1, 0.1, 0.1])
    gone = [Request(0.0, 50, 9, cancel_s=0.35), Request(0.0, 50, 9, cancel_s=0.35)]
    run = simulate(gone, PLAIN, Continuous(4), clients=1)
    assert [served.request.cancel_s for served in run.requests] == pytest.approx([0.35, 0.75])
    assert [served.tokens for served in run.requests] == [4, 4]


def test_latency_grows_with_load_and_throughput_levels_off():
    """The shape of every published curve: flat, a knee, a wall."""
    cost = Affine()
    loads = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0)
    runs = [
        simulate(poisson(load, 600, prompt=serving.lognormal(500), output=200, seed=1), cost, Continuous(32))
        for load in loads
    ]
    rates, firsts = [run.tokens_per_s for run in runs], [run.ttft(90) for run in runs]
    assert firsts == sorted(firsts)
    assert rates[1] == pytest.approx(2 * rates[0], rel=0.02)  # served as they come
    assert rates[-1] == pytest.approx(rates[-2], rel=0.03)  # no more than there is
    assert firsts[-1] > 20 * firsts[0]
    goods = [run.goodput(ttft_s=0.5, itl_s=0.05) for run in runs]
    assert goods.index(max(goods)) not in (0, len(loads) - 1)  # more load is better, then worse
    assert goods[-1] < 0.5 * max(goods)


def test_goodput_and_percentiles_by_hand():
    run = simulate(crowd(4, 100, 2), PLAIN, Continuous(1))
    assert [round(served.ttft_s, 6) for served in run.requests] == [0.1, 0.3, 0.5, 0.7]
    assert (run.ttft(50), run.ttft(51), run.ttft(100)) == pytest.approx((0.3, 0.5, 0.7))
    assert run.latency(0) == pytest.approx(0.2)
    assert run.attained(ttft_s=0.4) == 0.5
    assert run.attained(ttft_s=0.4, itl_s=0.05) == 0
    assert run.goodput(ttft_s=0.4) == pytest.approx(2 / 0.8)
    assert run.requests_per_s == pytest.approx(4 / 0.8)
    assert (run.mean_present, run.occupancy) == pytest.approx((2.5, 1))  # one has the slot


# Workloads, words and errors.


def test_workloads_have_their_means_and_their_seed():
    rows = poisson(5, 20_000, prompt=serving.lognormal(700, 0.8), output=serving.geometric(200), seed=9)
    assert rows[-1].arrival_s / 20_000 == pytest.approx(0.2, rel=0.02)
    assert sum(r.prompt for r in rows) / 20_000 == pytest.approx(700, rel=0.03)
    assert sum(r.output for r in rows) / 20_000 == pytest.approx(200, rel=0.03)
    assert rows == poisson(
        5, 20_000, prompt=serving.lognormal(700, 0.8), output=serving.geometric(200), seed=9
    )
    assert rows[:9] != poisson(
        5, 9, prompt=serving.lognormal(700, 0.8), output=serving.geometric(200), seed=8
    )
    evenly = [r.prompt for r in poisson(5, 5000, prompt=serving.uniform(3, 7), output=1)]
    assert (min(evenly), max(evenly)) == (3, 7)
    shared = poisson(5, 200, prompt=10, output=1, families=3, prefix=30, patience_s=2.0)
    assert {r.family for r in shared} == {1, 2, 3}
    assert all(r.prompt == 40 and r.cancel_s == pytest.approx(r.arrival_s + 2) for r in shared)


def test_a_trace_is_read_with_and_without_names():
    rows = [
        {"arrival_s": "0.5", "prompt": "10", "output": "3", "model": "x", "cancel_s": ""},
        (1, 20, 4, 5, 2),
    ]
    assert serving.trace(rows) == (Request(0.5, 10, 3), Request(1.0, 20, 4, 5, 2))


def test_results_say_what_they_are():
    run = simulate([Request(0, 100, 3), Request(0, 9000, 3)], PLAIN, Continuous(2), blocks=Blocks(100, 16))
    assert str(run) == (
        "continuous batching in 2 slots, prefill first: 1 finished, 1 refused in 300 ms, 10 tokens/s; first "
        "token after 100 ms (99th percentile 100 ms), the next ones every 100 ms (100 ms); 50 % of the slots "
        "taken"
    )
    assert (
        str(run.requests[0])
        == "finished: first token after 100 ms, 3 tokens, one every 100 ms, 300 ms in all"
    )
    assert str(run.requests[1]) == "refused without a token after 0 s"
    assert str(simulate([], PLAIN, Static(4))).startswith("static batches of up to 4:")
    for told in (Chunked(2, 300), Disaggregated(1, 2, 3, 1e-6), Blocks(5), Affine(), Request(1, 2, 3, 2, 1)):
        assert str(told) == f"{told}" != repr(told)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Request(-1, 5, 5), "from 0 on"),
        (lambda: Request(0, 0, 5), "at least 1 of each"),
        (lambda: Request(0, 5, 5, prefix=11), "write 0 to 10"),
        (lambda: Request(2, 5, 5, cancel_s=1), "before its arrival"),
        (lambda: poisson(0, 5, prompt=1, output=1), "positive rate"),
        (lambda: poisson(1, 5, prompt=1, output=1, prefix=5), "write both"),
        (lambda: serving.trace([{"prompt": 5}]), "no arrival_s"),
        (lambda: serving.uniform(5, 4), "low <= high"),
        (lambda: serving.geometric(0.5), "at least 1"),
        (lambda: serving.lognormal(0.5), "at least 1"),
        (lambda: Static(0), "from 1 on"),
        (lambda: Continuous(4, prompts=0), "from 1 on"),
        (lambda: Chunked(64, 64), "more than 64"),
        (lambda: Disaggregated(1, 1, 1, transfer_s=-1), "from 0 on"),
        (lambda: Blocks(4, spare=1.0), "below 1"),
        (lambda: simulate([], PLAIN, "greedy"), "is no policy"),
        (lambda: simulate([], PLAIN, Static(1), clients=0), "at least 1"),
        (lambda: simulate([], PLAIN, Static(1)).ttft(), "no request"),
        (lambda: simulate(crowd(1, 1, 1), PLAIN, Static(1)).ttft(101), "0 to 100"),
        (lambda: simulate(crowd(1, 1, 1), PLAIN, Static(1)).itl(), "no request"),
        (lambda: simulate(crowd(1, 1, 1), PLAIN, Static(1)).rate(2, 1), "before and one after"),
    ],
)
def test_errors_say_what_to_write(made, words):
    with pytest.raises(ServingError, match=words):
        made()
