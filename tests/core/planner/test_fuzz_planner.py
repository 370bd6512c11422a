"""Whatever the question: the planner finds every legal plan, and none is better than its best."""

from dataclasses import replace
from itertools import product

import pytest

from scalingbook_lib import models, planner, training
from scalingbook_lib.machines import chips, clusters
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.training import Plan, PlanError, TrainingEfficiency
from tests.core import repeatable

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

SETTINGS = repeatable.examples(25)
DENSE = [models.find(name) for name in ("GPT-2 124M", "Llama 3 8B", "Llama 3 70B", "Gemma-2 9B")]
ROUTED = [models.find(name) for name in ("Mixtral 8x7B", "Qwen3 30B-A3B")]
MACHINES = [
    clusters.Cluster.of(chips.H100, 8),
    clusters.Cluster.of(chips.H100, 96),
    clusters.Cluster.of(chips.GB200, 72),
    Slice.of(chips.V5P, "4x4x8"),
    Slice.of(chips.V6E, "8x8"),
]
SMALL = [MACHINES[0], Slice.of(chips.V6E, "2x4")]
SHARE = st.floats(0.3, 1.0)
T = 2048


@st.composite
def questions(draw, which=DENSE, machines=MACHINES):
    """A model, a machine and what is asked of them."""
    asked = {
        "batch": draw(st.sampled_from((24, 64, 96, 128))),
        "T": T,
        "efficiency": TrainingEfficiency(
            **{name: draw(SHARE) for name in ("matmul", "memory", "domain", "torus", "overlap")},
            layer_s=draw(st.sampled_from((0.0, 2e-5))),
        ),
        "fixed": {"overlap": draw(st.sampled_from(("full", "none", 0.5))),
                  "sequence_parallel": draw(st.booleans()), "collective_matmul": draw(st.booleans())},
    }  # fmt: skip
    return draw(st.sampled_from(which)), draw(st.sampled_from(machines)), asked


def best_s(found):
    return found.winner.step.total_s if found.best else float("inf")


@SETTINGS
@hypothesis.given(questions(), st.data())
def test_no_plan_made_by_hand_is_better(question, data):
    model, machine, asked = question
    found, ways, left = planner.plans(model, machine, **asked), {}, machine.chips
    for name in ("tp", "cp", "pp", "dp"):
        ways[name] = data.draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0]))
        left //= ways[name]
    ways |= {
        name: data.draw(st.sampled_from(planner.CANDIDATES[name])) for name in ("zero", "remat", "microbatch")
    }
    plan = Plan(**asked["fixed"], **ways, fsdp=left)
    hypothesis.assume(not training.feasible(model, machine, plan, asked["batch"], T))
    step = training.step(model, machine, plan, batch=asked["batch"], T=T, efficiency=asked["efficiency"])
    assert best_s(found) <= step.total_s * (1 + 1e-9)


@SETTINGS
@hypothesis.given(st.one_of(questions(), questions(ROUTED, SMALL)), st.data())
def test_a_constraint_never_makes_it_faster(question, data):
    model, machine, asked = question
    found = planner.plans(model, machine, **asked)
    hypothesis.assume(found.points)
    point = data.draw(st.sampled_from(found.points))
    names = data.draw(
        st.lists(st.sampled_from(("tp", "cp", "pp", "fsdp", "dp", "remat", "zero", "microbatch")))
    )
    fixed = asked["fixed"] | {name: getattr(point.plan, name) for name in names}
    held = planner.plans(model, machine, **asked | {"fixed": fixed})
    assert all(getattr(one.plan, name) == fixed[name] for one in held for name in names)
    assert best_s(held) >= best_s(found) * (1 - 1e-9)


@SETTINGS
@hypothesis.given(questions(machines=[Slice.of(chips.V5P, "4x4x8"), Slice.of(chips.V6E, "8x8")]))
def test_twice_every_rate_is_half_the_time(question):
    model, machine, asked = question
    asked["efficiency"] = replace(asked["efficiency"], layer_s=0.0)
    slow = replace(machine, chip=replace(machine.chip, hop_s=1e-30))
    fast = slow
    for what in ("compute", "HBM", "links"):
        fast = planner.faster(fast, what, 2)
    assert best_s(planner.plans(model, fast, **asked)) == pytest.approx(
        best_s(planner.plans(model, slow, **asked)) / 2, rel=1e-9
    )


@SETTINGS
@hypothesis.given(st.sampled_from(DENSE + ROUTED), st.sampled_from(SMALL), st.sampled_from((12, 16)))
def test_every_legal_plan_is_found_and_no_other(model, machine, batch):
    tried = {"microbatch": (1, 2), "schedule": ("1f1b", "interleaved"), "chunks": (2,), "zero": (1, 3)}
    found = planner.plans(model, machine, batch=batch, T=T, tried=tried, every=True)
    by_hand = {
        plan for plan in _all(machine.chips, model)
        if not training.feasible(model, machine, plan, batch, T)
    }  # fmt: skip
    assert {point.plan for point in found.points} == by_hand
    assert found.spreads == found.legal + sum(one.count for one in found.rejected)


def _all(n, model):
    """Every combination, the sensible and the others; where a choice says nothing, its first value."""
    ways = [w for w in product([d for d in range(1, n + 1) if n % d == 0], repeat=4) if n % _prod(w) == 0]
    experts = model.experts.E if model.experts else 1
    for tp, cp, pp, fsdp in ways:
        shared = fsdp * cp > 1
        schedules = (("1f1b", 1), ("interleaved", 2)) if pp > 1 else (("1f1b", 1),)
        split = (None, 1) if model.experts and tp > 1 else (None,)
        divisors = [d for d in range(1, n + 1) if experts % d == 0]
        kinds = product(schedules, (1, 3), ("none", "selective", "full"), (1, 2), divisors, split)
        for (schedule, chunks), zero, remat, microbatch, ep, expert_tp in kinds:
            if zero > 1 and not shared and expert_tp is None:
                continue
            try:
                yield Plan(
                    tp=tp, cp=cp, pp=pp, fsdp=fsdp, dp=n // (tp * cp * pp * fsdp), schedule=schedule,
                    chunks=chunks, zero=zero, remat=remat, microbatch=microbatch, ep=ep, expert_tp=expert_tp,
                )  # fmt: skip
            except PlanError:
                continue


def _prod(ways):
    tp, cp, pp, fsdp = ways
    return tp * cp * pp * fsdp
