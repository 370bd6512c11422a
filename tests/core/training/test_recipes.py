"""What published recipes use: offloading, remat by named tensors, a loss in tiles, stages by hand."""

from dataclasses import replace

import pytest

from scalingbook_lib import calibrated, models, training
from scalingbook_lib.machines import chips, clusters
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.training import Plan, PlanError, work
from scalingbook_lib.training.remat import unknown
from scalingbook_lib.units import BF16, FP32

approx = pytest.approx
B405, B70 = models.find("Llama 3.1 405B"), models.find("Llama 3 70B")
DEEPSEEK, OSS = models.find("DeepSeek-V3"), models.find("gpt-oss-120b")
T = 8192
H100 = clusters.Cluster.of(chips.H100, 64)
SPREAD = Plan(pp=16, fsdp=16, ep=16, zero=1)


def held(model, plan, batch=64, T=T):
    return training.memory(model, plan, batch=batch, T=T)


def test_the_ironwood_recipe_of_405b_fits_and_takes_as_long_as_published():
    """MaxText's remat_policy=custom, decoder_layer_input and mlpwo offloaded, num_vocab_tiling=4: 98.34 s."""
    cube = Slice.of(chips.TPU7X, "4x8x8")
    plan = Plan(
        fsdp=256,
        microbatch=6,  # per_device_batch_size=3, of half a chip
        remat="save:k,v;offload:in,down",
        loss_tiles=4,
        weights=FP32,
        master=None,
        moments=BF16,
    )
    table = calibrated.training(chips.TPU7X, "bf16", "attention", ("MaxText",))
    one = training.step(B405, cube, plan, batch=1536, T=T, efficiency=table)
    assert one.memory.fits
    assert one.total_s == approx(98.34, rel=0.05)
    full = training.step(B405, cube, replace(plan, remat="full", loss_tiles=1), batch=1536, T=T)
    assert full.memory.total > 1.5 * one.memory.total


def test_logits_in_tiles_are_not_stored_but_made_again():
    whole, tiled = (Plan(fsdp=64, microbatch=20, remat="full", loss_tiles=n) for n in (1, 16))
    assert held(OSS, whole, 1280).logits == approx(6 * 20 * T * OSS.V)
    assert held(OSS, tiled, 1280).total < 0.5 * held(OSS, whole, 1280).total
    cube = Slice.of(chips.TPU7X, "4x4x4")
    steps = [training.step(OSS, cube, plan, batch=1280, T=T) for plan in (whole, tiled)]
    head_s = 2 * OSS.D * OSS.V * 20 * T / chips.TPU7X.flops_per_s()
    assert steps[1].total_s - steps[0].total_s == approx(head_s)
    assert steps[1].terms["recomputation"] - steps[0].terms["recomputation"] == approx(head_s)
    assert steps[1].hardware_flops - steps[0].hardware_flops == approx(2 * OSS.D * OSS.V * 1280 * T)


def test_activations_of_offloaded_layers_wait_in_the_host_s_memory():
    kept, sent = Plan(fsdp=64), Plan(fsdp=64, offload_layers=20)
    assert held(B70, sent).activations == approx(0.75 * held(B70, kept).activations)
    rows = training.traffic(B70, sent, H100, batch=64, T=T)
    moved = {row.when: row.times * row.nbytes for row in rows if row.axes == "H"}
    assert moved == {when: approx(0.25 * held(B70, kept).activations) for when in ("fwd", "bwd")}
    assert not any(row.axes == "H" for row in training.traffic(B70, kept, H100, batch=64, T=T))


def test_an_offloaded_optimizer_crosses_the_link_to_the_host_once_each_way():
    kept, sent = Plan(fsdp=64), Plan(fsdp=64, offload_optimizer=True)
    state = held(B70, kept).optimizer
    assert (held(B70, sent).optimizer, state) == (0.0, approx(12 * B70.params / 64, rel=0.01))
    one, other = (training.step(B70, H100, plan, batch=64, T=T) for plan in (kept, sent))
    assert other.total_s - one.total_s == approx(state / 63e9)  # PCIe 5


