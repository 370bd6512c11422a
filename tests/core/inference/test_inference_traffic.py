"""The collectives of a serving step: those of training's forward pass, of `limits`, and of `collectives`."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from scalingbook_lib import collectives, inference, models, training
from scalingbook_lib.inference import Layout, LayoutError, ServingEfficiency
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.steps import limits
from scalingbook_lib.units import FP8, INT8

L70B, L405B, V3 = (models.find(n) for n in ("Llama 3 70B", "Llama 3.1 405B", "DeepSeek-V3"))
HOST, HOSTS = Cluster.of(chips.H100, 8), Cluster.of(chips.H100, 64)
ORACLE = json.loads((Path(__file__).parents[3] / "data" / "model_oracle.json").read_text(encoding="utf-8"))
CONFIGS = {row["name"]: row["config"] for row in ORACLE["models"]}
# each layer is a single sublayer: a token mixer or an MLP
HYBRID = models.from_hf(CONFIGS["nvidia/Nemotron-H-56B-Base-8K"])
PARALLEL = replace(L70B, name="parallel", norms=1)
WRAPPED, OPEN = Slice.of(chips.V5E, "16x16"), Slice.of(chips.V5E, "4x4")


def traffic(model, machine, layout, **more):
    return inference.case(model, machine, layout, ServingEfficiency(**more)).traffic


def named(rows, name):
    return [row for row in rows if row.name == name]


@pytest.mark.parametrize("machine", [HOST, Slice.of(chips.V5P, "2x2x2")], ids=lambda m: m.name)
@pytest.mark.parametrize("model", [L70B, PARALLEL, HYBRID], ids=lambda m: m.name)
def test_a_prefill_receives_what_trainings_forward_pass_does(machine, model):
    """A sum is a reduce-scatter and an all-gather: the vocabulary as one pair more, a parallel block one."""
    P = 4096
    found = sum(row.received(P, 0) for row in traffic(model, machine, Layout(tp=8)))
    there = training.traffic(model, training.Plan(tp=8), machine, batch=1, T=P)
    forward = [row for row in there if row.when == "fwd" and row.name == "tensor"]
    assert len(forward) == 2
    assert found == pytest.approx(sum(row.received for row in forward))


def test_where_products_and_collectives_balance_limits_says_so():
    """F such that an MLP's products take as long as its inputs and outputs, on one host."""
    limit = limits.tensor_parallel(HOST, 8)
    t, D, F = 100_000, 8192, limit.least
    math = 4 * t * D * F / 8 / chips.H100.bf16_flops_per_s
    (row,) = named(traffic(L70B, HOST, Layout(tp=8)), "MLP output")
    assert row.bandwidth_s(t, 0) / row.times == pytest.approx(math)


@pytest.mark.parametrize(("machine", "wrapped"), [(WRAPPED, True), (OPEN, False)])
def test_wraparound_is_honored(machine, wrapped):
    layout = Layout(tp=machine.shape[0])
    (row,) = named(traffic(L70B, machine, layout), "MLP output")
    axis = chips.V5E.axis(machine.shape[0], wrapped=wrapped)
    exact = collectives.all_reduce(2 * 8192 * 64, axis)
    assert row.bandwidth_s(64, 0) == pytest.approx(80 * exact.bandwidth_s)
    assert row.hops_s == pytest.approx(80 * exact.latency_s)


def test_two_dimensions_move_what_the_rule_says():
    """16 x 16 v5e, 16 rows: the MLP's gathers, sums and scatters, all but the 1/16 that stays."""
    rows = traffic(L405B, WRAPPED, Layout(tp=256, rows=16))
    W, D, F = 100e9, 16384, 53248
    (inputs,), hidden = named(rows, "inputs"), named(rows, "hidden")
    assert inputs.bandwidth_s(1, 0) / inputs.times == pytest.approx(15 / 16 * 2 * D / 16 / W)
    sums = sum(row.bandwidth_s(1, 0) / row.times for row in hidden)
    assert sums == pytest.approx(15 / 16 * 3 * 2 * F / 16 / W)  # two hidden vectors out, one back


def test_groups_of_attention_send_tokens_to_experts_and_nothing_over_all_chips_but_the_vocabulary():
    rows = traffic(V3, HOSTS, Layout(tp=64, ep=64, attention_dp=64, weights=FP8, dispatch=FP8))
    assert {row.name for row in rows} == {
        "embedding",
        "candidates",
        "tokens to experts",
        "tokens from experts",
    }
    (out,), (back,) = named(rows, "tokens to experts"), named(rows, "tokens from experts")
    assert out.times == back.times == 58
    assert back.per_token == 2 * out.per_token
    found = limits.exchange(HOSTS, 64, tokens=88, D=7168, k=8)
    assert back.bandwidth_s(88 * 64, 0) == pytest.approx(58 * found.total_s)


