"""The simulator at its limits: closed forms of queues and pools, and the steady state of a model on chips."""

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
    """All at once."""
    return [Request(0.0, prompt, output)] * count


def spread(slots, rest, prompt, output):
    """All at once; the first ones end one after the other, so that later ones do too."""
    first = [Request(0.0, prompt, 1 + i * output // slots) for i in range(slots)]
    return first + crowd(rest, prompt, output)


def middle(run):
    """Tokens per second without the run's ends."""
    return run.rate(0.3 * run.end_s, 0.7 * run.end_s)


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


@pytest.mark.parametrize(("B", "G", "P"), [(8, 32, 1000), (64, 256, 127), (64, 256, 128), (64, 32, 1000)])
def test_so_are_first_tokens_of_chunks_of_a_closed_crowd(B, G, P):
    """As many clients as slots; the first wave ends one after the other, so that none step in time."""
    model, machine, layout = models.find("llama-3-8b"), clusters.Cluster.of(chips.H100, 1), Layout()
    want = inference.serve(model, machine, layout, P=P, G=G, batch=B, policy="chunked", chunk=512)
    cost = inference.case(model, machine, layout)
    served = simulate(spread(B, 11 * B, P, G), cost, Chunked(B, B + 512), clients=B).requests[3 * B : -B]
    assert sum(one.ttft_s for one in served) / len(served) == pytest.approx(want.ttft_s, rel=0.1)
    assert sum(one.itl_s for one in served) / len(served) == pytest.approx(want.itl_s, rel=0.1)
