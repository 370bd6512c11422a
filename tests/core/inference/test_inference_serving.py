"""The steady state, hand-off, pools, prefixes, drafts and rules of thumb: published numbers and laws."""

from dataclasses import replace

import pytest

from scalingbook_lib import inference, models, rules
from scalingbook_lib.inference import PEAK, Layout, LayoutError, ServingEfficiency, by_type
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import BF16, FP4, FP8, GB, INT4, INT8

L70B, L8B = models.find("Llama 3 70B"), models.find("Llama 3 8B")
SIXTEEN, HOST = Slice.of(chips.V5E, "4x4"), Cluster.of(chips.H100, 8)
LAYOUT = Layout(tp=16, kv_batch=2, weights=INT8, kv=INT8)
ONE = Cluster.of(chips.H100, 1)


def test_interleaved_serving_adds_every_prompt_to_the_decode_steps():
    found = inference.serve(L70B, SIXTEEN, LAYOUT, P=2048, G=512, batch=64)
    step = inference.decode(L70B, SIXTEEN, LAYOUT, batch=64, S=2048 + 256)
    read = inference.prefill(L70B, SIXTEEN, LAYOUT, P=2048)
    assert found.cycle_s == pytest.approx(511 * step.total_s + 64 * read.total_s)
    assert found.ttft_s == read.total_s
    assert found.prefill_share == pytest.approx(64 * read.total_s / found.cycle_s)
    share = found.prefill_share  # mean inter-token latency = step / (1 - rho)
    assert found.itl_s == pytest.approx(step.total_s / (1 - share))
    assert found.usd_per_million(1.2) == pytest.approx(1.2 * 16 / 3600 / found.tokens_per_s * 1e6)


def test_chunks_cost_nothing_while_weights_are_waited_for():
    """A chunk up to the critical batch is free but for its attention, activations and collectives."""
    free = ServingEfficiency(overlap=1.0)
    step = inference.decode(L8B, ONE, Layout(), batch=32, S=100, efficiency=free)
    mixed = inference.mixed(L8B, ONE, Layout(), batch=32, S=100, chunk=256, efficiency=free)
    assert mixed.times.one.weights_s == step.times.one.weights_s
    assert mixed.times.one.matmul_s == step.times.one.matmul_s == 0
    more = inference.mixed(L8B, ONE, Layout(), batch=32, S=100, chunk=270, efficiency=free)
    assert more.times.one.weights_s == 0
    assert more.times.one.matmul_s > step.times.one.weights_s


def test_chunks_that_are_too_small_feed_fewer_sequences():
    few = inference.serve(L8B, ONE, Layout(), P=4000, G=101, batch=64, policy="chunked", chunk=400)
    assert pytest.approx(400 * 100 / 4000) == few.batch
    assert few.itl_s == few.reading.total_s
    many = inference.serve(L8B, ONE, Layout(), P=4000, G=101, batch=64, policy="chunked", chunk=8000)
    assert pytest.approx(64 * 100 / 101) == many.batch  # one step of 101 is the prompt's
    assert many.itl_s > few.itl_s


def test_without_a_batch_memory_decides():
    found = inference.serve(L8B, ONE, Layout(), P=3000, G=200)
    assert inference.largest_batch(L8B, Layout(), ONE, S=3100) == found.batch
    with pytest.raises(ValueError, match="no room"):
        inference.serve(L70B, ONE, Layout(), P=3000, G=200)


def test_prompts_alone_are_served_too():
    alone = inference.serve(L8B, ONE, Layout(), P=1024, G=1, batch=8)
    assert alone.requests_per_s == pytest.approx(1 / alone.reading.total_s)
    chunked = inference.serve(L8B, ONE, Layout(), P=1024, G=1, batch=8, policy="chunked", chunk=2048)
    assert chunked.requests_per_s == pytest.approx(2 / chunked.reading.total_s)