def test_groups_without_expert_ways_gather_and_scatter_their_tokens():
    rows = traffic(L70B, HOST, Layout(tp=8, attention_dp=4))
    (gather,) = named(rows, "tokens to all groups")
    assert (gather.what, gather.n, gather.times) == ("AllGather", 4, 80)
    assert [row.n for row in named(rows, "MLP output")] == [2]
    assert named(rows, "attention output")[0].per_token == pytest.approx(2 * 8192 / 4)


def test_experts_that_chips_split_are_gathered_and_summed_there():
    rows = traffic(V3, HOSTS, Layout(tp=64, ep=16, attention_dp=8))
    (gather,), (out,) = named(rows, "tokens within experts"), named(rows, "tokens to experts")
    assert (gather.n, out.n) == (4, 16)
    tokens = 64 * 8
    assert gather.nbytes(tokens, 0) == pytest.approx(2 * tokens * 8 * 7168 / 16)  # k copies of each


def test_a_cache_over_tokens_moves_queries_and_partial_outputs():
    rows = traffic(L70B, OPEN, Layout(tp=16, kv_sequence=2))
    (queries,), (partial,) = named(rows, "queries to tokens"), named(rows, "partial outputs")
    assert (queries.what, queries.n, partial.what) == ("AllGather", 2, "ReduceScatter")
    assert queries.per_token == 2 * 64 * 128 / 8
    assert partial.per_token == 4 * 64 * 130 / 8


def test_the_small_rows_of_new_keys_and_values_are_moved_too():
    """Eight chips with a key-value head each, and four ways over sequences: all heads of a fourth of them."""
    rows = traffic(L70B, OPEN, Layout(tp=8, kv_batch=4))
    (new,) = named(rows, "new keys and values")
    assert new.per_token == 2 * 2 * 8 * 128 / 2
    assert not named(traffic(L70B, OPEN, Layout(tp=16, kv_batch=2)), "new keys and values")  # copied heads


def test_a_prompt_is_split_by_heads_wherever_its_cache_goes():
    plain = inference.prefill(L70B, OPEN, Layout(tp=16), P=4096)
    for layout in (Layout(tp=16, kv_batch=2), Layout(tp=16, kv_sequence=4)):
        step = inference.prefill(L70B, OPEN, layout, P=4096)
        assert step.terms == plain.terms
        assert not [row for row in step.traffic if row.of == "decoded"]
    moved = inference.prefill(L70B, OPEN, Layout(tp=8, kv_batch=4), P=4096)
    (new,) = named(moved.traffic, "new keys and values")
    assert moved.collectives["new keys and values"] == pytest.approx(new.bandwidth_s(0, 0, 4096) + new.hops_s)


@pytest.mark.parametrize("model", [L70B, models.find("Gemma-3 27B")], ids=lambda m: m.name)
def test_a_ring_passes_the_keys_and_values_that_trainings_does(model):
    P, layout = 8192, Layout(tp=4, cp=4)
    step = inference.prefill(model, OPEN, layout, P=P)
    plan = training.Plan(tp=4, cp=4)
    (there,) = [row for row in training.traffic(model, plan, OPEN, batch=1, T=P)
                if row.name == "keys and values" and row.when == "fwd"]  # fmt: skip
    (here,) = named(step.traffic, "keys and values")
    assert here.received(0, 1, P / 4, P) == pytest.approx(there.received)
    assert step.collectives["keys and values"] == pytest.approx(there.seconds)


def test_groups_of_a_ring_split_a_prompt_and_the_sequences_but_no_weights():
    one, four = Layout(tp=4), Layout(tp=4, cp=4)
    alone, split = (inference.prefill(L70B, OPEN, layout, P=8192) for layout in (one, four))
    for name in ("matmul", "attention", "MLP output"):
        assert split.terms[name] == pytest.approx(alone.terms[name] / 4, rel=0.01)  # hops stay
    fewer, many = (
        inference.decode(L70B, OPEN, one, batch=8, S=900),
        inference.decode(L70B, OPEN, four, batch=32, S=900),
    )
    assert many.total_s == pytest.approx(fewer.total_s)
    held = [inference.memory(L70B, layout, OPEN, batch=8, S=900) for layout in (one, four)]
    assert held[0].weights == held[1].weights
    assert held[0].kv == 4 * held[1].kv


