"""The explorers of the chapter on inference obey the laws of what they show."""

import pytest
from looked import panel, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.chapters.inference.explorers import (
    batch,
    cache,
    intensity,
    player,
    prefix,
    sampling,
    speculative,
)
from scalingbook_book.chapters.inference.explorers import experts as inference_experts
from scalingbook_book.chapters.inference.explorers import layout as inference_layout
from scalingbook_book.chapters.inference.explorers import split as inference_split
from scalingbook_book.reader.explorers.view import Bars, Timeline
from scalingbook_lib import inference, models, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.models.arithmetic.experts import active_expert_share, params_read
from scalingbook_lib.units import BF16, INT8

ALL = {e.key: e for e in explorers.chapter("inference")}


# Sampling


@pytest.mark.parametrize(("P", "G"), [(5, 4), (7, 1), (3, 9)])
@pytest.mark.parametrize("cached", [True, False])
def test_the_sums_of_sampling_are_those_of_every_pass(P, G, cached):
    name = sampling.MODELS[1]
    passes = [
        arithmetic.flops(models.find(name), 1, 1 if cached and i else P + i, S=P + i, causal=True, logits=1)
        for i in range(G)
    ]
    found = sampling.spent(name, P, G, cached)
    assert found.weights == sum(one.weights for one in passes)
    assert found.attention == sum(one.attention for one in passes)


def test_without_a_cache_it_grows_by_one_power_more():
    long = [sampling.spent("Llama 3 8B", 16, 2**e, False) for e in (14, 15)]
    kept = [sampling.spent("Llama 3 8B", 16, 2**e, True) for e in (14, 15)]
    assert long[1].weights / long[0].weights == pytest.approx(4, rel=0.01)
    assert long[1].attention / long[0].attention == pytest.approx(8, rel=0.01)
    assert kept[1].weights / kept[0].weights == pytest.approx(2, rel=0.01)
    assert kept[1].attention / kept[0].attention == pytest.approx(4, rel=0.01)


# Batches


@pytest.mark.parametrize(("weights", "B"), [("bf16", 241), ("int8", 120), ("int4", 60)])
def test_the_critical_batches_of_v5e(weights, B):
    view = ALL["inference.batch"].evaluate_state({"weights": weights}).view
    assert round(readout(view, "critical batch")) == B


def test_at_the_critical_batch_both_take_as_long():
    one = batch.ruled("Llama 2 13B", "TPU v5e", 8, weights="bf16", compute="bf16", S=0, B=1)
    knee = rules.critical_batch(chips.V5E).tokens
    assert knee * one.matmul_s == pytest.approx(one.weights_s)


# Intensity and cache


def test_queries_that_share_multiply_the_intensity_and_divide_the_cache():
    found = intensity
    mha, gqa = (found.intensity(f, 8192, 1, BF16).flops_per_byte for f in ("MHA 64", "GQA 8"))
    assert gqa / mha == pytest.approx(8, rel=0.01)
    assert found.per_token("MHA 64", BF16) == 8 * found.per_token("GQA 8", BF16)
    assert found.per_token("GQA 8", INT8) * 2 == found.per_token("GQA 8", BF16) == 327_680


@pytest.mark.parametrize("local", cache._LOCAL)
def test_smaller_blocks_never_hold_fewer_sequences(local):
    layers = cache.kinds("Llama 3 8B", "TPU v5e 2x2", "bf16", local)
    held = [cache.filled(layers, 50e9, 1024, 8192, b) for b in cache.BLOCKS]
    assert [h.sequences for h in held] == sorted((h.sequences for h in held), reverse=True)
    assert held[0].wasted == pytest.approx(0, abs=1e-3 * held[0].used)
    assert all(h.used + h.wasted <= 50e9 for h in held)


def test_windows_keep_less_of_long_sequences_only():
    whole, local = (cache.kinds("Llama 3 8B", "H100 × 1", "bf16", name) for name in
                    ("the model's own", "5 of 6"))  # fmt: skip
    assert cache.kept(local, 1024) == pytest.approx(cache.kept(whole, 1024))
    ratio = cache.kept(local, 131072) / cache.kept(whole, 131072)
    assert ratio == pytest.approx(1 / 6, rel=0.05)


# Layouts


@pytest.mark.parametrize("kind", inference_layout.MODELS)
@pytest.mark.parametrize("heads", [1, 2, 4, 8])
@pytest.mark.parametrize("rest", inference_layout.REST)
def test_what_a_chip_keeps_is_its_eighth_times_the_copies(kind, heads, rest):
    m, ways = models.find(inference_layout.MODELS[kind]), inference_layout.split(heads, rest)
    held = inference.memory(
        m, inference_layout.layout(ways), inference_layout.machine("TPU v5e 2x4"), batch=32, S=8192
    )
    whole = arithmetic.kv_cache(m, 8192, INT8, sequences=32).nbytes
    assert held.kv == pytest.approx(whole / 8 * inference_layout._waste(m.K, ways, 32))


def test_two_dimensions_win_on_many_chips_and_not_on_few():
    few, many = (
        inference_split.ways("Llama 3.1 405B", f"TPU v5e {shape}", 16, 2048) for shape in ("2x2", "8x16")
    )
    assert min(few, key=lambda rows: few[rows].total_s) == 1
    assert min(many, key=lambda rows: many[rows].total_s) > 1


