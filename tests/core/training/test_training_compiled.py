"""What a step moves that a compiler has written: closed forms of its layers and its two ends."""

from dataclasses import replace

import pytest

from scalingbook_lib import models, training
from scalingbook_lib.machines import chips, clusters
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.training import Plan
from scalingbook_lib.training.memory import moments
from scalingbook_lib.training.shape import shape
from scalingbook_lib.training.work import work
from scalingbook_lib.units import BF16, FP32

B70 = models.find("Llama 3 70B")
H100 = clusters.Cluster.of(chips.H100, 1024)
T, LAYER = 4096, 3 * 8192 * 28672 + 2 * 8192 * 72 * 128  # parameters of a layer but for its norms


def compiled(plan, loop=True):
    rows = training.traffic(B70, plan, Slice.of(chips.V5P, "2x2x2"), batch=1024, T=T, loop=loop)
    return {(row.name, row.what, row.when): row for row in rows}


def test_a_compiled_step_gathers_the_unembedding_once_and_exchanges_what_it_looks_up():
    plan = Plan(fsdp=4, dp=2, remat="full", gradients=FP32)
    rows = compiled(plan)
    share = rows["unembedding", "AllGather", "fwd"]
    assert (share.times, share.nbytes) == (128, 2 * B70.V * B70.D)
    assert rows["tokens looked up", "AllToAll", "fwd"].nbytes == 4 * T * 2 * B70.D
    assert rows["gradients", "ReduceScatter", "bwd"].nbytes == rows["weights", "AllGather", "bwd"].nbytes
    assert rows["gradients", "AllReduce", "bwd"].times == 128 * 80  # of a loop over layers: each microbatch
    assert rows["its gradient", "AllReduce", "bwd"].nbytes == 4 * B70.V * B70.D / 4  # of the sums, once
    out = compiled(plan, loop=False)
    assert out["gradients", "AllReduce", "bwd"].times == 80
    keeps = compiled(replace(plan, remat="none"), loop=False)
    assert keeps["weights", "AllGather", "bwd"].times == 128 * 79  # but those of the last layer


def test_gradients_travel_in_the_type_that_a_plan_says():
    wide, narrow = Plan(fsdp=1024, gradients=FP32), Plan(fsdp=1024, gradients=FP32, reduced=BF16)
    rows = (training.traffic(B70, plan, H100, batch=1024, T=T) for plan in (wide, narrow))
    assert [row.nbytes / B70.params * 80 for *_, row in rows] == [4, 2]
    told = compiled(replace(wide, fsdp=4, dp=2, reduced=FP32))["gradients", "ReduceScatter", "bwd"]
    assert told.nbytes == 2 * compiled(replace(wide, fsdp=4, dp=2))[told.name, told.what, told.when].nbytes


def test_a_loss_in_chunks_gathers_the_unembedding_for_each_and_wide_logits_have_wide_gradients():
    plan = Plan(fsdp=2, tp=4, remat="full", sequence_parallel=False)
    chunks = compiled(replace(plan, logit_bytes=0.75))
    times = [row.times for (name, *_), row in chunks.items() if name in ("unembedding", "its gradient")]
    assert times == [8 * 512] * 3
    wide, plain = compiled(replace(plan, logit_bytes=8.0)), compiled(plan)
    assert "gradients of wide logits" not in {name for name, *_ in plain}
    name = "its gradient", "ReduceScatter", "bwd"
    assert wide[name].nbytes == 2 * plain[name].nbytes
    assert wide["gradients of wide logits", "AllReduce", "bwd"].nbytes == T * 2 * B70.D


