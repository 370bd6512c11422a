"""A serving step against its published numbers, against the counts of `arithmetic`, and against its parts."""

from dataclasses import replace

import pytest

from scalingbook_lib import inference, models, rules
from scalingbook_lib.inference import Layout, ServingEfficiency
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.models import Transformer, arithmetic
from scalingbook_lib.units import BF16, FP8, GB, INT4, INT8

L70B, L8B = models.find("Llama 3 70B"), models.find("Llama 3 8B")
V3 = models.find("DeepSeek-V3")
SIXTEEN = Slice.of(chips.V5E, "4x4")
HOST = Cluster.of(chips.H100, 8)
HOSTS = Cluster.of(chips.H100, 64)
INT8_16 = Layout(tp=16, kv_batch=2, weights=INT8, kv=INT8)
ROUND = replace(chips.V5E, name="v5e in round numbers", hbm_bytes=16 * GB, hbm_bytes_per_s=8.2e11)
PALM = Transformer(
    name="PaLM 540B", D=18432, L=118, V=256000, N=64, K=1, H=256, F=73728, tied=True, norms=1
)  # padded to 64 heads, as Pope et al. ran it


# ---- the counts are those of `arithmetic` ----


@pytest.mark.parametrize(
    "model", [L70B, models.find("Gemma-2 27B"), models.find("Mixtral 8x7B")], ids=lambda m: m.name
)
def test_the_chips_together_do_the_flops_that_arithmetic_counts(model):
    B, S = 64, 3000
    found = inference.case(model, HOST, Layout(tp=4))
    s = found.shape
    counted = arithmetic.flops(model, B, 1, S=S, absorbed=True)
    products = 2 * B * (s.projections.met + s.mlp.met + s.experts.met + s.head.met) * 4
    assert products == pytest.approx(counted.weights + 3 * counted.get("router"))  # each chip has all of it
    pairs = sum(k.flops * min(S, k.window) for k in s.kinds) * B * 4
    assert pairs == pytest.approx(counted.attention)


def test_latent_heads_are_absorbed_in_decoding_and_the_projections_counted():
    s = inference.case(V3, HOST, Layout(tp=8)).shape
    counted = arithmetic.flops(V3, 1, 1, S=4096, absorbed=True)
    assert sum(k.flops * 4096 for k in s.kinds) * 8 == pytest.approx(counted.attention)
    whole = inference.case(V3, HOST, Layout()).shape
    products = 2 * (whole.projections.met + whole.mlp.met + whole.experts.met + whole.head.met)
    assert products == pytest.approx(counted.weights)


def test_a_prefill_does_the_flops_of_a_causal_forward_pass():
    P = 4096
    step = inference.prefill(L8B, Cluster.of(chips.H100, 1), Layout(), P=P)
    counted = arithmetic.flops(L8B, 1, P, causal=True, logits=1)
    head = counted.get("unembedding")
    expected = (counted.weights - head) / chips.H100.bf16_flops_per_s
    assert step.terms["matmul"] == pytest.approx(expected)
    assert step.terms["attention"] == pytest.approx(counted.attention / chips.H100.bf16_flops_per_s)
    assert step.times.one.head_waits
    assert step.terms["weights"] == pytest.approx(step.times.one.head_s)


def test_a_latent_prefill_makes_keys_anew_where_that_is_less():
    P, one = 8192, Cluster.of(chips.H200, 1)
    step = inference.prefill(V3, one, Layout(), P=P)
    counted = arithmetic.flops(V3, 1, P, causal=True, logits=1)
    assert step.terms["attention"] == pytest.approx(counted.attention / chips.H200.bf16_flops_per_s)
    late = inference.mixed(V3, one, Layout(), batch=0, S=0, chunk=1, chunk_context=P)
    absorbed = arithmetic.flops(V3, 1, 1, S=P + 1, absorbed=True).attention
    busy = absorbed / chips.H200.bf16_flops_per_s
    read = arithmetic.kv_cache(V3, P + 1).nbytes / chips.H200.hbm_bytes_per_s
    assert late.times.one.kv_s + late.times.one.attention_s == pytest.approx(max(busy, read))