@pytest.mark.parametrize("how", [{"P": 0}, {"G": 0}, {"cached": 100}, {"policy": "static"}])
def test_a_request_that_cannot_be_says_why(how):
    with pytest.raises(ValueError, match="write at least 1 token"):
        inference.serve(L8B, ONE, Layout(), **({"P": 100, "G": 10, "batch": 4} | how))


def test_the_hand_off_of_the_sheet_takes_54_milliseconds():
    """8,192 tokens of 70B in bf16, 2.68 GB, from two v5e hosts of 25 GB/s each."""
    found = inference.transfer(L70B, P=8192, chip=chips.V5E, chips=16)
    assert found.nbytes == arithmetic.kv_cache(L70B, 8192).nbytes == pytest.approx(2.68e9, rel=2e-3)
    assert found.seconds == pytest.approx(54e-3, rel=0.01)
    assert found.waited_s(0.91) == pytest.approx(found.seconds / 80)  # the last layer's alone
    assert found.waited_s(0) == found.seconds
    slow = inference.transfer(L70B, P=8192, chip=chips.V5E, chips=16, to_chips=4)
    assert slow.seconds == pytest.approx(4 * found.seconds)
    assert inference.transfer(L70B, P=8192, bytes_per_s=1e9).seconds == pytest.approx(2.68, rel=1e-2)


def test_the_pools_of_the_sheet():
    """0.91 s per prefill, 512 tokens: 2.99, 3.9 and 3.3 prefill replicas per decode replica."""
    for B, step_s, ratio in ((32, 19e-3, 2.99), (43, 19.5e-3, 3.9), (32, 17.2e-3, 3.3)):
        assert inference.pools(0.91, step_s, batch=B, G=512).ratio == pytest.approx(ratio, rel=0.01)
    found = inference.pools(1.0, 0.02, batch=50, G=500)
    assert found.ratio == 5
    assert (found.best(6), found.best(2)) == ((5, 1), (1, 1))
    assert found.idle(5, 2) == (0, 0.5)
    uneven = inference.pools(1.0, 0.02, batch=50, G=900)  # 2.8 for each that decodes
    assert (uneven.best(4), uneven.best(4, 2)) == ((3, 1), (2, 1))
    uneven = inference.pools(1.0, 0.02, batch=10, G=800)  # 1.6 that decode for each
    assert (uneven.best(4), uneven.best(4, 1, 2)) == ((1, 2), (1, 1))


def test_loading_a_prefix_always_pays_for_70b():
    """111 us a token at 40% MFU, 0.64 us over PCIe and 3.3 over 50 GB/s: scores come on top."""
    rough = ServingEfficiency(matmul=0.4, attention=0.4, overlap=1.0)
    found = inference.prefix(L70B, SIXTEEN, LAYOUT, P=8192, cached=4096, efficiency=rough)
    assert found.recompute_s / 4096 == pytest.approx(111e-6, rel=0.15)
    assert found.reload_s / 4096 == pytest.approx(0.64e-6, rel=0.01)
    network = inference.prefix(L70B, SIXTEEN, LAYOUT, P=8192, cached=4096, bytes_per_s=50e9, efficiency=rough)
    assert network.reload_s / 4096 == pytest.approx(3.3e-6, rel=0.01)
    assert network.pays
    even = replace(network, bytes_per_s=network.break_even_bytes_per_s)
    assert even.reload_s == pytest.approx(even.recompute_s)
    assert found.capacity_tokens(450e9) == pytest.approx(2.7e6, rel=0.02)


def test_the_drafts_of_the_sheet():
    """p = 0.8, c = 0.145: 1.57, 1.89, 2.06, 2.13, 2.14, ..., 2.07."""
    found = [inference.speculative(0.8, K, cost=0.145).speed_up for K in range(1, 8)]
    assert found == pytest.approx([1.57, 1.89, 2.06, 2.13, 2.14, 2.11, 2.07], abs=0.006)
    assert inference.best_draft(0.8, cost=0.145).draft == 5
    assert inference.best_draft(0.3, cost=0.5).draft == 0


