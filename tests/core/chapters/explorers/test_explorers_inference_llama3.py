"""The explorers of serving Llama 3 obey the laws of what they show."""

import math

import pytest
from looked import curve, panel, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.chapters.inference_llama3.explorers import breakdown, fit, pareto, pools, price
from scalingbook_book.chapters.inference_llama3.explorers import load as inference_llama3_load
from scalingbook_book.reader.explorers.view import Bars, Chart, Grid, Points, RefLine
from scalingbook_book.reader.options.machines import machine
from scalingbook_book.reader.options.serving import SERVING_MACHINES, spread
from scalingbook_book.reader.words import sig3
from scalingbook_lib import inference, models, planner
from scalingbook_lib.machines import chips
from scalingbook_lib.units import INT8

ALL = {e.key: e for e in explorers.chapter("inference_llama3")}


@pytest.mark.parametrize("where", SERVING_MACHINES)
def test_every_machine_is_offered_as_it_exists(where):
    assert machine(where).chip.name in where
    assert machine(where).chips >= 1


# The front


def test_what_is_chosen_keeps_the_target_and_nothing_that_keeps_it_is_cheaper():
    found = pareto.front(
        "Llama 3 70B", "TPU v5e 4x4", weights="int8", kv="int8", P=2048, G=512, usd="as listed"
    )
    view = ALL["inference_llama3.pareto"].view(
        model="Llama 3 70B", where="TPU v5e 4x4", weights="int8", kv="int8", P=2048, G=512, itl_ms=50.0,
        usd="as listed")  # fmt: skip
    cost, itl = readout(view, "cost of a million output tokens"), readout(view, "time between two tokens")
    assert itl <= 0.05
    assert cost == min(o.cost for o in found.options if o.itl_s <= 0.05)


def test_without_a_way_in_time_the_fastest_is_told():
    view = ALL["inference_llama3.pareto"].view(
        model="Llama 3.1 405B", where="TPU v5e 8x8", weights="bf16", kv="bf16", P=2048, G=512, itl_ms=1.0,
        usd="1")  # fmt: skip
    assert "No plan delivers" in view.verdict


def test_the_terms_of_the_chosen_way_are_its_time_between_tokens():
    view = ALL["inference_llama3.pareto"].evaluate_state({}).view
    assert sum(panel(view, Bars).series[0].values) == pytest.approx(readout(view, "time between two tokens"))


# A step, part by part


@pytest.mark.parametrize("S", [512, 8192, 131072])
def test_parts_add_up_to_the_step(S):
    model, where = "Llama 3 70B", "TPU v5e 4x4"
    o = spread(model, where, "int8", "int8")
    step = inference.decode(models.find(model), machine(where), o, batch=32, S=S)
    assert sum(breakdown.parts(step, True)) == pytest.approx(step.total_s)
    assert sum(breakdown.parts(step, False)) == pytest.approx(step.compute_s)


def test_the_knee_of_70b_in_int8_is_half_of_the_chip_s_ridge():
    sweep = breakdown.swept("Llama 3 70B", "TPU v5e 4x4", weights="int8", kv="int8", S=8192, links=True)
    assert sweep.knee == pytest.approx(chips.V5E.flops_per_s() / chips.V5E.hbm_bytes_per_s / 2)
    assert round(sweep.level) == 52


# What fits


def test_the_smallest_slices_of_70b_are_those_of_the_book():
    for kind, name in (("bf16", "TPU v5e 4x4"), ("int8", "TPU v5e 2x4"), ("int4", "TPU v5e 2x2")):
        verdict = ALL["inference_llama3.fit"].evaluate_state({"weights": kind, "kv": kind}).view.verdict
        assert verdict.startswith(f"{name} is the smallest")


def test_tanks_hold_no_more_than_there_is():
    for size in fit.SLICES["TPU v5e"]:
        found = fit.fits("Llama 3 70B", f"TPU v5e {size}", "int8", "int8", 8192)
        if found and found.sequences:
            room = found.chips * chips.V5E.hbm_bytes
            assert found.weights + found.cache + found.free == pytest.approx(room)


# What a dollar buys


