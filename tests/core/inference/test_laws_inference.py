"""5,000 cases of serving: what faster chips, larger batches and longer prompts do, but for whole waves."""

import sys
from random import Random

import pytest
from laws import PLACES, RATES, SLACK, divisors, machine, rough, types

from scalingbook_lib import calibrated, inference, models
from scalingbook_lib.inference import PEAK, POLICIES, Layout, LayoutError, ServingEfficiency, by_type
from scalingbook_lib.machines.clusters import ClusterError
from scalingbook_lib.units import BF16, INT4, INT8

ROUGH = ServingEfficiency(
    matmul=by_type(0.8, int8=0.7), weights=by_type(0.9, int8=0.7), kv=0.8, attention=0.6, experts=0.5,
    memory=0.7, torus=0.8, domain=0.7, network=0.6, overlap=0.3, apart=0.2, dequantize_s=1e-13, layer_s=3e-6,
    expert_layer_s=5e-6, collective_s=4e-6, fixed_s=1e-3, sequence_s=3e-6, host_s=2e-5,
)  # fmt: skip
CASES, EACH = 5_000, 2  # cases, and how many of them share a layout


def layout(r, model, on):
    """Any division of the chips."""
    tp = r.choice(divisors(on.chips, 64))
    cp = r.choice([n for n in (1, 1, 1, 2, 4) if on.chips // tp % n == 0])
    pp = r.choice([n for n in (1, 1, 2, 3, 4, 8) if on.chips // tp // cp % n == 0])
    groups = r.choice(divisors(tp, 64)) if r.random() < 0.5 else 1
    rows = r.choice(divisors(tp, 64)) if groups == 1 and r.random() < 0.2 else 1
    ep = r.choice(divisors(tp, 64)) if rows == 1 and model.experts else 1
    kv_batch = r.choice(divisors(tp // groups, 64)) if r.random() < 0.5 else 1
    kv_sequence = r.choice(divisors(tp // groups // kv_batch, 64)) if r.random() < 0.3 else 1
    compute = r.choice(types(on.chip))
    return Layout(
        tp=tp, cp=cp, pp=pp, rows=rows, ep=ep, attention_dp=groups, kv_batch=kv_batch,
        kv_sequence=kv_sequence, compute=compute, kv=r.choice((BF16, INT8)),
        weights=r.choice((BF16, INT8, INT4)) if compute is BF16 else compute,
    )  # fmt: skip


def served(count, seed):
    """So many cases: on what, the same with one rate higher, and requests."""
    r = Random(seed)
    while count:
        (name, size), model = r.choice(PLACES), r.choice(models.CATALOG)
        on, rate = machine(name, size), r.choice(tuple(RATES)[:-1])
        if not types(on.chip):
            continue
        table = r.choice((PEAK, ROUGH, calibrated.serving(on.chip)))
        try:
            how = layout(r, model, on)
            quick = machine(name, size, rate, r.choice((1.1, 2.0, 8.0)))
            asked = [(model, one, how, table) for one in (on, quick)]
            for one in asked:
                inference.case(*one)
        except (LayoutError, ClusterError):
            continue
        for _ in range(EACH):
            cached, G = r.choice((0, 0, 10, 1000, 20_000)), r.choice((1, 2, 5, 32, 256, 2000))
            known = {"cached": cached, "G": G, "policy": r.choice(POLICIES), "efficiency": table}
            known |= {
                "chunk": r.choice((16, 128, 512, 2048, 8192)),
                "batch": r.choice((1, 3, 7, 8, 64, 1000)),
            }
            count -= 1
            yield r, asked, known | {"P": cached + r.choice((1, 7, 100, 127, 128, 500, 1000, 4000, 30_000))}


def broken(count, seed):
    """What breaks a law, by its name."""
    found = {"rate": [], "batch": [], "prompt": []}
    for r, (asked, quicker), how in served(count, seed):
        before = inference.serve(*asked[:3], **how)
        after = inference.serve(*quicker[:3], **how)
        if max(after.ttft_s / before.ttft_s, (after.itl_s or 1) / (before.itl_s or 1)) > SLACK:
            found["rate"].append((asked, quicker, how))
        B, P = how["batch"], how["P"]
        more = inference.serve(*asked[:3], **how | {"batch": r.choice((B + 1, 2 * B))})
        if more.requests_per_s * SLACK < before.requests_per_s * least(before, more):
            found["batch"].append((asked, how))
        longer = inference.serve(*asked[:3], **how | {"P": P + r.choice((1, P, r.randint(1, 500)))})
        if longer.ttft_s * SLACK < before.ttft_s * least(longer, before):
            found["prompt"].append((asked, how))
    return found


def least(one, other):
    """Whole waves, as a bound: how much less of a wave than `other` `one` has for nothing, level by level."""
    ways = [
        rough(s.layout, s.reading.load.batch or s.step.load.batch, s.reading.load.prompts)
        for s in (one, other)
    ]
    return min(1.0, *(a / b for a, b in zip(*ways, strict=True)))


@pytest.fixture(scope="module")
def breaks():
    return broken(CASES, seed=15)


def test_no_time_of_serving_grows_with_a_rate(breaks):
    assert breaks["rate"] == []


def test_throughput_does_not_fall_with_the_batch_but_for_whole_waves(breaks):
    assert breaks["batch"] == []


def test_the_first_token_waits_for_the_prompt(breaks):
    assert breaks["prompt"] == []


def test_127_and_128_tokens_of_a_prompt_are_nearly_the_same():
    """The first was read in two chunks, of five such prompts, and took twice as long."""
    model, on = models.find("llama-3-8b"), machine("H100", 1)
    few, more = (
        inference.serve(model, on, Layout(), P=P, G=256, batch=64, policy="chunked").ttft_s
        for P in (127, 128)
    )
    assert few < more < 1.01 * few


SLOWED = {  # seconds that a pass takes more, each against one law
    "rate": lambda k, load: 1e-12 / k.head.token_s,
    "batch": lambda k, load: 1e-5 * load.batch**2,
    "prompt": lambda k, load: 1 / (1 + load.chunk),
}


@pytest.mark.parametrize("law", SLOWED)
def test_the_search_finds_breaks(law, monkeypatch):
    module = sys.modules[inference.ServingCase.__module__]
    passed = module.passed

    def slowed(k, load):
        one = passed(k, load)
        one.launch_s += SLOWED[law](k, load)
        return one

    monkeypatch.setattr(module, "passed", slowed)
    assert broken(100, seed=15)[law]