def test_a_compiled_step_of_eight_ways_and_many_tokens_is_in_rings_of_two_hops_more():
    rings = compiled(Plan(fsdp=8, remat="none"))
    for way in ("ring", "fwd"), ("ring", "bwd"):
        received = rings["weights", *way].received / 128  # of a microbatch
        assert received == pytest.approx(80 * 2 * LAYER * 9 / 8, rel=0.001)
    routed = training.traffic(
        models.find("Mixtral 8x7B"), Plan(fsdp=8, ep=8), Slice.of(chips.V5P, "2x2x2"), batch=8, T=T, loop=True
    )
    assert not [row for row in routed if row.name.startswith("expert weights")]  # each is on one chip
    assert compiled(Plan(fsdp=8, remat="full"))["weights", "AllGather", "bwd"]  # of what is done again
    assert ("weights", "ring", "fwd") not in compiled(Plan(fsdp=4, dp=2))


def test_below_zero_3_new_weights_are_gathered_once_as_they_are_stored_and_gradients_as_with_it():
    one = Plan(fsdp=4, dp=2, remat="full", weights=FP32, gradients=FP32)
    full, less = compiled(one), compiled(replace(one, zero=1))
    new = less["new weights", "AllGather", "fwd"]
    assert (new.times, new.nbytes) == (1, 4 * B70.params)
    assert {name for name, what, _ in less if what == "AllGather"} == {"new weights"}
    for name in ("gradients", "its gradient"):
        assert less[name, "ReduceScatter", "bwd"].received == full[name, "ReduceScatter", "bwd"].received


def test_without_zero_every_chip_that_holds_the_same_is_a_copy_and_one_sum_goes_over_all():
    rows = compiled(Plan(fsdp=4, dp=2, zero=0, gradients=FP32))
    assert {(row.what, row.axes, row.n) for row in rows.values()} == {("AllReduce", "RX", 8)}
    summed = sum(row.times * row.nbytes for row in rows.values())
    layers = 2 * (B70.params - 2 * B70.V * B70.D)
    ends = 2 * 4 * B70.V * B70.D  # in 32 bits, once
    assert summed == pytest.approx(128 * layers + ends, rel=0.01)
    assert compiled(Plan(fsdp=4, dp=2, zero=0))["gradients", "AllReduce", "bwd"].rate.link


def test_the_heads_gradient_is_summed_whole_where_sequences_and_tokens_are_split():
    rows = compiled(Plan(fsdp=2, cp=2, tp=2, context="gather"))
    assert rows["its gradient", "AllReduce", "bwd"].n == 4
    assert ("its gradient", "AllReduce", "bwd") not in compiled(Plan(fsdp=1, cp=8, context="gather"))


def test_of_layers_written_out_all_are_done_again_at_once_where_microbatches_are_added():
    def layer(batch, loop):
        found = shape(work(B70, T, "full", BF16, True), Plan(fsdp=8, remat="full"), batch)
        return [moment.recomputed_layer for moment in moments(found, loop)]

    (waits, _, one), (_, _, four) = layer(8, loop=False), layer(32, loop=False)
    assert waits == one > 0  # at the logits the last layer waits for its turn
    assert layer(16, loop=False)[2] == four == 80 * one
    assert layer(8, loop=True) == layer(32, loop=True) == [0, 0, one]


@pytest.mark.parametrize(
    ("name", "plan", "moves"),
    [
        ("Llama 3 70B", Plan(), set()),
        ("Llama 3 70B", Plan(tp=2), {"tensor"}),
        ("Llama 3 70B", Plan(cp=2), {"weights", "gradients", "keys and values", "their gradients"}),
        ("Llama 3 70B", Plan(pp=2), {"to the next stage"}),
        ("Llama 3 70B", Plan(fsdp=2), {"weights", "gradients"}),
        ("Mixtral 8x7B", Plan(fsdp=2, ep=2), {"weights", "gradients", "tokens to experts and back"}),
    ],
)
def test_a_way_of_two_chips_has_its_collectives_and_no_others(name, plan, moves):
    machine = clusters.Cluster.of(chips.H100, plan.chips)
    rows = training.traffic(models.find(name), plan, machine, batch=8, T=T)
    assert {row.name for row in rows} == moves