def test_checking_is_free_until_the_critical_batch_and_then_is_not():
    def check(B):
        plain = inference.decode(L8B, ONE, Layout(), batch=B, S=1000).total_s
        return lambda T: inference.decode(L8B, ONE, Layout(), batch=B, S=1000, T=T).total_s / plain

    few = inference.best_draft(0.8, cost=0.05, verify=check(4))
    many = inference.best_draft(0.8, cost=0.05, verify=check(256))
    assert few.draft > many.draft
    assert few.verify == pytest.approx(1, abs=0.05)
    assert inference.speculative(0.8, 0, cost=0.1).speed_up == 1


def test_little_and_the_waste_of_static_batches():
    assert inference.little(3.3, 512 * 0.0195) == pytest.approx(33, rel=0.01)
    assert inference.static_waste([100, 200, 300, 400]) == pytest.approx(1 - 250 / 400)
    assert inference.static_waste([7, 7]) == 0
    with pytest.raises(ValueError, match="at least one above 0"):
        inference.static_waste([])


@pytest.mark.parametrize(("chip", "weights", "compute", "tokens"), [
    (chips.V5E, BF16, BF16, 240.5), (chips.V5E, INT8, BF16, 120.3), (chips.V5E, INT4, BF16, 60.1),
    (chips.V5E, INT8, INT8, 240.5), (chips.V5P, BF16, BF16, 166), (chips.V6E, BF16, BF16, 560.4),
    (chips.H100, BF16, BF16, 295.2), (chips.H100, FP8, FP8, 295.4), (chips.B200, FP4, FP4, 281.3),
])  # fmt: skip
def test_critical_batches_by_type(chip, weights, compute, tokens):
    found = rules.critical_batch(chip, weights=weights, compute=compute)
    assert found.tokens == pytest.approx(tokens, rel=1e-3)


def test_the_mixture_of_the_sheet_needs_1920_tokens_and_reads_ten_and_a_half_experts():
    model = replace(
        models.find("Mixtral 8x7B"), experts=models.parts.Experts(E=16, k=2, F=16384)
    )  # fmt: skip
    round_numbers = replace(chips.V5E, bf16_flops_per_s=1.944e14, hbm_bytes_per_s=8.1e11)
    assert rules.critical_batch(round_numbers, sparsity=model.sparsity).tokens == pytest.approx(1920)
    k = inference.case(model, ONE, Layout()).constants
    assert 16 * (1 - k.untouched**8) == pytest.approx(10.5, abs=0.01)


def test_the_cache_overtakes_the_weights_at_52_sequences():
    assert inference.crossover_batch(L70B, S=8192, weights=INT8, kv=INT8).sequences == pytest.approx(
        52, rel=0.01
    )
    assert inference.crossover_batch(L70B, S=2048, weights=INT8, kv=INT8).sequences == pytest.approx(
        209, rel=0.015
    )


def test_the_rules_of_the_sheet():
    round_numbers = replace(chips.V5E, hbm_bytes=16 * GB, hbm_bytes_per_s=8.2e11)
    assert rules.hbm_read_time_s(round_numbers) == pytest.approx(19.5e-3, rel=2e-3)
    assert rules.evicted(32, 8192, 4096)[0] == pytest.approx(0.0078, rel=2e-3)
    assert rules.evicted(32, 8192, 4096)[1] == 96
    assert rules.hops_s(126, 14, chips.V5E) == pytest.approx(7.06e-3, rel=1e-3)


@pytest.mark.parametrize("limit_ms", [4, 8, 15, 40])
@pytest.mark.parametrize("cache", [0.0, 2.11e9])
def test_the_largest_batch_within_a_latency_takes_just_that_long(limit_ms, cache):
    """405B in int8 on 128 chips: 3.9 ms is the least, and 285 sequences of 8,192 tokens take 15 ms."""
    chip = replace(chips.V5E, hbm_bytes_per_s=8.1e11)
    B = rules.batch_within(limit_ms / 1e3, 405.85e9, chip, 128, cache_bytes=cache, weights=INT8)
    step = rules.decode_step(405.85e9, chip, 128, batch=B, cache_bytes=cache, weights=INT8)
    assert step.total_s == pytest.approx(limit_ms / 1e3)
    if limit_ms == 15 and cache:
        assert pytest.approx(285, rel=5e-3) == B
    assert rules.batch_within(3.8e-3, 405.85e9, chip, 128, cache_bytes=cache, weights=INT8) == 0