def test_on_an_open_4x4_a_prompt_is_read_sooner_with_four_way_tensor_and_context_parallelism():
    """Which way to shard a prefill on 4x4: the sums of 16 chips take longer than a ring of four groups."""
    wide, ring = Layout(tp=16, weights=INT8), Layout(tp=4, cp=4, weights=INT8)
    assert (
        inference.prefill(L70B, OPEN, ring, P=8192).total_s
        < inference.prefill(L70B, OPEN, wide, P=8192).total_s
    )


def test_stages_pass_their_tokens_on():
    (row,) = named(traffic(L70B, HOSTS, Layout(tp=8, pp=4)), "to the next stage")
    assert (row.what, row.times, row.per_token) == ("CollectivePermute", 3, 2 * 8192 / 8)


def test_slower_links_and_calls_cost_what_they_say():
    (peak,) = named(traffic(L70B, HOST, Layout(tp=8)), "MLP output")
    (half,) = named(traffic(L70B, HOST, Layout(tp=8), domain=0.5, collective_s=5e-6), "MLP output")
    assert half.bandwidth_s(9, 0) == pytest.approx(2 * peak.bandwidth_s(9, 0))
    assert half.hops_s == pytest.approx(peak.hops_s + 80 * 5e-6)


def test_what_can_overlap_is_hidden_as_far_as_the_rest_is_long():
    apart = inference.decode(L70B, OPEN, Layout(tp=16), batch=32, S=2048)
    beside = inference.decode(
        L70B, OPEN, Layout(tp=16), batch=32, S=2048, efficiency=ServingEfficiency(overlap=1.0)
    )
    assert apart.network_s > 0
    assert beside.network_s == pytest.approx(max(apart.network_s - apart.compute_s, 0))
    half = inference.decode(
        L70B, OPEN, Layout(tp=16), batch=32, S=2048, efficiency=ServingEfficiency(overlap=0.5)
    )
    assert half.total_s == pytest.approx((apart.total_s + beside.total_s) / 2)


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"tp": 0}, "whole number"),
        ({"tp": 8, "ep": 3}, "does not divide tp=8"),
        ({"tp": 8, "rows": 3}, "divisor"),
        ({"tp": 8, "kv_batch": 4, "kv_sequence": 4}, "does not divide the 8"),
        ({"tp": 8, "rows": 2, "attention_dp": 2}, "rows=1"),
    ],
)
def test_a_layout_that_cannot_be_says_why(layout, words):
    with pytest.raises(LayoutError, match=words):
        Layout(**layout)


@pytest.mark.parametrize(
    ("model", "layout", "words"),
    [
        (L70B, {"tp": 8, "ep": 8}, "has no experts for ep=8: write 1"),
        (V3, {"tp": 8, "rows": 2}, "rows=1"),
        (L70B, {"pp": 128}, "lower pp"),
        (L70B, {"tp": 128}, "64 heads are fewer"),
        (L70B, {"tp": 5}, "do not divide the 64"),
        (V3, {"tp": 48, "ep": 48, "attention_dp": 48}, "a divisor of their number, or redundant_experts=32"),
    ],
)
def test_a_layout_that_the_model_or_the_machine_does_not_allow_says_why(model, layout, words):
    with pytest.raises(LayoutError, match=words):
        inference.case(model, HOSTS, Layout(**layout))


def test_collectives_have_the_bytes_of_their_kind():
    (row,) = named(traffic(L70B, HOST, Layout(tp=8)), "embedding")
    assert row.nbytes(10, 3) == 10 * 2 * 8192
    assert row.received(10, 3) == pytest.approx(2 * 7 / 8 * 10 * 2 * 8192)
    (best,) = named(traffic(L70B, HOST, Layout(tp=8)), "candidates")
    assert best.nbytes(10, 3) == 3 * 8 * 8
    assert "AllReduce over Y8" in str(row)


def test_a_collective_that_leaves_a_domain_takes_longer():
    two = Cluster(chip=chips.H100, chips=16, ports=64)
    for layout, more in ((Layout(tp=16), 80), (Layout(tp=8), 0)):
        (peak,) = named(traffic(L70B, two, layout), "MLP output")
        (slow,) = named(traffic(L70B, two, layout, network_s=1e-4), "MLP output")
        assert slow.hops_s == pytest.approx(peak.hops_s + more * 1e-4)
