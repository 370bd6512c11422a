"""Which collectives a plan needs, of how many bytes, on which links: the rules of every scheme."""

from dataclasses import replace

import pytest

from scalingbook_lib import collectives, models, training
from scalingbook_lib.machines import chips, clusters
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.machines.torus import SliceError
from scalingbook_lib.models import arithmetic
from scalingbook_lib.steps import placement
from scalingbook_lib.training import PEAK, Plan, PlanError

B70, MIXTRAL = models.find("Llama 3 70B"), models.find("Mixtral 8x7B")
TOY = models.Transformer(name="toy", D=1024, L=8, V=1024, N=8, K=8, H=128, F=4096, gated=False, norms=1)
H100 = clusters.Cluster.of(chips.H100, 1024)
CUBE = Slice.of(chips.V5P, "8x8x16")
T, LAYER = 4096, 3 * 8192 * 28672 + 2 * 8192 * 72 * 128  # parameters of a layer of 70B but for its norms


def found(model, plan, machine, batch=1024):
    rows = training.traffic(model, plan, machine, batch=batch, T=T)
    return {(row.name, row.what, row.when): row for row in rows}


def test_a_layer_of_fsdp_gathers_twice_and_scatters_once():
    rows = found(B70, Plan(fsdp=1024, remat="full"), H100)
    assert [(*key, row.times) for key, row in rows.items()] == [
        ("weights", "AllGather", "fwd", 80), ("weights", "AllGather", "bwd", 80),
        ("gradients", "ReduceScatter", "bwd", 80),
    ]  # fmt: skip
    bytes_each = {row.nbytes for row in rows.values()}
    assert bytes_each == {2 * B70.params / 80}  # the vocabulary and the norms are spread over the layers
    assert 2 * LAYER < bytes_each.pop() < 2 * LAYER * 1.04


def test_the_mixed_scheme_of_the_toy_layer_has_seven_gathers_and_four_scatters():
    rows = found(TOY, Plan(fsdp=128, tp=8, remat="full"), H100).values()
    tensor, data = ([row for row in rows if row.axes == axis] for axis in "YX")
    pairs = TOY.L + 1  # the vocabulary's besides
    assert {(row.what, row.when): row.times / pairs for row in tensor} == {
        ("AllGather", "fwd"): 1 * 8, ("ReduceScatter", "fwd"): 1 * 8,
        ("AllGather", "bwd"): 2 * 8, ("ReduceScatter", "bwd"): 1 * 8,
    }  # fmt: skip
    matrices = 2
    assert sum(row.times / (8 * TOY.L) for row in data if row.what == "AllGather") * matrices + 3 == 7
    assert sum(row.times / (8 * TOY.L) for row in data if row.what == "ReduceScatter") * matrices + 2 == 4


def test_without_sequence_parallelism_an_all_reduce_stands_for_both():
    split = found(B70, Plan(fsdp=128, tp=8), H100)
    whole = found(B70, Plan(fsdp=128, tp=8, sequence_parallel=False), H100)
    one = whole["tensor", "AllReduce", "fwd"]
    assert one.nbytes == split["tensor", "AllGather", "fwd"].nbytes == 2 * T * 8192
    assert one.received == pytest.approx(
        sum(row.received for row in split.values() if row.axes == "Y" and row.when == "fwd")
    )


def test_gradients_cross_between_groups_of_hybrid_fsdp_as_shards():
    rows = found(B70, Plan(fsdp=32, dp=32, remat="full"), H100)
    across = rows["gradients", "AllReduce", "bwd"]
    assert across.received == pytest.approx(2 * (2 * B70.params / 32) * 31 / 32)  # the sheet's, Y = 1
    assert across.axes == "R"
    assert across.rate.link in ("leaf", "spine")


def test_a_ring_passes_all_keys_and_values_once_forward():
    rows = found(B70, Plan(fsdp=32, tp=8, cp=4, remat="full"), H100, 32)
    ring = rows["keys and values", "ring", "fwd"]
    assert ring.nbytes == 2 * 2 * T * 8 * 128 / 8
    assert ring.times == 80
    assert ring.overlappable
    ulysses = found(B70, Plan(fsdp=32, tp=1, cp=4, pp=8, context="ulysses"), H100, 32)
    assert (
        sum(r.nbytes for r in ulysses.values() if r.axes == "C" and r.when == "fwd")
        == 2 * T * (2 * 72) * 128 / 4
    )


def test_heads_are_exchanged_for_tokens_again_where_all_is_done_again():
    plan = Plan(fsdp=32, tp=1, cp=4, pp=8, context="ulysses")
    kept, again = (found(B70, replace(plan, remat=remat), H100, 32) for remat in ("none", "full"))
    backward = "heads for tokens", "AllToAll", "bwd"
    assert again[backward].times == 2 * kept[backward].times == 2 * again[*backward[:2], "fwd"].times


