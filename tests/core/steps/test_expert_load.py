"""Tests of the load of the busiest chip of an expert-parallel group."""

from dataclasses import replace
from math import sqrt

import pytest

from scalingbook_lib import calibrated, models
from scalingbook_lib.inference import Layout, LayoutError, decode, memory
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.steps import expert_load
from scalingbook_lib.steps.expert_load import busiest_over_mean, packed, replicated, variation, zipf_loads
from scalingbook_lib.training import Plan, step

V3 = models.find("DeepSeek-V3")


@pytest.mark.parametrize(("skew", "least", "most"), [(0.6, 2.3, 2.5), (0.8, 3.6, 4.0)])
def test_skewed_experts_at_random_on_32_chips(skew, least, most):
    assert least < busiest_over_mean(256, 32, skew=skew) < most


@pytest.mark.parametrize(("skew", "most"), [(0.6, 1.005), (0.8, 1.005), (1.01, 1.01), (1.2, 1.05)])
def test_as_many_copies_as_chips_remove_nearly_all_skew(skew, most):
    assert 1 <= busiest_over_mean(256, 32, skew=skew, redundant=32) < most


def test_with_two_slots_a_chip_there_is_little_to_pack():
    assert busiest_over_mean(256, 144, skew=0.6, redundant=32) > 1.3


def test_copies_and_chips_hold_all_of_the_load():
    loads = zipf_loads(64, 0.7)
    slots = replicated(loads, 8)
    assert len(slots) == 72
    assert sum(slots) == pytest.approx(sum(loads)) == pytest.approx(64)
    assert max(slots) < max(loads)
    assert sum(packed(slots, 8)) == pytest.approx(64)


def test_chance_alone_varies_as_one_over_the_root_of_the_tokens():
    assert variation(32, 4096) - 1 == pytest.approx((variation(32, 1024) - 1) / 2)
    assert variation(1, 10) == 1
    assert variation(4, 1e-6) == 4


def test_the_default_of_training_is_the_published_violation():
    assert zipf_loads(64, expert_load.TRAINING_SKEW)[0] == pytest.approx(1.04, abs=0.005)


@pytest.mark.parametrize("given", [{"skew": -1.0}, {"skew": 0.5, "redundant": 3}])
def test_what_cannot_be_is_refused(given):
    with pytest.raises(ValueError, match=r"write no negative|are not divisible"):
        busiest_over_mean(256, 32, **given)


def test_a_training_step_grows_with_the_skew():
    on = Cluster.of(chips.H100, 256)
    plan = Plan(pp=4, ep=64, fsdp=64, zero=1, remat="full", microbatch=1)
    reached = calibrated.training(chips.H100)

    def seconds(skew):
        efficiency = replace(reached, expert_skew=skew)
        return step(V3, on, plan, batch=2048, T=4096, efficiency=efficiency).total_s

    assert seconds(None) < seconds(0.0) < seconds(0.15) < seconds(0.4)


def test_redundant_experts_take_memory_and_shorten_a_step_of_many_tokens():
    on, reached = Cluster.of(chips.H200, 32), calibrated.serving(chips.H200)
    plain = Layout(tp=32, ep=32, attention_dp=32)
    copied = replace(plain, redundant_experts=32)
    steps = [decode(V3, on, one, batch=16384, S=2048, efficiency=reached) for one in (plain, copied)]
    assert steps[1].total_s < steps[0].total_s
    held = [memory(V3, one, on, batch=64, S=2048).weights for one in (plain, copied)]
    assert 1 < held[1] / held[0] < 1 + 32 / 256


def test_redundant_experts_need_an_expert_parallel_group():
    with pytest.raises(LayoutError, match="redundant_experts=8 with ep=1"):
        Layout(tp=8, redundant_experts=8).check(V3)
    with pytest.raises(LayoutError, match=r"256 \+ 4 experts are not divisible"):
        Layout(tp=8, ep=8, redundant_experts=4).check(V3)


def test_the_variation_of_serving_is_the_same_formula():
    on = Cluster.of(chips.H200, 8)
    layout, reached = Layout(tp=8, ep=8, attention_dp=8), calibrated.serving(chips.H200)
    constants = decode(V3, on, layout, batch=64, S=100, efficiency=reached).case.constants
    assert V3.experts
    copies = 4096 * V3.experts.k / 8
    assert 1 + sqrt(constants.varied / 4096) == pytest.approx(variation(8, copies))


