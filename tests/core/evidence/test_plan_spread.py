"""Plans of published runs: what is recorded of them, and whether the planner recommends plans like them."""

from math import exp

import pytest

from scalingbook_lib import calibrated, models
from scalingbook_lib.calibrated import measured_plans
from scalingbook_lib.calibrated.measured_plans import Shape, by_nearness, ranges
from scalingbook_lib.calibrated.memory_margin import memory_margin
from scalingbook_lib.calibrated.pessimistic import OUTSIDE, PER_KIND, Pessimistic, plan_spread
from scalingbook_lib.evidence.training import spread
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.training import Plan

approx = pytest.approx
B405, B70 = models.find("Llama 3.1 405B"), models.find("Llama 3 70B")
H16K, H1K = (Cluster.of(chips.H100, n) for n in (16384, 1024))
T = 8192


def test_every_published_plan_is_recorded():
    assert measured_plans.measured_plans() == spread.measured_plans()
    assert (plan_spread(False), plan_spread(True)) == (spread.spread(False), spread.spread(True))


def test_the_measured_ranges_are_those_of_runs_of_a_similar_shape():
    found = ranges(Shape.of(B405, 16384, T))
    assert (found.degrees["tp"], found.degrees["pp"], found.degrees["cp"]) == ((8, 8), (16, 16), (1, 1))
    assert found.doublings(tp=8, pp=16, cp=1) == 0
    assert found.doublings(tp=2, pp=32, cp=2) == 4 + 1 + 1
    alone = ranges(Shape(params=10**13, experts=False, chips=64, T=T))
    assert (alone.runs, alone.doublings(tp=64, cp=64)) == (0, 0)


def test_shapes_are_similar_within_their_factors():
    one = Shape(params=70, experts=False, chips=512, T=8192)
    assert one.similar(Shape(params=210, experts=False, chips=128, T=4096))
    for other in (
        Shape(params=211, experts=False, chips=512, T=8192),
        Shape(params=70, experts=True, chips=512, T=8192),
        Shape(params=70, experts=False, chips=2049, T=8192),
        Shape(params=70, experts=False, chips=512, T=16385),
        Shape(params=70, experts=False, chips=512, T=8192, frozen=True),
    ):
        assert not one.similar(other)


def test_p80_grows_with_the_distance_from_measured_plans():
    rule = Pessimistic.of(B405, 16384, T)
    factors = [rule.least_factor(tp=8, cp=cp, pp=16, microbatch=1) for cp in (1, 2, 4, 8)]
    spread_ = plan_spread(False)
    assert factors[0] == approx(exp(0.8416 * spread_.inside) * PER_KIND**2, rel=1e-4)
    assert factors == sorted(factors)
    assert factors[1] / factors[0] > OUTSIDE
    assert rule.outside(Plan(tp=8, pp=16, cp=4, fsdp=32)) == ("cp",)


def test_errors_outside_the_measured_degrees_are_larger():
    """Of dense models; of models with experts they are as large everywhere."""
    assert spread.spread(False).doubling > 0.03
    assert plan_spread(True).inside > plan_spread(False).inside


def test_the_nearest_published_plan_has_the_closest_shape():
    found = by_nearness(Shape.of(B405, 16384, T), Plan(tp=8, pp=16, fsdp=128), "H100")[0]
    assert (found.model, found.degree("tp"), found.degree("pp")) == ("Llama 3.1 405B", 8, 16)
    assert found.on(1024).chips == 1024
    assert "Llama 3.1 405B on 16,384 H100 at 8,192 tokens with TP 8, PP 16" in str(found)
    routed = models.find("Mixtral 8x7B")
    assert by_nearness(Shape.of(routed, 128, 4096), Plan(ep=8, fsdp=128))[0].shape.experts


def test_the_nearest_published_plan_trains_the_same_share_of_the_weights():
    """Most published runs of this size at these chips are MLPerf's LoRA runs, whose weights are frozen."""
    llama = models.find("Llama 2 70B")
    for frozen in (False, True):
        plan = Plan(tp=1, cp=8, fsdp=64, zero=1, frozen=frozen)
        found = by_nearness(Shape.of(llama, 512, T, frozen), plan, "GB200")[0]
        assert found.shape.frozen == found.plan.get("frozen", False) == frozen
    lora = {"fixed": {"frozen": True}, "batch": 64, "T": T, "keep": 1}
    found = calibrated.recommend(llama, Cluster.of(chips.H200, 64), **lora)
    assert "lora" in found.published.plan.id
    assert found.objective.measured == ranges(Shape.of(llama, 64, T, True))


def test_a_published_run_of_the_very_question_is_the_nearest():
    found = calibrated.recommend(models.find("Llama 3 70B"), Cluster.of(chips.H100, 512), batch=1024, T=T)
    near = found.published
    assert near.step
    assert (near.plan.model, near.plan.chip, near.plan.shape.chips) == ("Llama 3 70B", "H100", 512)
    assert near.plan.degrees == "TP 4, CP 2, PP 4"


def test_the_nearest_published_plan_is_the_nearest_that_divides():
    llama, few = models.find("Llama 3 8B"), Cluster.of(chips.H100, 64)
    found = calibrated.recommend(llama, few, batch=16, T=T, keep=1)
    near = by_nearness(Shape.of(llama, 64, T), found.winner.plan, "H100")
    closer = near[: near.index(found.published.plan)]
    assert "CP 2" in str(near[0])  # its 32 data ranks have half a sequence each
    assert len(closer) > 1
    assert all(one.on(64).ranks * one.degree("microbatch") > 16 for one in closer)
    assert found.published.step
    few = calibrated.recommend(llama, few, batch=3, T=T, keep=1)
    assert few.published.step is None
    assert str(few.published).endswith("No published plan divides this model, batch and number of chips.")


def test_405b_on_16384_h100_is_spread_as_meta_did():
    found = calibrated.recommend(B405, H16K, batch=2048, T=T, efficiency=calibrated.training(chips.H100))
    plan = found.winner.plan
    assert (plan.tp, plan.cp, plan.pp) == (8, 1, 16)
    assert found.winner.step.memory.total < 0.78 * chips.H100.hbm_bytes
    assert found.published.step
    assert found.published.plan.model == "Llama 3.1 405B"
    assert "to be 10% better" in found.unusual
    assert "fits with a probability of 90%" in found.memory
    assert "80 in 100 steps" in str(found)


@pytest.mark.parametrize(
    ("model", "machine", "batch"),
    [
        ("Llama 3 70B", H1K, 1024),
        ("Mixtral 8x7B", Cluster.of(chips.H100, 128), 512),
        ("Llama 3 8B", H1K, 1024),
    ],
)
def test_common_models_get_little_context_parallelism_and_headroom(model, machine, batch):
    found = calibrated.recommend(
        models.find(model), machine, batch=batch, T=T, efficiency=calibrated.training(chips.H100)
    )
    assert found.winner.plan.cp <= 2
    assert found.winner.plan.pp == 1
    assert found.winner.step.memory.total <= (1 - memory_margin(chips.H100).headroom) * chips.H100.hbm_bytes


def test_headroom_that_is_asked_for_is_left_or_nothing_is_found():
    pod = Slice.of(chips.V5E, "4x4")
    how = {"batch": 64, "T": 4096, "keep": 1}
    found = calibrated.recommend(models.find("Llama 3 8B"), pod, headroom=0.4, **how)
    assert found.winner.step.memory.total <= 0.6 * chips.V5E.hbm_bytes
    assert not calibrated.recommend(models.find("Llama 3 8B"), pod, headroom=0.9, **how).ranking.best