def test_an_exchange_of_experts_is_that_of_the_transformers_chapter():
    rows = found(MIXTRAL, Plan(fsdp=1024, ep=8, remat="selective"), H100)
    out = rows["tokens to experts and back", "AllToAll", "fwd"]
    assert out.nbytes == arithmetic.all_to_all_bytes(8 * T, 2, 4096)
    assert out.times == 2 * 32
    assert rows["expert weights", "AllGather", "fwd"].n == 128
    assert rows["weights", "AllGather", "fwd"].n == 1024


def test_stages_send_one_hop_for_each_microbatch_and_chunk():
    rows = found(B70, Plan(fsdp=128, pp=8, zero=1, schedule="interleaved", chunks=5), H100)
    hop = rows["to the next stage", "CollectivePermute", "fwd"]
    assert (hop.nbytes, hop.times) == (2 * T * 8192, 8 * 5)
    assert rows["gradients", "ReduceScatter", "bwd"].times == 10  # once a step, for each layer of a stage
    assert rows["gradients", "ReduceScatter", "bwd"].once


@pytest.mark.parametrize("machine", [H100, CUBE, clusters.Cluster.of(chips.MI300X, 64)])
def test_the_rate_of_a_collective_is_that_of_collectives(machine):
    n = machine.chips // 8
    where = placement.place(machine, (8, 1, 1, n, 1, 1))
    for letters in ("Y", "X", "YX"):
        links = where.over(letters)
        for name in ("all_gather", "reduce_scatter", "all_reduce", "all_to_all"):
            exact = getattr(collectives, name)(1e9, *links)
            assert placement.rate(name, links, PEAK).seconds(1e9) == pytest.approx(exact.total_s)


def test_neighbors_of_a_split_torus_axis_have_a_line_and_the_others_share_links():
    pod = Slice.of(chips.V5P, "16x20x28")
    where = placement.place(pod, (4, 1, 1, 2240, 1, 1))
    (line,) = where.networks["Y"]
    assert (line.size, line.wrapped, line.link_bytes_per_s) == (4, False, chips.V5P.link_bytes_per_s)
    outer = where.networks["X"][0]
    assert (outer.size, outer.wrapped, outer.link_bytes_per_s) == (4, True, chips.V5P.link_bytes_per_s / 4)
    assert [axis.size for axis in where.networks["X"]] == [4, 20, 28]
    whole = placement.place(pod, (16, 1, 1, 560, 1, 1))
    assert whole.networks["Y"][0].wrapped


def test_a_split_axis_carries_as_much_as_the_whole_one():
    """A gather over the outer factor, by all neighbors at once, takes as long as one over the whole axis."""
    ring = chips.V5P.axis(16, wrapped=True)
    outer = replace(ring, size=4, link_bytes_per_s=ring.link_bytes_per_s / 4)
    parts = collectives.all_gather(1e9 / 4, outer).bandwidth_s
    assert parts == pytest.approx(collectives.all_gather(1e9, ring).bandwidth_s * (3 / 4) / (15 / 16))


def test_the_bubble_is_the_closed_form():
    plan = Plan(fsdp=8, tp=8, pp=16, zero=1, microbatch=1)
    step = training.step(B70, H100, plan, batch=8 * 64, T=T)
    work = 64 * (step.seconds.forward_s + step.seconds.backward_s)
    assert step.seconds.bubble_s / (work + step.seconds.bubble_s) == pytest.approx(15 / (64 + 15))


@pytest.mark.parametrize(("plan", "why"), [
    (Plan(fsdp=100), "uses 100 chips, but the machine has 1,024"),
    (Plan(tp=128, fsdp=8), "64 heads are not divisible by tp=128"),
    (Plan(fsdp=512, cp=2, context="ulysses"), "cannot be divided among 512"),
    (Plan(pp=128, fsdp=8), "80 layers are too few for 128 stages"),
    (Plan(ep=8, fsdp=1024), "has no experts for ep=8: write 1"),
    (Plan(fsdp=1024, microbatch=3), "use a multiple, such as 3,072"),
    (Plan(dp=1024), "a chip would hold"),
    (Plan(fsdp=64, pp=16, schedule="interleaved", chunks=5, microbatch=16), "must be a multiple of"),
])  # fmt: skip
def test_what_cannot_be_is_refused_with_its_reason(plan, why):
    batch = 500 if why == "cannot be divided among 512" else 1024
    reasons = " | ".join(training.feasible(B70, H100, plan, batch, T))
    assert why in reasons


