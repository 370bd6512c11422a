"""Laws of the search that leaves out: its front is that of all ways, and no way beats its bound."""

import random
from dataclasses import replace

import pytest

from scalingbook_lib import inference, models, planner
from scalingbook_lib.inference import PEAK, Drafting, ServingEfficiency
from scalingbook_lib.machines import chips, clusters
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.planner.bounds import bound
from scalingbook_lib.planner.ways import how_many, sizes
from scalingbook_lib.units import FP8, INT4

REAL = ServingEfficiency(
    matmul=0.7, weights=0.8, torus=0.7, domain=0.6, network=0.5, overlap=0.6, apart=0.4, dequantize_s=4e-14,
    layer_s=1e-5, expert_layer_s=2e-5, collective_s=1e-5, network_s=3e-5, fixed_s=1e-3, sequence_s=7e-6,
    host_s=5e-5, name="real",
)  # fmt: skip
DENSE, EXPERTS, LATENT = (
    models.find("Llama 3 8B"),
    models.find("Mixtral 8x7B"),
    models.find("DeepSeek-V2-Lite"),
)
SPARSE = replace(LATENT, latent=replace(LATENT.latent, index_heads=16, index_width=64, index_topk=512))
WINDOWS, LINEAR = models.find("Gemma-3 4B"), models.find("Qwen3-Next 80B-A3B")
NODE, FOUR, TORUS = (
    clusters.Cluster.of(chips.H100, 8),
    clusters.Cluster.of(chips.B300, 4),
    Slice.of(chips.V5P, "2x2x2"),
)
DRAFTED = Drafting(tokens=5, acceptance_length=3.1, model=models.find("Llama 3.2 1B"))
DRAFTED_32K = replace(DRAFTED, model=replace(models.find("Llama 3.2 1B"), V=32_000))  # as of EXPERTS
HEAD = Drafting(tokens=1, acceptance_length=1.8, cost=1 / 27)
CASES = [
    (DENSE, TORUS, 1024, 512, PEAK, {}),
    (DENSE, NODE, 5000, 64, REAL, {"policies": ("chunked",), "chunk": 16}),
    (DENSE, (FOUR, NODE), 100, 3000, REAL, {"usd_per_hour": 2.0, "batches": (1, 5, 30, 100)}),
    (DENSE, TORUS, 60_000, 300, REAL, {"tried": {"cp": (1, 2, 4)}}),
    (DENSE, NODE, 100, 1, PEAK, {}),
    (EXPERTS, NODE, 1024, 512, REAL, {"fixed": {"weights": FP8}, "reserve": 0.1}),
    (EXPERTS, NODE, 7, 2, PEAK, {"fixed": {"weights": INT4}}),
    (LATENT, TORUS, 5000, 300, REAL, {}),
    (LATENT, FOUR, 300, 40, PEAK, {"tried": {"pp": (1, 3)}, "chunk": 64}),
    (WINDOWS, NODE, 3000, 200, REAL, {}),
    (LINEAR, NODE, 2000, 100, REAL, {"fixed": {"weights": FP8}}),
    (SPARSE, FOUR, 5000, 300, REAL, {"cached": 100}),
    (SPARSE, TORUS, 400, 900, PEAK, {"fixed": {"kv": FP8}}),
    (DENSE, NODE, 4096, 256, REAL, {"cached": 3000, "chunk": 2048}),
    (DENSE, NODE, 900, 700, REAL, {"drafting": Drafting(tokens=3, acceptance_length=2.4, cost=1 / 32)}),
    (DENSE, TORUS, 900, 2, PEAK, {"drafting": Drafting(tokens=4, acceptance_length=4.5, cost=0.1)}),
    (DENSE, NODE, 2000, 500, REAL, {"drafting": DRAFTED, "cached": 1990}),
    (EXPERTS, NODE, 1024, 512, REAL, {"fixed": {"weights": FP8}, "drafting": DRAFTED_32K, "cached": 512}),
    (LATENT, TORUS, 5000, 300, REAL, {"cached": 2500, "drafting": HEAD}),
    (WINDOWS, NODE, 3000, 200, REAL, {"cached": 2999, "drafting": HEAD}),
]  # fmt: skip