def test_a_chip_whose_link_to_its_host_nobody_publishes_cannot_offload():
    a100 = clusters.Cluster.of(replace(chips.A100, pcie_bytes_per_s=None), 64)
    for plan in (Plan(fsdp=64, offload_layers=1), Plan(fsdp=64, offload_optimizer=True)):
        with pytest.raises(PlanError, match="no host bandwidth for A100"):
            training.step(B70, a100, plan, batch=64, T=T)


def test_megatron_s_modules_are_computed_again_one_by_one():
    plain, up = SPREAD, replace(SPREAD, remat="recompute:mla_up_proj")
    per_token = (
        held(DEEPSEEK, plain, 256, 4096).activations - held(DEEPSEEK, up, 256, 4096).activations
    ) / 4096
    heads, latents = DEEPSEEK.softmax_layers * 3 * DEEPSEEK.N * DEEPSEEK.H, DEEPSEEK.L * (1536 + 512 + 64)
    share = (
        held(DEEPSEEK, plain, 256, 4096).activations
        / 4096
        / sum(
            training.step(
                DEEPSEEK, clusters.Cluster.of(chips.B200, 256), plain, batch=256, T=4096
            ).work.stored
        )
    )
    assert per_token == approx(2 * share * (heads - latents), rel=0.01)
    machine = clusters.Cluster.of(chips.B200, 256)
    one, other = (training.step(DEEPSEEK, machine, p, batch=256, T=4096) for p in (plain, up))
    again = 2 * DEEPSEEK.L * (1536 * 128 * 192 + 2 * 512 * 128 * 128)
    assert other.hardware_flops - one.hardware_flops == approx(256 * 4096 * again)


def test_some_layers_are_recomputed_in_full():
    """torchtitan's selective_ac_option = 2 and Megatron's block method: the other layers save everything."""
    plans = {remat: Plan(fsdp=64, remat=remat) for remat in ("none", "full:40", "full", "full:80")}
    steps = {remat: training.step(B70, H100, plan, batch=64, T=T) for remat, plan in plans.items()}
    for amount in (
        lambda remat: steps[remat].hardware_flops,
        lambda remat: held(B70, plans[remat]).activations,
        lambda remat: steps[remat].total_s,
    ):
        assert amount("full:80") == approx(amount("full"))
        assert amount("full:40") == approx((amount("none") + amount("full")) / 2, rel=0.01)


def test_layers_that_are_recomputed_repeat_their_collectives():
    wide = {"tp": 8, "fsdp": 8}
    sent = {
        remat: sum(
            row.times * row.nbytes
            for row in training.traffic(B70, Plan(**wide, remat=remat), H100, batch=64, T=T)
            if row.axes == "Y"
        )
        for remat in ("none", "full:40", "full")
    }
    assert sent["full:40"] == approx((sent["none"] + sent["full"]) / 2)
    assert sent["full"] > sent["none"]


def test_more_modules_hold_less():
    modules = (
        "layernorm",
        "layernorm,moe_act",
        "layernorm,moe_act,mlp",
        "layernorm,moe_act,mlp,shared_experts",
    )
    plans = [SPREAD, *(replace(SPREAD, remat=f"recompute:{each}") for each in modules)]
    totals = [held(DEEPSEEK, plan, 256, 4096).total for plan in plans]
    assert totals == sorted(totals, reverse=True)


def test_a_dense_model_recomputes_none_of_the_modules_of_experts():
    plan = Plan(fsdp=64, remat="recompute:mlp")
    same = replace(plan, remat="recompute:mlp,moe_act,shared_experts")
    assert held(B70, same) == held(B70, plan)


def test_recomputing_core_attention_runs_its_kernel_forward_again_and_saves_nothing():
    """A flash kernel stores no scores, and its output is saved anyway, for the next matmul."""
    plain = Plan(fsdp=64)
    again = replace(plain, remat="recompute:core_attn")
    assert held(B70, again).total == held(B70, plain).total
    none, core, full = (
        work.work(B70, T, remat, BF16, causal=True).recomputed for remat in ("none", again.remat, "full")
    )
    assert (core.attention, core.matmul) == (approx(full.attention), none.matmul)
    assert full.attention == approx(
        3 * none.attention
    )  # the scores, and the two products of the forward pass