def test_a_plan_that_nobody_can_write_raises():
    for wrong, why in (
        ({"tp": 0}, "at least 1"), ({"remat": "some"}, "'full'"), ({"overlap": "half"}, "share"),
        ({"chunks": 2}, "interleaved"), ({"tp": 4, "expert_tp": 2}, "write 1, or 4"),
    ):  # fmt: skip
        with pytest.raises(PlanError, match=why):
            Plan(**wrong)
    with pytest.raises(SliceError, match="let tp"):
        placement.place(CUBE, (8, 1, 1, 8, 1, 1))


def test_groups_that_do_not_fit_the_tiers_of_a_network_see_one_tier():
    cluster = clusters.Cluster.of(chips.H100, 768)  # 96 nodes, 32 to a leaf
    (network,) = placement.place(cluster, (8, 1, 1, 48, 2, 1)).networks["X"]
    assert (network.size, network.bytes_per_s, network.port) == (48, chips.H100.dcn_bytes_per_s, "network")
    with pytest.raises(clusters.ClusterError, match="NVLink"):
        placement.place(cluster, (3, 1, 1, 256, 1, 1))


@pytest.mark.parametrize("expert_tp", [None, 1])
def test_experts_on_a_torus_take_a_part_of_the_data_ranks(expert_tp):
    plan = Plan(tp=4, fsdp=256, ep=8, expert_tp=expert_tp, remat="selective")
    step = training.step(MIXTRAL, CUBE, plan, batch=1024, T=T)
    rows = {(row.name, row.when): row for row in step.traffic}
    assert rows["tokens to experts and back", "fwd"].n == 8
    assert ("tensor, experts", "fwd") in rows or expert_tp == 1
    experts = 32 * 8 * 3 * 4096 * 14336
    assert step.memory["weights"] == pytest.approx(
        2 * (MIXTRAL.params - experts) / 1024 + 2 * experts / 1024, rel=1e-3
    )


@pytest.mark.parametrize("ep", [1, 2])
def test_experts_that_tensor_ways_alone_hold_together_move_as_those_of_data_ranks(ep):
    """With expert_tp=1 every chip of a tensor group has whole experts, and tokens of its own for them."""
    eight, experts = clusters.Cluster.of(chips.H100, 8), 32 * 8 * 3 * 4096 * 14336 / ep
    plan = Plan(tp=8, ep=ep, expert_tp=1, zero=0)
    (row,) = [row for key, row in found(MIXTRAL, plan, eight).items() if "gradients" in key[0]]
    assert (row.name, row.what, row.n, row.once) == ("expert gradients", "AllReduce", 8 // ep, True)
    assert row.times * row.nbytes == 2 * experts
    rows = found(MIXTRAL, replace(plan, zero=3), eight)
    assert rows["expert weights", "AllGather", "bwd"].times == 1024 * 32
    assert ("weights", "AllGather", "fwd") not in rows
    own = Slice.of(chips.V6E, "2x4") if ep == 1 else eight
    assert training.step(MIXTRAL, own, plan, batch=1024, T=T).exposed["weights and gradients"] > 0


def test_full_rematerialization_scatters_the_outputs_of_attention_once_more_beside_experts_too():
    rows = found(MIXTRAL, Plan(fsdp=128, tp=8, remat="full"), H100)
    pairs = MIXTRAL.L + 1  # attention's, and the vocabulary's; the compiler's count in tests/lab agrees
    assert rows["tensor", "ReduceScatter", "bwd"].times == 8 * (pairs + MIXTRAL.L)


def test_named_products_are_kept_on_the_chip_or_on_its_host():
    pod = Slice.of(chips.V5P, "8x8x8")
    full, listed, away = (
        training.step(B70, pod, Plan(fsdp=512, remat=r), batch=512, T=T)
        for r in ("full", "save:q,k,v,o", "offload:in,q,k,v,o")
    )
    assert training.step(B70, pod, Plan(fsdp=512, remat="save:in"), batch=512, T=T).total_s == full.total_s
    kept = 80 * T * 2 * (2 * 8192 + 2 * 1024)  # q and o, k and v
    assert listed.memory["activations"] - full.memory["activations"] == kept
    assert away.memory["activations"] == 0
    moved = [row for row in away.traffic if row.axes == "H"]
    assert [row.nbytes * row.times for row in moved] == [kept + 80 * T * 2 * 8192] * 2
    projections = 512 * T * 80 * 2 * (2 * 8192 * 8192 + 2 * 8192 * 1024)
    assert full.hardware_flops - listed.hardware_flops == pytest.approx(projections)
    assert listed.hardware_flops == away.hardware_flops


def test_outputs_that_are_kept_are_not_summed_again():
    kept, again = (
        found(B70, Plan(fsdp=128, tp=8, remat=remat), H100)["tensor", "ReduceScatter", "bwd"]
        for remat in ("save:q,k,v,o", "save:q,k,v")
    )
    assert again.times - kept.times == 8 * B70.L
