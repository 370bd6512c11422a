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
    with pytest.raises(ValueError, match=r"write no negative|do not divide"):
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
    with pytest.raises(LayoutError, match=r"256 \+ 4 experts do not divide"):
        Layout(tp=8, ep=8, redundant_experts=4).check(V3)


def test_the_variation_of_serving_is_the_same_formula():
    on = Cluster.of(chips.H200, 8)
    layout, reached = Layout(tp=8, ep=8, attention_dp=8), calibrated.serving(chips.H200)
    constants = decode(V3, on, layout, batch=64, S=100, efficiency=reached).case.constants
    assert V3.experts
    copies = 4096 * V3.experts.k / 8
    assert 1 + sqrt(constants.varied / 4096) == pytest.approx(variation(8, copies))
