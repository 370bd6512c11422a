"""The planner: every legal plan judged as `training.step` judges it, the rejected by reason."""

import random
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from scalingbook_lib import calibrated, models, planner, training
from scalingbook_lib.machines import chips, clusters
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.planner.sensitivity import Change
from scalingbook_lib.training import Plan, TrainingEfficiency

B8, B70, B405 = (models.find(f"Llama 3 {size}") for size in ("8B", "70B", "405B"))
POD, CUBE = Slice.of(chips.V5P, "16x20x28"), Slice.of(chips.V5P, "16x16x16")
H100, H16K = clusters.Cluster.of(chips.H100, 1024), clusters.Cluster.of(chips.H100, 16384)
FEW = clusters.Cluster.of(chips.H100, 64)
REAL = TrainingEfficiency(
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
HALF = {"overlap": 0.5, "collective_matmul": True}
PLAIN = {"overlap": "none", "sequence_parallel": False}


@pytest.mark.parametrize(
    ("model", "machine", "asked"),
    [
        (B405, H16K, {"batch": 2048, "T": 8192}),
        (B70, H100, {"batch": 1024, "T": 8192, "efficiency": REAL, "fixed": HALF}),
        (B70, CUBE, {"batch": 1024, "T": 4096, "pods": 2, "fixed": PLAIN}),
        (models.find("Mixtral 8x7B"), FEW, {"batch": 256, "T": 4096}),
    ],
)
def test_a_point_is_the_step_of_its_plan(model, machine, asked):
    found = planner.plans(model, machine, **asked)
    how = {name: asked[name] for name in ("batch", "T", "efficiency") if name in asked}
    for point in random.Random(1).sample(found.points, 30):
        step = training.step(model, machine, point.plan, **how)
        assert point[:3] == (step.total_s, step.total_s, step.memory.total)
        assert not training.feasible(model, machine, point.plan, asked["batch"], asked["T"])


def test_the_best_comes_first_and_holds_what_was_asked():
    found = planner.plans(B70, H100, batch=512, T=8192, fixed={"tp": 8, "remat": "full"})
    assert {(one.plan.tp, one.plan.remat) for one in found} == {(8, "full")}
    times = [one.step.total_s for one in found]
    assert times == sorted(times)
    assert times[0] == pytest.approx(min(point.step_s for point in found.points))
    assert found.spreads == found.legal + sum(one.count for one in found.rejected)


def test_the_reference_plan_of_70b_uses_8192_chips_and_not_the_pod():
    """2,048 · 4 is 8,192, not 8,960; and 70B's heads, D and 1,024 sequences do not divide by 5 or 7."""
    with pytest.raises(ValueError, match="plan uses 8,192 chips, but the machine has 8,960"):
        training.step(B70, POD, Plan(fsdp=2048, tp=4), batch=2048, T=4096)
    asked = {"batch": 1024, "T": 4096}
    found = planner.plans(B70, POD, **asked)
    assert found.winner.plan.pp % 35 == 0  # nothing but the stages can take the 5 and the 7
    assert not planner.plans(B70, POD, **asked, fixed={"pp": 1}).best
    kinds = {one.kind for one in planner.plans(B70, POD, **asked, fixed={"pp": 1}).rejected}
    assert {"the tensor-parallel degree", "the context-parallel degree", "the batch size"} <= kinds


def test_2240_by_4_works_with_1120_sequences_over_two_chips_each_but_for_the_shards():
    """A way out of 8,960 chips: 2,240 = 1,120 data · 2 context ways; but D = 8,192 must be split too."""
    fixed = {"tp": 4, "cp": 2, "pp": 1}
    found = planner.plans(B70, POD, batch=1120, T=4096, fixed=fixed, tried={"zero": (0, 1, 2, 3)})
    assert {one.plan.fsdp * one.plan.dp for one in found} <= {1120}
    assert all((B70.D % (one.plan.fsdp * one.plan.cp) == 0) or one.plan.zero == 0 for one in found)
    alone = planner.plans(B70, POD, batch=1120, T=4096, fixed=fixed | {"dp": 1})
    assert "even shards" in {one.kind for one in alone.rejected}


def test_4096_chips_are_split_cleanly():
    """The clean alternative: 16x16x16 as FSDP 1,024 · TP 4, for 1,024 sequences."""
    asked = {"batch": 1024, "T": 4096, "fixed": {"pp": 1, "cp": 1, "dp": 1, "zero": 3}}
    found = planner.plans(B70, CUBE, **asked, every=True)
    assert found.winner.plan.fsdp * found.winner.plan.tp == 4096
    by_degree = {point.plan.tp: point.step_s for point in sorted(found.points, key=lambda p: -p.step_s)}
    assert by_degree[4] < by_degree[16]  # 16 is bound by tensor parallelism
    assert not {1, 2} & set(by_degree)  # 2,048 and 4,096 data ranks for 1,024 sequences
    assert "the batch size" in {one.kind for one in found.rejected}


def test_memory_is_refused_with_the_nearest_miss():
    found = planner.plans(B405, clusters.Cluster.of(chips.H100, 64), batch=64, T=8192)
    assert not found.best
    (memory,) = [one for one in found.rejected if one.kind == "memory"]
    assert "H100 has 85.9 GB" in memory.why
    assert memory.plan
    smallest = training.memory(B405, replace(memory.plan, zero=3, remat="full"), batch=64, T=8192).total
    assert smallest > chips.H100.hbm_bytes
    assert "no plan is possible" in str(found)
    with pytest.raises(ValueError, match="no plan is possible"):
        _ = found.winner


def test_the_published_plan_of_405b_is_of_the_best_kind():
    """Meta's 16,384 H100 (arXiv 2407.21783, table 4): TP 8 inside a host, PP 16, DP 128, 41% MFU."""
    efficiency = calibrated.training(chips.H100, "bf16")
    asked = {"batch": 2048, "T": 8192, "efficiency": efficiency}
    best = planner.plans(B405, H16K, **asked, fixed={"cp": 1}).winner
    assert best.plan.tp == 8
    meta = planner.plans(B405, H16K, **asked, fixed={"cp": 1, "tp": 8, "pp": 16}).winner.step
    assert meta.total_s < 1.15 * best.step.total_s
    assert meta.mfu == pytest.approx(0.41, rel=0.12)


def test_the_runner_up_loses_by_its_terms():
    found = planner.plans(B70, H100, batch=512, T=8192)
    assert found.why.first == found.winner.step
    assert found.runner_up.step.total_s >= found.winner.step.total_s
    assert sum(found.why.terms.values()) == pytest.approx(found.why.lost_s)
    assert found.why.changed
    assert "longer" in str(found.why)
    assert len(found.table.splitlines()) == 1 + len(found.best)
    short = planner.plans(B8, FEW, batch=64, T=128)
    for why, total_s in ((found.why, found.winner.step.total_s), (short.why, short.winner.step.total_s)):
        told = {name for name in why.terms if re.search(f"[:,] {re.escape(name)} [+−]", str(why))}
        assert told == {name for name, s in why.terms.items() if abs(s) > 1e-4 * total_s}
    same = planner.Comparison(found.winner.step, found.winner.step)
    assert str(same) == "the same plan: no difference in time"


def test_sensitivity_searches_again():
    found = planner.plans(B70, H100, batch=512, T=8192)
    told = planner.sensitivity(found)
    assert [change.gain for change in told.changes] == sorted((c.gain for c in told.changes), reverse=True)
    assert 1 < told["compute"].gain <= 2
    for change in told.changes:
        assert change.gain >= change.before_s / change.same_s * (1 - 1e-12)
        assert change.gain >= 1 - 1e-12
    assert "2× compute" in str(told)
    with pytest.raises(KeyError, match="no change of 'hope'"):
        _ = told["hope"]
    with pytest.raises(ValueError, match="twice as fast"):
        planner.faster(H100, "links", 0)


def test_a_change_tells_what_it_brings_and_how_much_of_that_needs_no_other_plan():
    then = SimpleNamespace(step=SimpleNamespace(total_s=0.5))
    other, same = (Change("links", 2.0, 1.0, same_s, then) for same_s in (0.8, 0.5))
    assert str(same) == "2× links: step time 500 ms, 50% shorter"
    assert str(other) == f"{same} (20% shorter with the same plan)"


def test_pods_are_copies_over_the_data_center_network():
    found = planner.plans(B405, CUBE, batch=2048, T=8192, pods=4)
    assert {one.plan.dcn for one in found} == {4}
    assert {one.plan.chips for one in found} == {4 * 4096}
    assert planner.sensitivity(found, what=("network",)).changes


def test_the_same_question_has_the_same_answer():
    one, other = (planner.plans(B8, H100, batch=1024, T=8192) for _ in range(2))
    assert [judged.plan for judged in one] == [judged.plan for judged in other]
    assert one.points == other.points


def test_a_field_that_no_plan_has_is_refused():
    with pytest.raises(ValueError, match="a plan has no 'pipeline'"):
        planner.plans(B8, H100, batch=1024, T=8192, fixed={"pipeline": 2})


@pytest.mark.parametrize(
    ("model", "fixed", "why"),
    [
        ("Llama 3 8B", {"tp": 3}, "tp=3 does not divide the 64 chips; write one of 1, 2, 4, 8, 16, 32, 64"),
        ("Llama 3 8B", {"fsdp": 7}, "fsdp=7 does not divide the 64 chips"),
        ("Llama 3 8B", {"cp": 128}, "cp=128 does not divide the 64 chips"),
        ("Llama 3 8B", {"tp": 8, "cp": 16}, "tp=8, cp=16: tp · cp · fsdp · pp · dp cannot be the 64 chips"),
        ("Llama 3 8B", {"tp": 4, "fsdp": 2, "cp": 1, "pp": 1, "dp": 1}, "cannot be the 64 chips"),
        ("Mixtral 8x7B", {"ep": 3}, "ep=3 does not divide the 8 experts; write one of 1, 2, 4, 8"),
        ("Mixtral 8x7B", {"ep": 16}, "ep=16 does not divide the 8 experts"),
        (
            "Mixtral 8x7B",
            {"ep": 8, "fsdp": 2, "tp": 2, "cp": 1},
            "ep=8 does not divide the 4 chips that hold one",
        ),
        ("Llama 3 8B", {"remat": "save:zz"}, "Llama 3 8B has no product 'zz'"),
        ("Llama 3 8B", {"stage_layers": (7, 8, 8, 8)}, "stage_layers has 31 layers, the model has 32"),
        ("Llama 3 8B", {"stage_layers": (11, 11, 10)}, "pp=3 does not divide the 64 chips"),
    ],
)
def test_the_first_reason_says_which_degree_does_not_divide(model, fixed, why):
    found = planner.plans(models.find(model), FEW, batch=512, T=8192, fixed=fixed)
    assert not found.best
    assert any(why in one.why for one in found.rejected[:2])


def test_unequal_stages_are_searched():
    asked = {"batch": 512, "T": 8192}
    fixed = {"stage_layers": (7, 8, 8, 9), "schedule": "1f1b", "remat": "full"}
    found, even = (planner.plans(B8, FEW, **asked, fixed=fixed | more, keep=1) for more in ({}, {"pp": 4}))
    assert found.winner.plan == even.winner.plan
    assert found.winner.plan.stage_layers == (7, 8, 8, 9)
    everything = planner.plans(B8, FEW, **asked, fixed=fixed, keep=1, every=True)
    assert everything.winner.plan == found.winner.plan
    alike = planner.plans(B8, FEW, **asked, fixed={"pp": 4, "schedule": "1f1b", "remat": "full"}, keep=1)
    assert alike.winner.objective_s < found.winner.objective_s  # the last stage has nine layers and the head
    with pytest.raises(ValueError, match="for each of pp=2 stages"):
        planner.plans(B8, FEW, **asked, fixed=fixed | {"pp": 2})