def asked(case, **more):
    model, machine, P, G, efficiency, how = case
    return planner.serve(model, machine, P=P, G=G, efficiency=efficiency, **how, **more)


def told(front):
    return [
        (p.itl_s, p.cost, p.ttft_s, p.sequences, p.serving.policy, p.layout, p.machine.name) for p in front
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].name} {case[2]} {case[3]}")
def test_the_front_is_that_of_all_ways_and_none_beats_its_bound(case):
    model, _, P, G, efficiency, how = case
    every, found = asked(case, every=True), asked(case)
    assert told(found) == told(every)
    assert found.ways == every.ways == every.judged
    draw = random.Random(P + G)
    for one in draw.sample(every.options, 80):
        o, slots, policy = one.layout, one.serving.slots, one.serving.policy
        plain = replace(o, pp=1, kv_batch=1, kv_sequence=1)
        unit = one.cost / (one.serving.chips / one.serving.tokens_per_s)
        for layout in (plain, o):
            on = inference.case(model, one.machine, layout, efficiency)
            kept = {name: how[name] for name in ("cached", "drafting") if name in how}
            whole = bound(on, P=P, G=G, chunk=how.get("chunk", 512), any_cache=layout is plain, **kept)
            least = whole.least(slots, o.pp, policy)
            assert least.itl_s <= one.itl_s
            assert least.cost * 3600 / 1e6 * unit <= one.cost
            assert least.ttft_s <= one.ttft_s
            wider = whole.least(2 * slots, o.pp, policy)
            assert wider.itl_s >= least.itl_s * (1 - 1e-12)
            assert wider.cost <= least.cost * (1 + 1e-12)


@pytest.mark.parametrize("late", [0.5, 1.0, 1.3])
@pytest.mark.parametrize("case", [CASES[0], CASES[5]], ids=lambda case: case[0].name)
def test_with_targets_too_and_where_none_is_in_time_the_nearest_is_told(case, late):
    fastest = asked(case).fastest
    within = {"itl_s": late * fastest.itl_s, "ttft_s": 3 * fastest.ttft_s}
    every, found = asked(case, every=True, **within), asked(case, **within)
    assert told(found) == told(every)
    if late < 1:
        assert sorted(map(str, found.rejected)) == sorted(map(str, every.rejected))


LARGE = [
    ("Falcon 40B", clusters.Cluster.of(chips.B300, 512), 148_074),
    ("Falcon 40B", clusters.Cluster.of(chips.B300, 2048), 252_170),
    ("Llama 3.1 405B", Slice.of(chips.V5P, "16x16x16"), 267_514),
]


@pytest.mark.parametrize(("name", "machine", "ways"), LARGE, ids=lambda one: str(getattr(one, "name", one)))
def test_of_a_large_machine_s_ways_a_hundredth_is_judged(name, machine, ways):
    found = planner.serve(models.find(name), machine, P=1024, G=512, reserve=0.1)
    assert found.ways == ways
    assert len(found.points) > 10
    assert found.judged < ways / 100


def test_a_search_that_is_ended_gives_the_best_so_far():
    ended = asked(CASES[0], watch=lambda done, of: done > 3 and of > 0)
    assert ended.stopped
    assert ended.points
    assert ended.judged < asked(CASES[0]).judged
    at_once = asked(CASES[0], watch=lambda done, of: True)
    assert at_once.stopped
    assert at_once.points
    assert at_once.layouts == 1


def test_batches_are_counted_without_listing_them():
    assert all(how_many(most) == len(sizes(most)) for most in range(1, 3000))