def test_narrow_weights_do_not_speed_decoding_by_their_bytes():
    """gpt-fast on an A100: 1,397, 1,069 and 863 GB/s in bf16, int8, int4; a time for each weight does it."""
    e = ServingEfficiency(weights=0.9, dequantize_s=by_type(0.0, int8=1.6e-13, int4=2.5e-13))
    reads = []
    for weights in (BF16, INT8, INT4):
        k = inference.case(L8B, Cluster.of(chips.A100, 1), Layout(weights=weights), e).constants
        reads.append(k.mlp.read_s)
    assert reads[0] > reads[1] > reads[2]
    assert reads[0] / reads[1] < 2
    assert reads[1] / reads[2] < 2


def test_types_of_experts_and_of_the_ends_are_their_own():
    oss = models.find("gpt-oss 120B")
    layout = Layout(experts=FP4, experts_compute=BF16)
    held = inference.memory(oss, layout, ONE, batch=1, S=1).weights
    assert held == pytest.approx(2 * (oss.params - oss.by_part["experts"]) + oss.by_part["experts"] / 2)
    quantized = inference.memory(L8B, Layout(weights=INT4, outer=BF16), ONE, batch=1, S=1).weights
    ends = L8B.by_part["embedding"] + L8B.by_part["unembedding"]
    norms = L8B.by_part["norms"]
    assert quantized == pytest.approx(2 * ends + 2 * norms + (L8B.params - ends - norms) / 2)


def test_an_efficiency_tells_what_it_states_and_refuses_what_cannot_be():
    assert "documented peak" in str(PEAK)
    assert "weights (0.9, int4 0.6)" in str(
        ServingEfficiency(weights=by_type(0.9, int4=0.6), name="measured")
    )
    for wrong in (("kv", 0.0), ("layer_s", -1.0), ("overlap", 2.0)):
        with pytest.raises(ValueError, match="write a"):
            replace(PEAK, **dict([wrong]))
    with pytest.raises(ValueError, match="write a share of the peak"):
        ServingEfficiency(matmul=by_type(1.0, int8=1.2))


def test_a_chip_without_the_type_to_compute_in_says_so():
    with pytest.raises(ValueError, match="no fp8 rate of"):
        inference.decode(L8B, SIXTEEN, Layout(tp=16, compute=FP8), batch=1, S=1)
    with pytest.raises(LayoutError, match="choose tp · cp · pp as a divisor"):
        inference.decode(L8B, SIXTEEN, Layout(tp=32), batch=1, S=1)


def test_results_tell_themselves():
    told = [
        inference.memory(L8B, Layout(), ONE, batch=4, S=100), rules.critical_batch(chips.H100),
        inference.crossover_batch(L8B, S=100), inference.transfer(L8B, P=100, bytes_per_s=1e9),
        inference.pools(1, 0.01, batch=8, G=100), inference.prefix(L8B, HOST, Layout(), P=100, cached=50),
        inference.speculative(0.5, 2, cost=0.1), inference.serve(L8B, ONE, Layout(), P=10, G=10, batch=2),
        rules.decode_step(8e9, chips.H100, 1, batch=1, cache_bytes=1e6),
        rules.two_dimensional_layout(10, 40, 8, chips.V5P),
        Layout(tp=8, kv_batch=2), inference.case(L8B, HOST, Layout(tp=8)).traffic[0],
    ]  # fmt: skip
    assert all(len(str(one)) > 20 and "=" not in str(one)[:15] for one in told)