def test_twice_the_price_buys_half():
    one, other = (price.Worth(chips.V5E, usd) for usd in (1.2, 2.4))
    assert (one.flops, one.read, one.held) == pytest.approx((2 * other.flops, 2 * other.read, 2 * other.held))
    assert other.decoded(1e9, 1e11) == pytest.approx(2 * one.decoded(1e9, 1e11))
    assert one.flops == pytest.approx(5.91e17, rel=1e-3)


# Simulated


def test_waiting_grows_with_the_load():
    asked = inference_llama3_load.ServerSetting(
        "Llama 3 70B", "TPU v5e 4x4", "interleaved prefill", 2048, 256
    )
    found = inference_llama3_load.server(asked)
    assert found
    waits = [inference_llama3_load.played(asked, found, load).ttft(99) for load in (0.2, 0.6, 1.2)]
    assert waits == sorted(waits)


@pytest.mark.parametrize("prefill", [1, 2, 4, 8])
def test_simulated_pools_serve_what_the_rule_says(prefill):
    found = pools.balance("Llama 3 70B", "TPU v5e 4x4", 8192, 512, 32)
    assert found
    run = pools.played(found, 8192, 512, prefill, 1)
    rule = found.pools.rate_per_s(prefill, 1)
    assert pools.served(run, 512) == pytest.approx(rule, rel=0.25)
    assert all(math.isfinite(x) for x in (run.end_s, run.ttft(99)))


def test_the_table_of_prices_and_its_points_are_drawn():
    view = ALL["inference_llama3.price"].evaluate_state({}).view
    assert len(panel(view, Grid).rows) == len(price.NAMES)
    assert not [m for m in panel(view, Chart).marks if isinstance(m, Points)]
    assert curve(view, "H100").ys == sorted(curve(view, "H100").ys)


def test_the_balance_is_drawn_only_where_there_are_so_many_servers():
    explorer = ALL["inference_llama3.pools"]
    drawn = [
        any(isinstance(m, RefLine) for m in panel(explorer.evaluate(decode=n), Chart).marks) for n in (1, 8)
    ]
    assert drawn == [True, False]
    assert "Each prefill server feeds" in explorer.evaluate(P=256).verdict


def test_a_model_that_does_not_fit_is_refused_in_a_sentence():
    told = ALL["inference_llama3.pareto"].evaluate(model="Llama 3.1 405B").verdict
    assert told.endswith("16 chips as TP 8, PP 2; 27.1 GB does not fit in 16 GiB of TPU v5e.")


def test_of_what_a_dollar_buys_every_deed_is_told_once():
    told = price._best([price.Worth(chips.V5E, 1.2)])
    assert told == (
        "Per dollar, the TPU v5e performs the most FLOPs, reads the most bytes and holds the most bytes"
    )


def test_large_prices_and_batches_have_no_exponent():
    found = pareto.front("Llama 3.1 405B", "TPU v5e 8x8", weights="int8", kv="int8", P=131072, G=16, usd="12")
    assert not any("e+" in found.price(p) + str(p.serving) for p in found.points)
    many = pareto.front("Gemma-2 27B", "B200 × 8", weights="int4", kv="int4", P=128, G=16, usd="12")
    assert not any("e+" in str(p.serving) for p in many.points)


@pytest.mark.parametrize(
    ("value", "told"), [(7.524, "7.52"), (1118.2, "1,120"), (0.04, "0.04"), (3e7, "30 M")]
)
def test_a_ratio_has_three_digits_and_never_an_exponent(value, told):
    assert sig3(value) == told


@pytest.mark.parametrize("where", ["TPU v5p 2x2x4", "TPU v5e 8x8"])
def test_the_ways_over_experts_that_are_not_tried_would_change_little(where):
    on, model = machine(where), models.find("Mixtral 8x7B")
    found = pareto.front("Mixtral 8x7B", where, weights="int8", kv="int8", P=2048, G=512, usd="as listed")
    whole = planner.serve(
        model, on, P=2048, G=512, fixed={"weights": INT8, "kv": INT8}, reserve=0.1, policies=("interleaved",),
        tried={"pp": (1,), "rows": (1,), "attention_dp": (1, 8), "kv_sequence": (1,)},
    )  # fmt: skip
    assert found.best.cost == pytest.approx(whole.best.cost, rel=0.02)
    assert found.fastest.itl_s == pytest.approx(whole.fastest.itl_s, rel=0.02)
