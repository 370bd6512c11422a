"""More tensor ways than key-value heads: a chip has a whole one, in training and serving alike."""

from dataclasses import replace

import pytest

from scalingbook_lib import inference, models, training
from scalingbook_lib.inference.shape import shape as serving_shape
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.training import Plan
from scalingbook_lib.training.shape import shape
from scalingbook_lib.training.work import work
from scalingbook_lib.units import BF16

WIDE = models.find("Llama 3 70B")  # 64 heads of queries, 8 of keys and values
NAMES = ("Llama 3 70B", "Llama 3 8B", "Llama 2 7B", "Gemma-2 9B", "Mixtral 8x7B")
POD = Slice.of(chips.V5P, "4x4x8")


def trained(model, **ways):
    plan = Plan(**ways)
    return shape(work(model, 2048, plan.remat, BF16, True), plan, plan.ranks)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tp", [1, 2, 8, 16, 32])
def test_a_chip_holds_for_training_what_it_holds_for_serving(name, tp):
    model = models.find(name)
    if model.N % tp:
        return
    served, one = serving_shape(model, inference.Layout(tp=tp)), trained(model, tp=tp)
    parts = (served.projections, served.mlp, served.experts, served.head)
    held = sum(part.stored for part in parts) + served.embedding + served.other
    assert one.dense + one.expert == pytest.approx(held, rel=1e-12)


def test_up_to_as_many_ways_as_heads_nothing_is_copied():
    for tp in (1, 2, 4, 8):
        assert trained(WIDE, tp=tp).kv == 0.0
        assert work(WIDE, 2048, "none", BF16, True).replicated_matmul_ratio(tp) == 1.0


def test_with_twice_the_ways_a_chip_multiplies_by_twice_its_part_of_keys_and_values():
    kv = 2 * WIDE.L * WIDE.D * WIDE.K * WIDE.H
    assert work(WIDE, 2048, "none", BF16, True).replicated_kv_params(16) == kv
    assert trained(WIDE, tp=16, pp=2).kv == kv / 8 / 2
    asked = {"batch": 128, "T": 2048}
    one, two = (training.step(WIDE, POD, Plan(tp=tp, fsdp=128 // tp), **asked) for tp in (8, 16))
    assert two.hardware_flops - one.hardware_flops == pytest.approx(2 * two.tokens * 3 * kv)
    assert two.useful_flops == one.useful_flops
    assert two.seconds.math.matmul > one.seconds.math.matmul


@pytest.mark.parametrize("zero", [0, 1, 3])
def test_the_chips_of_one_head_sum_its_gradients(zero):
    plan = Plan(tp=32, fsdp=4, zero=zero)
    (one,), frozen = (
        [row for row in training.traffic(WIDE, p, POD, batch=4, T=2048) if row.axes == "K"]
        for p in (plan, replace(plan, frozen=True))
    )
    assert frozen == []
    assert (one.n, one.once) == (4, True)
    assert one.times * one.nbytes == plan.gradients.bytes * 2 * WIDE.L * WIDE.D * WIDE.H / 4
    assert not [
        r for r in training.traffic(WIDE, replace(plan, frozen=True), POD, batch=4, T=2048) if r.axes == "K"
    ]


def test_latent_keys_and_values_are_made_anew_for_every_query_head():
    assert work(models.find("DeepSeek-V3"), 2048, "none", BF16, True).by_kv_head == 0
