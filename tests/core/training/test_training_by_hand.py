"""Terms of a training step, each worked out by hand: what is read, held, gathered and summed."""

from dataclasses import replace

import pytest

from scalingbook_lib import models, training
from scalingbook_lib.machines import chips, clusters
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.models import arithmetic
from scalingbook_lib.training import Plan, PlanError, effective_width, remat
from scalingbook_lib.units import BF16, FP8, FP32

B70 = models.find("Llama 3 70B")


@pytest.mark.parametrize(
    ("name", "pairs"), [("Falcon 7B", 32), ("Mixtral 8x7B", 2 * 32), ("DeepSeek-V3", 3 * 2 + 58 * 3)]
)
def test_a_parallel_block_is_one_pair_and_shared_experts_are_one_more(name, pairs):
    model = models.find(name)
    matrices = model.params - sum(model.by_part.get(part, 0) for part in ("embedding", "unembedding"))
    assert effective_width(model) == pytest.approx(matrices / (2 * pairs * model.D), rel=1e-3)


@pytest.mark.parametrize(("master", "each"), [(FP32, 2 * (8 + 4) + 2 + 2), (None, 2 * (8 + 2) + 2 + 2)])
def test_the_optimizer_reads_and_writes_its_state_reads_a_gradient_and_writes_a_weight(master, each):
    pod = Slice.of(chips.V5P, "2x2x2")
    step = training.step(models.find("Llama 3 8B"), pod, Plan(fsdp=8, master=master), batch=8, T=4096)
    read_s = each * models.find("Llama 3 8B").params / 8 / chips.V5P.hbm_bytes_per_s
    assert step.terms["optimizer"] == pytest.approx(read_s, rel=1e-3)


def test_narrower_operands_are_written_first_as_they_are_and_transposed():
    """Of two bytes and two in bf16; one is read as one, and in half of the cases written twice from two."""

    def more_s(compute):
        plan, on = Plan(fsdp=8, compute=compute), clusters.Cluster.of(chips.H100, 8)
        paid = (replace(training.PEAK, operands=share) for share in (0, 1))
        found = [
            training.step(B70, on, plan, batch=8, T=4096, efficiency=e).terms["HBM traffic"] for e in paid
        ]
        return found[1] - found[0]

    assert more_s(FP8) / more_s(BF16) == pytest.approx(((2 + 1) / 2 + (2 + 2 * 1) / 2) / 2)


@pytest.mark.parametrize("tp", [1, 8])
def test_a_step_of_few_tokens_reads_its_layers_three_times(tp):
    """Forward, for the inputs' gradients and for the weights': longer than their arithmetic."""
    model = models.find("Llama 3 8B")
    step = training.step(model, Slice.of(chips.V5P, "2x2x2"), Plan(fsdp=8 // tp, tp=tp), batch=8 // tp, T=8)
    read_s = 3 * 2 * (model.params - 2 * model.V * model.D) / tp / chips.V5P.hbm_bytes_per_s
    assert step.terms["compute"] + step.terms["HBM traffic"] == pytest.approx(read_s, rel=0.02)


def test_what_is_read_between_products_is_as_wide_as_activations_are():
    on = clusters.Cluster.of(chips.H100, 8)
    plans = (Plan(fsdp=8, activations=dtype, compute=FP8) for dtype in (BF16, FP8))
    wide, narrow = (training.step(B70, on, plan, batch=8, T=4096).terms["HBM traffic"] for plan in plans)
    assert wide == pytest.approx(2 * narrow)


@pytest.mark.parametrize(
    ("name", "wide", "split"),
    [
        ("Llama 3 8B", 32 * (2 + 2) * 4096, 32 * ((32 + 16 + 32) * 128 + 3 * 14_336)),
        ("Falcon 7B", 32 * (1 + 1) * 4544, 32 * ((71 + 2 + 71) * 64 + 2 * 18_176)),  # one norm, one input
    ],
)
def test_what_the_products_of_a_layer_read(name, wide, split):
    """Korthikanti's count, arXiv 2205.05198: inputs of norms and products, q, k, v and what they become."""
    assert remat.fused(models.find(name), 2.0) == (2 * wide, 2 * split)


def test_queries_meet_latent_values_in_heads_of_their_own():
    deep = models.find("DeepSeek-V3")
    heads = deep.L * ((deep.N + 2 * deep.K) * deep.H + deep.N * deep.latent.v)
    assert remat.fused(deep, 1.0).split == heads + arithmetic.hidden(deep)


def test_a_layer_is_gathered_with_whole_heads_once_for_now_and_once_ahead():
    """16 tensor ways have 8 key-value heads twice: each holds one, where a sixteenth would be half of one."""
    step = training.step(B70, clusters.Cluster.of(chips.H100, 1024), Plan(tp=16, fsdp=64), batch=64, T=4096)
    layer = (3 * 8192 * 28_672 + 2 * 8192 * 8192) / 16 + 2 * 8192 * 128 + 2 * 8192
    assert step.memory.gathered_weights == pytest.approx(2 * 2 * layer, rel=1e-5)


def test_two_context_ways_are_four_pieces():
    with pytest.raises(ValueError, match="4,098 do not divide into 4 pieces for cp=2"):
        training.step(B70, clusters.Cluster.of(chips.H100, 1024), Plan(cp=2, fsdp=512), batch=512, T=4098)


@pytest.mark.parametrize("overlap", [-0.1, 1.1])
def test_a_share_that_overlaps_is_one(overlap):
    assert (Plan(overlap=0.0).hidden, Plan(overlap=1.0).hidden) == (0, 1)
    with pytest.raises(PlanError, match="share from 0 to 1"):
        Plan(overlap=overlap)


def test_what_just_fills_a_chip_fits_and_without_a_chip_all_does():
    held = training.states(7.5e9, Plan(fsdp=64))
    assert held.fits
    chip = replace(chips.V5E, hbm_bytes=held.total)
    assert replace(held, chip=chip).fits
    assert not replace(held, chip=replace(chip, hbm_bytes=held.total - 1)).fits
    assert "(80%)" in str(replace(held, chip=replace(chip, hbm_bytes=held.total / 0.8)))


@pytest.mark.parametrize(("dp", "dcn"), [(2, 1), (1, 2), (2, 2)])
def test_copies_sum_the_shards_that_a_chip_is_left_with(dp, dcn):
    plan, on = Plan(fsdp=64, dp=dp, dcn=dcn, remat="full"), clusters.Cluster.of(chips.H100, 64 * dp)
    rows = training.traffic(B70, plan, on, batch=1024, T=4096)
    sums = {row.axes: row.times * row.nbytes for row in rows if row.what == "AllReduce"}
    left = {"R": 2 * B70.params / 64} if dp > 1 else {}
    assert sums == left | ({"S": 2 * B70.params / 64 / dp} if dcn > 1 else {})


def test_a_latent_vector_is_stored_as_long_as_it_is_and_not_as_wide_as_the_model():
    v3 = models.find("DeepSeek-V3")
    inputs = remat.stored(v3, 4096, "save:in", BF16).wide
    with_latents = remat.stored(v3, 4096, "save:in,q down,kv down", BF16).wide
    assert with_latents - inputs == 61 * (1536 + 512) * BF16.bytes