@pytest.mark.parametrize("name", ["Llama 3 70B", "Gemma-3 27B", "gpt-oss 120B", "DeepSeek-V3"])
def test_the_cache_is_that_of_arithmetic(name):
    model = models.find(name)
    held = inference.memory(model, Layout(), HOST, batch=7, S=9000).kv
    assert held == pytest.approx(arithmetic.kv_cache(model, 9000, sequences=7).nbytes)


@pytest.mark.parametrize("name", ["Llama 3 70B", "Llama 3.2 1B", "GPT-2 124M", "Mixtral 8x7B", "DeepSeek-V3"])
def test_one_chip_holds_all_parameters(name):
    model = models.find(name)
    assert inference.memory(model, Layout(), HOST, batch=1, S=1).weights == pytest.approx(2 * model.params)


def test_a_chip_that_is_full_to_the_last_byte_holds_it():
    held = inference.memory(L8B, Layout(), HOST, batch=3, S=1000, reserve=0.1)
    assert replace(held, chip=replace(chips.H100, hbm_bytes=held.total)).fits
    assert not replace(held, chip=replace(chips.H100, hbm_bytes=held.total - 1)).fits


def test_heads_are_copied_where_ways_are_more_than_heads():
    whole = inference.memory(L70B, Layout(tp=8), SIXTEEN, batch=32, S=8192).kv
    assert inference.memory(L70B, Layout(tp=16), SIXTEEN, batch=32, S=8192).kv == whole  # 8 heads on 16 chips
    assert inference.memory(L70B, Layout(tp=16, kv_batch=2), SIXTEEN, batch=32, S=8192).kv == whole / 2
    assert inference.memory(L70B, Layout(tp=16, kv_sequence=2), SIXTEEN, batch=32, S=8192).kv == whole / 2
    cache = arithmetic.kv_cache(L70B, 8192, sequences=32).nbytes
    assert 16 * inference.memory(L70B, Layout(tp=16), SIXTEEN, batch=32, S=8192).kv == 2 * cache  # two copies


def test_latent_vectors_are_copied_to_every_chip_of_a_group():
    one = inference.memory(V3, Layout(), HOST, batch=8, S=4096).kv
    assert inference.memory(V3, Layout(tp=8), HOST, batch=8, S=4096).kv == one
    assert inference.memory(V3, Layout(tp=8, attention_dp=8), HOST, batch=8, S=4096).kv == one / 8


def test_activations_of_a_chip_do_not_grow_with_the_groups_that_share_experts():
    def working(n):
        layout = Layout(tp=n, ep=n, attention_dp=n, weights=FP8)
        return inference.memory(V3, layout, HOSTS, batch=32 * n, S=4096, step_tokens=8192 * n).activations

    # 8,192 tokens of the group: two vectors of width 7,168, as many copies for each of 8 experts, and up and
    # gate of width 2,048 for each copy, all in bf16
    assert working(64) == working(8) == 8192 * 2 * (2 * 7168 + 8 * (2 * 7168 + 2 * 2048))


def test_the_compiled_70b_step_holds_the_argument_bytes_that_were_measured():
    """XLA:TPU, v5e 4x4, Z2 x Y8, int8, B = 32, S = 8,192: 7.18 GB of arguments, 2 all-to-alls a layer."""
    held = inference.memory(L70B, INT8_16, SIXTEEN, batch=32, S=8192)
    assert held.weights + held.kv == pytest.approx(7.18e9, rel=2e-3)
    exchanges = [r for r in inference.case(L70B, SIXTEEN, INT8_16).traffic if r.what == "AllToAll"]
    assert [(r.times, r.n) for r in exchanges] == [(80, 2)] * 2


# ---- published numbers ----


