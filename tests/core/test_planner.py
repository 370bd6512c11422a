"""The planner: every legal plan judged as `training.step` judges it, the rejected by reason."""

import random

import pytest

from scalingbook_lib import chips, clusters, models, planner, training
from scalingbook_lib.slices import Slice
from scalingbook_lib.training import Efficiency, Plan

B8, B70, B405 = (models.find(f"LLaMA-3 {size}") for size in ("8B", "70B", "405B"))
POD, CUBE = Slice.of(chips.V5P, "16x20x28"), Slice.of(chips.V5P, "16x16x16")
H100, H16K = clusters.Cluster.of(chips.H100, 1024), clusters.Cluster.of(chips.H100, 16384)
ODD, FEW = clusters.Cluster.of(chips.H100, 768), clusters.Cluster.of(chips.H100, 64)
REAL = Efficiency(
    matmul=0.7,
    attention=0.5,
    head=0.6,
    memory=0.8,
    torus=0.85,
    domain=0.7,
    network=0.8,
    dcn=0.9,
    fixed_s=0.01,
)
ALL = {
    "zero": (0, 1, 2, 3),
    "schedule": ("gpipe", "1f1b", "interleaved", "zero-bubble"),
    "remat": ("none", "dots", "full"),
}
HALF = {"overlap": 0.5, "collective_matmul": True}
PLAIN = {"overlap": "none", "sequence_parallel": False}


@pytest.mark.parametrize(
    ("model", "machine", "asked"),
    [
        (B405, H16K, {"batch": 2048, "T": 8192}),
        (B70, H100, {"batch": 1024, "T": 8192, "efficiency": REAL, "fixed": HALF}),
        (B70, ODD, {"batch": 768, "T": 8192, "tried": ALL, "fixed": {"context": "ulysses"}}),
        (B70, CUBE, {"batch": 1024, "T": 4096, "pods": 2, "fixed": PLAIN}),
        (B70, POD, {"batch": 1120, "T": 4096, "every": True}),
        (models.find("Mixtral 8x7B"), FEW, {"batch": 256, "T": 4096}),
    ],
)
def test_a_plan_is_judged_as_its_step(model, machine, asked):
    found = planner.plans(model, machine, **asked)
    for point in random.Random(1).sample(found.points, min(len(found.points), 150)):
        step = found.step(point)
        assert point.step_s == pytest.approx(step.total_s, rel=1e-9)
        assert point.memory_bytes == pytest.approx(step.memory.total, rel=1e-9)
        assert not training.feasible(model, machine, step.plan, asked["batch"], asked["T"])


def test_the_best_comes_first_and_holds_what_was_asked():
    found = planner.plans(B70, H100, batch=512, T=8192, fixed={"tp": 8, "remat": "full"})
    assert {(one.plan.tp, one.plan.remat) for one in found} == {(8, "full")}
    times = [one.step.total_s for one in found]
    assert times == sorted(times)
    assert times[0] == pytest.approx(min(point.step_s for point in found.points))
    assert found.spreads == found.legal + sum(one.count for one in found.rejected)


def test_the_reference_plan_of_70b_uses_8192_chips_and_not_the_pod():
    found = planner.plans(B70, POD, batch=1024, T=4096, fixed={"tp": 4, "pp": 1})
    assert {"sequences", "even shards"} & {one.kind for one in found.rejected}
    with pytest.raises(ValueError, match="plan is for 8,192 chips, there are 8,960"):
        training.step(B70, POD, Plan(fsdp=2048, tp=4), batch=2048, T=4096)


def test_4096_chips_are_split_cleanly():
    found = planner.plans(B70, CUBE, batch=1024, T=4096, fixed={"tp": 4, "pp": 1, "cp": 1, "dp": 1})
    assert found.winner.plan.fsdp == 1024