def test_core_attention_that_is_recomputed_exchanges_its_heads_again():
    plan = Plan(fsdp=16, cp=4, context="ulysses")

    def times(remat):
        rows = training.traffic(B70, replace(plan, remat=remat), H100, batch=64, T=T)
        return sum(row.times for row in rows if row.axes == "C")

    assert times("recompute:core_attn") == times("full") == 1.5 * times("none")


def test_tensors_can_be_saved_and_offloaded_together():
    both = Plan(fsdp=64, remat="save:q,k,v;offload:in,down")
    saved = Plan(fsdp=64, remat="save:q,k,v")
    layer_inputs = 2 * B70.L * B70.D * T
    assert held(B70, saved).activations - held(B70, both).activations == approx(layer_inputs)
    rows = training.traffic(B70, both, H100, batch=64, T=T)
    assert sum(row.times * row.nbytes for row in rows if row.axes == "H") == approx(2 * 2 * layer_inputs)


@pytest.mark.parametrize(
    ("remat", "why"),
    [
        ("keep:q", "none of save"),
        ("save:", "none of save"),
        ("save:q;save:k", "once each"),
        ("recompute:everything", "layernorm, mla_up_proj"),
        ("recompute:mlp;save:q", "write recompute: alone"),
        ("full:", "not a number of layers"),
        ("full:0", "write 'full:16'"),
        ("full:half", "'half' is not a number"),
    ],
)
def test_a_policy_that_is_not_written_so_is_refused(remat, why):
    with pytest.raises(PlanError, match=why):
        Plan(remat=remat)


@pytest.mark.parametrize(
    ("remat", "why"),
    [
        ("save:q,zz", "has no product 'zz'; write some of in, q, k, v, o, gate, up, down, context"),
        ("save:q;offload:bar", "has no product 'bar'"),
        ("full:81", "has 80 layers; write at most full:80"),
        ("save:q down", "has no product 'q down'"),
    ],
)
def test_a_policy_names_what_the_model_has(remat, why):
    plan = Plan(fsdp=64, remat=remat)
    assert any(why in one for one in training.feasible(B70, H100, plan, batch=64, T=T))
    with pytest.raises(ValueError, match=why):
        training.step(B70, H100, plan, batch=64, T=T)


def test_a_policy_may_name_the_usual_products_for_every_model():
    usual = "save:q,k,v,o,context,gate,up,down,expert gate;offload:in"
    for model in (B70, DEEPSEEK, OSS):
        assert not unknown(model, usual)
    assert not unknown(DEEPSEEK, "save:q down,kv down,shared gate")


def test_stages_by_hand_are_dealt_as_they_are_written():
    meta = (7, *[8] * 14, 7)
    given = Plan(tp=8, pp=16, fsdp=128, chunks=8, schedule="interleaved", stage_layers=meta, zero=1)
    machine = clusters.Cluster.of(chips.H100, 16384)
    one = training.step(B405, machine, given, batch=2048, T=T)
    even = training.step(B405, machine, replace(given, stage_layers=None), batch=2048, T=T)
    assert one.shape.stages.layers == 8
    assert one.shape.stages.last == 7 / 126
    assert one.total_s == approx(even.total_s, rel=0.01)
    worse = training.step(
        B405, machine, replace(given, stage_layers=(22, *[7] * 8, *[6] * 3, *[8] * 3, 6)), batch=2048, T=T
    )
    assert worse.total_s > 2 * one.total_s


def test_stages_that_do_not_add_up_are_refused():
    with pytest.raises(PlanError, match="one number of layers for each of pp=4 stages"):
        Plan(pp=4, stage_layers=(20, 20, 40))
    plan = Plan(pp=4, fsdp=16, stage_layers=(20, 20, 20, 21))
    assert "stage_layers has 81 layers, the model has 80" in training.feasible(B70, H100, plan, 64, T)