def test_the_balance_of_a_zipf_histogram_is_that_of_the_packed_slots():
    loads = zipf_loads(256, 0.6)
    found = expert_load.balance(loads, 72, redundant=32, k=8, chips_per_node=8)
    assert found.busiest_chip == pytest.approx(busiest_over_mean(256, 72, skew=0.6, redundant=32))
    assert sum(found.chips) == pytest.approx(72)
    assert sum(found.copies) == pytest.approx(9)


@pytest.mark.parametrize("redundant", [0, 32, 64])
def test_a_balanced_histogram_scales_and_its_order_does_not_matter(redundant):
    loads = zipf_loads(64, 0.8)
    one, other = (
        expert_load.balance(each, 16, redundant=redundant, k=4, chips_per_node=8)
        for each in (loads, [1000 * load for load in reversed(loads)])
    )
    assert one.busiest_chip == pytest.approx(other.busiest_chip)
    assert one.busiest_node_tokens == pytest.approx(other.busiest_node_tokens)


def test_more_replicas_never_raise_the_hottest_slot():
    loads = zipf_loads(64, 1.0)
    slots = [max(replicated(loads, redundant)) for redundant in range(0, 128, 8)]
    assert slots == sorted(slots, reverse=True)


def test_deduplication_evens_out_the_traffic_into_nodes():
    loads = sorted(zipf_loads(256, 0.6))
    found = expert_load.balance(loads, 64, rebalanced=False, k=8, chips_per_node=8)
    assert 1 < found.busiest_node_tokens < found.busiest_node_copies < found.busiest_chip
    assert found.balancedness == 1 / found.busiest_chip


def test_an_even_histogram_is_even_everywhere():
    found = expert_load.balance([5.0] * 32, 8, k=2, chips_per_node=2, rebalanced=False)
    assert set(found.chips) == set(found.copies) == {1.0}
    assert found.tokens == pytest.approx((1,) * 4)


@pytest.mark.parametrize(
    ("loads", "how", "words"),
    [
        ([1.0, -1.0], {}, "a load of -1.0"),
        ([0.0, 0.0], {}, "not all of them 0"),
        ([1.0, 1.0], {"k": 3}, "2 loads and k=3"),
        ([1.0] * 6, {"chips": 4}, r"6 \+ 0 experts are not divisible"),
        ([1.0] * 8, {"chips": 4, "chips_per_node": 3}, "nodes of 3"),
        ([1.0] * 8, {"chips": 4, "redundant": 4, "rebalanced": False}, "replicas have to be placed"),
        ([1.0] * 8, {"chips": 0}, "at least 1 chip"),
    ],
)
def test_a_balance_that_cannot_be_is_refused(loads, how, words):
    with pytest.raises(ValueError, match=words):
        expert_load.balance(loads, **({"chips": 2} | how))


def test_a_pasted_histogram_is_read_with_or_without_brackets():
    assert expert_load.histogram("[812, 640,\n 97; 3e2]") == [812, 640, 97, 300]
    with pytest.raises(ValueError, match="'many' is not a number"):
        expert_load.histogram("812 many")


def test_an_even_load_has_no_busiest_link():
    for shape in ((8,), (4, 4), (2, 4, 4)):
        assert expert_load.busiest_torus_link([1.0] * expert_load.prod(shape), shape) == pytest.approx(1)


def test_the_links_into_the_only_busy_chip_carry_everything():
    loads = [0.0] * 16
    loads[5] = 16.0
    # 8 of 16 senders reach it over each of two links; evenly, a link of a ring of 4 carries 1/8 · 4 · 4
    assert expert_load.busiest_torus_link(loads, (4, 4)) == pytest.approx(6 / 0.5)
    assert expert_load.busiest_torus_link(loads, (4, 4), wrapped=False) > 6


def test_on_a_ring_the_busiest_link_is_never_busier_than_the_busiest_chip():
    loads = zipf_loads(16, 0.8)
    for shape in ((16,), (4, 4), (2, 2, 4)):
        assert 1 < expert_load.busiest_torus_link(loads, shape) <= max(loads)


def test_a_torus_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"\(4, 4\) has 16 chips, and there are 3 loads"):
        expert_load.busiest_torus_link([1.0] * 3, (4, 4))