TABLE = [("4x4", BF16, 43), ("2x4", INT8, 43), ("2x2", INT4, 43),
         ("4x8", BF16, 138), ("4x4", INT8, 138), ("2x4", INT4, 138)]  # fmt: skip


@pytest.mark.parametrize(("shape", "weights", "sequences"), TABLE)
def test_the_tables_of_smallest_and_doubled_slices(shape, weights, sequences):
    """70e9 parameters at w bytes, and 8,192 tokens in the same type: 43 and 138 in round numbers."""
    machine = Slice.of(ROUND, shape)
    free = machine.hbm_bytes - 70e9 * weights.bytes
    assert free // (163840 * weights.bytes * 8192) == sequences
    layout = Layout(tp=machine.chips, kv_batch=max(machine.chips // 8, 1), weights=weights, kv=weights)
    found = inference.largest_batch(L70B, layout, machine, S=8192)
    assert found == pytest.approx(sequences, rel=0.08)  # exact parameters, copies of heads, logits


@pytest.mark.parametrize(
    ("B", "ms"), [(1, 4.98), (8, 12.13), (16, 20.30), (32, 36.65), (64, 69.33), (240, 249.1)]
)
def test_the_table_of_llama_2_13b_on_eight_chips(B, ms):
    found = rules.decode_step(13e9, ROUND, 8, batch=B, cache_bytes=6.7e9)
    assert 1e3 * found.total_s == pytest.approx(ms, rel=2e-3)
    eight = Slice.of(ROUND, "2x4")
    step = inference.decode(models.find("Llama 2 13B"), eight, Layout(tp=8), batch=B, S=8192)
    assert step.times.one.kv_s + step.terms["weights"] == pytest.approx(found.total_s, rel=0.03)


PARETO = [
    (2048, 1, 5.36, 28.6), (2048, 32, 6.15, 1.03), (2048, 120, 8.40, 0.37), (2048, 240, 16.8, None),
    (8192, 32, 8.61, 1.43), (8192, 64, 11.9, 0.99), (32768, 8, 8.61, 5.7),
]  # fmt: skip


@pytest.mark.parametrize(("S", "B", "ms", "usd"), PARETO)
def test_the_pareto_rows_of_70b_on_4x4(S, B, ms, usd):
    found = rules.decode_step(70e9, ROUND, 16, batch=B, cache_bytes=163840 * S, weights=INT8)
    assert 1e3 * found.total_s == pytest.approx(ms, rel=0.01)
    if usd:
        assert found.usd_per_million(1.2) == pytest.approx(usd, rel=0.02)


def test_the_pop_quiz():
    quiz = {"cache_bytes": 8192 * 100e3, "weights": INT8}
    chip = replace(chips.V5E, hbm_bytes_per_s=8.1e11)
    assert rules.decode_step(30e9, chip, 16, batch=4, **quiz).total_s == pytest.approx(2.57e-3, rel=2e-3)
    assert rules.decode_step(30e9, chip, 16, batch=256, **quiz).total_s == pytest.approx(21.0e-3, rel=5e-3)


def test_the_sheet_step_is_the_rule_with_network_and_activations_added():
    step = inference.decode(L70B, SIXTEEN, INT8_16, batch=32, S=8192)
    met = L70B.params - L70B.V * L70B.D  # the embedding is looked up
    rule = rules.decode_step(met, chips.V5E, 16, batch=32, cache_bytes=163840 * 8192, weights=INT8)
    assert step.times.one.kv_s == pytest.approx(rule.kv_s)
    assert step.terms["weights"] == pytest.approx(rule.weights_s, rel=0.02)  # K and V projections twice
    assert step.compute_s == pytest.approx(rule.total_s, rel=0.025)


def test_hops_of_70b_on_an_unwrapped_4x4_take_two_milliseconds():
    """80 layers, 4 gathers and scatters of 6 hops each."""
    found = sum(r.hops_s for r in inference.case(L70B, SIXTEEN, Layout(tp=16)).traffic if "output" in r.name)
    assert found == pytest.approx(rules.hops_s(80, 6, chips.V5E)) == pytest.approx(1.92e-3)


def test_prefill_of_70b_takes_what_the_sheet_says_at_forty_percent():
    step = inference.prefill(
        L70B, SIXTEEN, INT8_16, P=8192, efficiency=ServingEfficiency(matmul=0.4, attention=0.4)
    )
    assert step.terms["matmul"] == pytest.approx(0.91, rel=0.01)
    assert step.terms["matmul"] + step.terms["attention"] == pytest.approx(0.98, rel=0.005)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize(("B", "S", "P", "weights", "seconds"), [
    (64, 2048, 0, INT8, 1.82 / 64), (0, 0, 2048, INT8, 0.29)])  # fmt: skip
def test_palm_540b_is_slower_than_the_peak_and_at_most_three_times(rows, B, S, P, weights, seconds):
    """Pope et al., arXiv 2211.05102, table 2: 64 TPU v4, 28.4 ms a step at B = 64 and 0.29 s for a prompt."""
    machine = Slice.of(chips.V4, "4x4x4")
    layout = Layout(tp=64, rows=rows, kv_batch=64 if B else 1, weights=weights)
    step = (inference.decode(PALM, machine, layout, batch=B, S=S) if B else
            inference.prefill(PALM, machine, layout, P=P))  # fmt: skip
    assert seconds / 3 < step.total_s < seconds


def test_deepseeks_decode_step_spends_a_third_on_the_way_to_experts():
    """About 48 ms on H800 with collectives at 40 GB/s: 22 ms of exchanges, as the trace was read."""
    network = Cluster(chip=chips.H100, chips=64, nic_bytes_per_s=40e9)
    layout = Layout(tp=64, ep=64, attention_dp=64, weights=FP8, compute=FP8, dispatch=FP8)
    step = inference.decode(V3, network, layout, batch=88 * 64, S=4989)
    assert step.terms["weights"] == pytest.approx(6.6e-3, rel=0.2)
    assert step.collectives["tokens to experts"] + step.collectives["tokens from experts"] > step.total_s / 3
    assert step.times.one.collectives_s == pytest.approx(22e-3, rel=0.45)  # a domain takes a token once


def test_a_host_prepares_sequences_while_the_chips_do_the_step_before():
    """25 µs a sequence: nothing at first, then all there is; each group of attention has its own host."""
    slow = ServingEfficiency(host_s=25e-6)
    few, many = (inference.decode(L8B, HOST, Layout(tp=8), batch=B, S=64, efficiency=slow) for B in (4, 4096))
    assert few.total_s == inference.decode(L8B, HOST, Layout(tp=8), batch=4, S=64).total_s
    assert many.total_s == pytest.approx(4096 * 25e-6)
    assert many.bottleneck == "host"
    assert sum(many.terms.values()) == pytest.approx(many.total_s)
    groups = inference.decode(L8B, HOST, Layout(tp=8, attention_dp=8), batch=4096, S=64, efficiency=slow)
    assert groups.times.host_s == pytest.approx(many.times.host_s / 8)


def test_what_rounding_leaves_is_no_wait_for_the_host():
    slow = ServingEfficiency(host_s=25e-6, fixed_s=3e-3, sequence_s=2e-6, layer_s=22e-6, matmul=0.7)
    for B in range(1, 65):
        step = inference.decode(L70B, SIXTEEN, INT8_16, batch=B, S=8192, efficiency=slow)
        assert "host" not in step.terms


def test_each_stage_starts_each_microbatch_and_waits_for_its_host():
    peak, lost = (
        inference.decode(L70B, HOST, Layout(tp=2, pp=4), batch=64, S=64, efficiency=e)
        for e in (ServingEfficiency(), ServingEfficiency(fixed_s=1e-3, host_s=25e-6))
    )
    assert lost.total_s - peak.total_s == pytest.approx(4 * 1e-3 + 64 * 25e-6)
