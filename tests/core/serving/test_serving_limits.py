"""Tests of the serving simulator against closed forms: queueing theory, and the steady state of a model."""

import math

import pytest

from scalingbook_lib import inference, models, serving
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import chips, clusters
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.serving import (
    Affine,
    Chunked,
    Continuous,
    Disaggregated,
    Request,
    Static,
    poisson,
    simulate,
)

PLAIN = Affine(weights_s=0.1, token_s=0.001, cached_s=0.0)  # 0.1 s for up to 100 tokens, then 1 ms a token


def crowd(count, prompt, output):
    """Requests that all arrive at time 0."""
    return [Request(0.0, prompt, output)] * count


def staggered(slots, rest, prompt, output):
    """Requests at time 0 whose first ones have staggered lengths, so that later ones end apart too."""
    first = [Request(0.0, prompt, 1 + i * output // slots) for i in range(slots)]
    return first + crowd(rest, prompt, output)


def middle(run):
    """Tokens per second without warm-up and drain."""
    return run.tokens_per_s_between(0.3 * run.end_s, 0.7 * run.end_s)


def test_rounds_of_equal_requests_take_the_sum_of_their_steps():
    cost, B, P, G = Affine(), 16, 300, 100
    run = simulate(crowd(5 * B, P, G), cost, Continuous(B))
    steps = sum(cost.step_s(B, B * (P + j)) for j in range(G - 1))
    assert run.end_s == pytest.approx(5 * (B * cost.step_s(0, 0, P, 0) + steps))
    static = simulate(crowd(5 * B, P, G), cost, Static(B))
    assert static.end_s == pytest.approx(5 * (cost.step_s(0, 0, B * P, 0, B) + steps))


def test_a_static_batch_wastes_the_share_of_the_closed_form():
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
    assert best.tokens_per_s > 1.9 * run.tokens_per_s  # mean over maximum length is close to 1/2


def test_chunked_prefill_fills_every_step_to_its_token_budget():
    P, G, budget = 700, 60, 512
    run = simulate(crowd(2000, P, G), Affine(weights_s=0, token_s=1e-4, cached_s=0), Chunked(400, budget))
    assert middle(run) == pytest.approx(G / ((P + G - 1) * 1e-4), rel=5e-3)
    assert run.end_s == pytest.approx(2000 * (P + G - 1) * 1e-4)  # every step is full


@pytest.mark.parametrize(("servers", "binds"), [((1, 4), "prefill"), ((4, 1), "decode")])
def test_the_slower_of_the_disaggregated_pools_limits_throughput(servers, binds):
    P, G, slots = 1000, 100, 8
    run = simulate(staggered(slots, 600, P, G), Affine(cached_s=0), Disaggregated(*servers, slots))
    prefill = servers[0] / (P * 5e-5) * G
    decode = servers[1] * slots / 0.01 * G / (G - 1)
    assert (prefill < decode) == (binds == "prefill")
    assert middle(run) == pytest.approx(min(prefill, decode), rel=0.02)


def test_balanced_pools_of_prefill_and_decode_servers_are_both_busy():
    """n_prefill / n_decode = prefill time · slots / decode time of an answer."""
    slots, G, step_s, prefill_s = 10, 101, 0.01, 0.05
    cost = Affine(weights_s=step_s, token_s=prefill_s / 1000, cached_s=0)
    need = prefill_s * slots / ((G - 1) * step_s)  # prefill servers for one decode server
    assert need == pytest.approx(0.5)
    rates = [middle(simulate(staggered(20, 900, 1000, G), cost, Disaggregated(p, 2, slots))) for p in (1, 2)]
    assert rates[1] == pytest.approx(2 * slots / step_s * G / (G - 1), rel=0.02)
    assert rates[0] > 0.95 * rates[1]


def test_one_slot_waits_as_the_pollaczek_khinchine_formula_says():
    service, load, each = 0.1, 0.5, []
    for seed in range(4):
        rows = poisson(load / service, 8000, prompt=50, output=1, seed=seed)
        each += [served.ttft_s for served in simulate(rows, PLAIN, Continuous(1)).requests]
    assert sum(each) / len(each) == pytest.approx(service + load * service / (2 * (1 - load)), rel=0.015)


def test_prefills_lengthen_the_mean_inter_token_latency():
    """The mean ITL is the step time over the share of time that prefills leave."""
    step, prompt_s, rate = 0.01, 0.02, 20.0
    cost = Affine(weights_s=step, token_s=prompt_s / 400, cached_s=0)
    run = simulate(poisson(rate, 6000, prompt=400, output=50, seed=5), cost, Continuous(10_000))
    mean = sum(served.itl_s for served in run.requests) / 6000
    assert mean == pytest.approx(step / (1 - rate * prompt_s), rel=0.03)
    assert run.itl(1) == pytest.approx(step)


def test_littles_law_holds_for_the_decode_batch():
    cost, rate, G = Affine(cached_s=0), 12.0, 150
    run = simulate(poisson(rate, 8000, prompt=100, output=G, seed=2), cost, Disaggregated(9, 1, 1000))
    assert run.occupancy * run.slots == pytest.approx(inference.little(rate, (G - 1) * 0.01), rel=0.03)


CASES = [
    ("Llama 3 8B", Slice.of(chips.V5E, "2x4"), Layout(tp=8), 1000, 400, 64),
    ("Llama 3 70B", Slice.of(chips.V5P, "2x2x2"), Layout(tp=8), 3000, 300, 32),
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
def test_a_saturated_server_matches_the_closed_form_of_inference_serve(case):
    name, machine, layout, P, G, B = case
    model = models.find(name)
    cost = inference.case(model, machine, layout)
    want = inference.serve(model, machine, layout, P=P, G=G, batch=B)
    run = simulate(crowd(4 * B, P, G), cost, Continuous(B, prompts=layout.attention_dp))
    assert run.tokens_per_s == pytest.approx(want.tokens_per_s, rel=1e-3)


@pytest.mark.parametrize("case", CASES[:4], ids=lambda case: case[0])
def test_inter_token_latency_matches_the_closed_form_for_both_policies(case):
    name, machine, layout, P, G, B = case
    model = models.find(name)
    cost = inference.case(model, machine, layout)
    for policy, mine, near in (("interleaved", Continuous(B), 3e-3), ("chunked", Chunked(B, B + 512), 0.02)):
        want = inference.serve(model, machine, layout, P=P, G=G, batch=B, policy=policy, chunk=512)
        run = simulate(staggered(B, 12 * B, P, G), cost, mine)
        assert middle(run) == pytest.approx(want.tokens_per_s, rel=near)
        gap = sum(served.itl_s for served in run.requests[4 * B : 8 * B]) / (4 * B)
        assert gap == pytest.approx(want.itl_s, rel=0.03)


@pytest.mark.parametrize("name", ["Gemma-2 9B", "Mixtral 8x7B", "DeepSeek-V3", "Llama 3 8B"])
def test_fused_steps_of_a_model_equal_steps_one_by_one(name):
    """Windows, experts and latent caches make the step time piecewise affine in the cached tokens."""
    _, machine, layout, *_ = next(case for case in CASES if case[0] == name)
    cost = inference.case(models.find(name), machine, layout)
    rows = poisson(4, 60, prompt=serving.lognormal(3000), output=serving.geometric(400), seed=4)
    quick, slow = (simulate(rows, cost, Continuous(16), max_fused_steps=n) for n in (2**20, 1))
    for i in range(len(rows)):
        assert quick.token_times(i) == pytest.approx(slow.token_times(i), rel=1e-9)


@pytest.mark.parametrize(("B", "G", "P"), [(8, 32, 1000), (64, 256, 127), (64, 256, 128), (64, 32, 1000)])
def test_ttft_of_chunked_prefill_with_closed_loop_clients_matches_the_closed_form(B, G, P):
    """As many clients as slots; the first wave is staggered, so that requests do not run in lockstep."""
    model, machine, layout = models.find("llama-3-8b"), clusters.Cluster.of(chips.H100, 1), Layout()
    want = inference.serve(model, machine, layout, P=P, G=G, batch=B, policy="chunked", chunk=512)
    cost = inference.case(model, machine, layout)
    served = simulate(staggered(B, 11 * B, P, G), cost, Chunked(B, B + 512), clients=B).requests[3 * B : -B]
    assert sum(one.ttft_s for one in served) / len(served) == pytest.approx(want.ttft_s, rel=0.1)
    assert sum(one.itl_s for one in served) / len(served) == pytest.approx(want.itl_s, rel=0.1)


def test_slots_are_taken_as_erlangs_c_formula_says():
    slots, load = 8, 6.0  # requests that one slot completes per second: 1
    blocked = load**slots / math.factorial(slots) / (1 - load / slots)
    idle = sum(load**n / math.factorial(n) for n in range(slots))
    found = inference.slots_taken(load, [float(n) for n in range(1, slots + 1)])
    assert found == pytest.approx(blocked / (idle + blocked))
    assert inference.slots_taken(0, [1.0]) == 0


def test_the_ttft_of_one_slot_without_prefills_is_that_of_an_m_m_1_queue():
    # a wait with probability rho, exponential with the spare rate
    ttft_s = inference.ttft_quantile(99, 0.8, prefill_s=[1e-9], completions_per_s=[1.0])
    assert ttft_s == pytest.approx(math.log(0.8 / 0.01) / 0.2, rel=1e-6)


def test_the_ttft_of_an_idle_server_is_its_prefill():
    prefill_s = [0.1, 0.2, 0.3, 0.4]
    assert inference.ttft_quantile(60, 1e-9, prefill_s=prefill_s, completions_per_s=[1.0]) == pytest.approx(
        0.3
    )


def test_the_ttft_under_load_agrees_with_the_simulation():
    cost, B, P, G = Affine(), 16, 4000, 100  # a prefill is much longer than a decode step
    step_s = cost.step_s(B, B * (P + G // 2))
    prefill_s = cost.step_s(0, 0, P)
    completed = [n / ((G - 1) * cost.step_s(n, n * (P + G // 2)) + n * prefill_s) for n in range(1, B + 1)]
    assert completed[-1] == pytest.approx(B / ((G - 1) * step_s + B * prefill_s))
    for share in (0.5, 0.8):
        rate = share * completed[-1]
        rows = poisson(rate, 20_000, prompt=P, output=serving.geometric(G), seed=1)
        run = simulate(rows, cost, Continuous(B))
        for percentile in (50, 99):
            ttft_s = inference.ttft_quantile(
                percentile, rate, prefill_s=[prefill_s], completions_per_s=completed
            )
            assert run.ttft(percentile) == pytest.approx(ttft_s, rel=0.35), (share, percentile)


def test_a_load_without_an_equilibrium_is_refused():
    with pytest.raises(ValueError, match="5 requests/s for a server that completes 4 per second"):
        inference.slots_taken(5, [2.0, 4.0])
    with pytest.raises(ValueError, match="write a percentile above 0 and below 100"):
        inference.ttft_quantile(100, 1, prefill_s=[0.1], completions_per_s=[2.0])