def test_parts_of_a_step_with_experts_add_up_and_more_tokens_touch_more_experts():
    for how in (inference_experts.ONE, inference_experts.APART):
        step = inference_experts.stepped("DeepSeek-V3", "H200 × 16", how, weights="int8", B=256, S=4096)
        assert step
        assert sum(inference_experts.parts(step).values()) == pytest.approx(step.total_s)
    shares = [active_expert_share(8, 2, B) for B in (1, 2, 8, 4096)]
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(1 / 4)
    assert shares[-1] == pytest.approx(1)


# Simulated


@pytest.mark.parametrize("name", player.POLICIES)
def test_every_policy_gives_every_request_all_its_tokens(name):
    run = player.played(name, 6, P=2048, G=64, rate=4.0, budget=256)
    assert run.outcomes()["finished"] == player.REQUESTS
    assert run.tokens == sum(served.request.output for served in run.requests)
    view = ALL["inference.player"].evaluate_state({"name": name}).view
    assert panel(view, Timeline).spans


def test_more_room_finds_more_and_all_the_room_finds_all_but_the_first():
    rates = [
        prefix.played("Llama 3 70B", 8, 2048, prefix.room(8, 2048, x), True).hit_rate
        for x in (0.125, 0.5, 2.0)
    ]
    assert rates == sorted(rates)
    run = prefix.played("Llama 3 70B", 8, 2048, prefix.room(8, 2048, 2.0), True)
    assert run.prompt_tokens[1] == (prefix.REQUESTS - 8) * 2048


def test_the_dial_is_the_library_s_and_large_batches_pay_for_checks():
    view = ALL["inference.speculative"].evaluate_state({}).view
    times = speculative.checks("Llama 3 70B", "TPU v5e 4x4", 2048, 4)
    one = inference.speculative(0.8, 4, cost=0.14, verify=times[4] / times[0])
    assert readout(view, "speedup") == pytest.approx(one.speed_up)
    many = speculative.checks("Llama 3 70B", "TPU v5e 4x4", 2048, 512)
    assert many[4] / many[0] > 2 > times[4] / times[0]
    assert sum(s.values[1] for s in panel(view, Bars).series) == pytest.approx(one.tokens * times[0])


@pytest.mark.parametrize("model", batch.MODELS)
def test_the_critical_batch_that_is_told_is_where_the_drawn_lines_cross(model):
    knee, _ = batch.crossing(model, "TPU v5e", "bf16", "bf16")
    how = {"weights": "bf16", "compute": "bf16", "S": 0}
    below, above = (batch.ruled(model, "TPU v5e", 8, B=round(knee * x), **how) for x in (0.98, 1.02))
    assert below.weights_s > below.matmul_s
    assert above.weights_s < above.matmul_s


def test_few_sequences_read_few_experts():
    m = models.find("Mixtral 8x7B")
    assert params_read(m, 1) == pytest.approx(m.active_params)
    assert params_read(m, 4096) == pytest.approx(m.params)


@pytest.mark.parametrize("mean", [128, 1024])
def test_lengths_have_the_mean_that_was_asked_for_where_nothing_is_cut(mean):
    found = cache.lengths(mean, 131072)
    assert sum(found) / len(found) == pytest.approx(mean, rel=0.02)
    assert max(cache.lengths(8192, 8192)) == 8192


def test_whole_sequences_are_shared_out_once_and_some_chips_may_have_none():
    assert [inference_layout._whose(at, 4, 10) for at in range(4)] == [
        "1–3 of 10",
        "4–6 of 10",
        "7–9 of 10",
        "10 of 10",
    ]
    assert [inference_layout._whose(at, 4, 1) for at in range(4)] == ["1 of 1", "none", "none", "none"]


def test_a_verdict_says_where_the_memory_is_too_small():
    split, layout = ALL["inference.split"], ALL["inference.layout"]
    assert "need 32 chips" in split.evaluate(n="8").verdict
    assert "need" not in split.evaluate(n="32").verdict
    assert "exceeds its 16 GiB" in layout.evaluate(B=256).verdict
    assert "holds none" in ALL["inference.speculative"].evaluate(model="Llama 3.1 405B").verdict


# Tiers


def test_the_bars_of_the_tiers_are_their_bytes_and_descriptors():
    view = ALL["inference.tiers"].evaluate(block=16, descriptor=10.0)
    bars = panel(view, Bars)
    computed, nbytes, pieces = (series.values for series in bars.series)
    assert computed[0] == pytest.approx(readout(view, "recompute"))
    assert pieces[1:] == pytest.approx([readout(view, "descriptors") * 1e-5] * 4)
    assert list(nbytes[1:]) == sorted(nbytes[1:])
    assert "No tier loads them faster" in view.verdict


# Agent sessions


def test_regular_sessions_fall_off_the_cliff_and_host_memory_catches_them():
    view = ALL["inference.sessions"].evaluate
    few, many = view(way="regularly", sessions=32), view(way="regularly", sessions=64)
    assert readout(few, "found in HBM") == 1
    assert readout(many, "found in HBM") == 0
    assert "overloaded" in many.verdict
    caught = view(way="regularly", sessions=64, host="2,048 GiB")
    assert readout(caught, "found or loaded") == 1
    assert readout(caught, "mean TTFT without a queue") < readout(many, "mean TTFT without a queue") / 5
