"""Branch and bound finds what an exhaustive search finds, and no step, nor memory, is below its bound."""

from math import log2
from random import Random

import pytest

from scalingbook_lib import models, planner, training
from scalingbook_lib.machines import chips, clusters
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.planner import step_bounds
from scalingbook_lib.planner.feasible import Feasible
from scalingbook_lib.planner.meshes import plan_fields
from scalingbook_lib.planner.space import space
from scalingbook_lib.training import PEAK, TrainingCase, TrainingEfficiency
from scalingbook_lib.training.memory import held

DENSE = [models.find(name) for name in ("GPT-2 124M", "Llama 3 8B", "Gemma-2 9B", "Llama 3 70B")]
ROUTED = [models.find(name) for name in ("Mixtral 8x7B", "Qwen3 30B-A3B")]
CLUSTERS = [clusters.Cluster.of(chip, n) for chip, n in ((chips.H100, 8), (chips.H100, 24), (chips.B300, 16))]
TORI = [Slice.of(chips.V6E, "2x4"), Slice.of(chips.V5P, "2x2x4"), Slice.of(chips.V5E, "4x4")]
OTHERS = (
    {},
    {"schedule": ("gpipe", "zero-bubble", "dualpipe"), "microbatch": (1, 3)},
    {"zero": (0, 3), "remat": ("none", "dots", "full")},
    {"remat": ("selective", "full"), "zero": (2,), "cp": (1, 2)},
)
FIXED = (
    {},
    {"overlap": "none", "context": "gather"},
    {"overlap": 0.5, "collective_matmul": True},
    {"context": "ulysses", "sequence_parallel": False},
    {"frozen": True, "prefetch": False},
)


def drawn(seed):
    """A small question: a model, a machine and what is asked of them."""
    r = Random(seed)
    routed = seed % 4 == 3
    model, machine = r.choice(ROUTED if routed else DENSE), r.choice(CLUSTERS + TORI)
    if routed:  # each place of experts is a plan more
        machine = r.choice((*CLUSTERS[:2], TORI[0], clusters.Cluster.of(chips.B300, 8)))
    shares = ("matmul", "attention", "memory", "domain", "network", "torus", "overlap")
    real = TrainingEfficiency(**{name: r.uniform(0.3, 1) for name in shares}, layer_s=2e-5, fixed_s=0.01)
    tried = dict(OTHERS[r.randrange(len(OTHERS))])
    if routed:
        tried |= {"microbatch": (1,), "ep": (1, 2, 8), "chunks": (2,)}
    return (
        model,
        machine,
        {
            "batch": r.choice((24, 64, 96)),
            "T": r.choice((2048, 4096)),
            "efficiency": r.choice((PEAK, real, real)),
            "fixed": r.choice(FIXED),
            "tried": tried,
            "keep": r.choice((1, 3, 10)),
        },
    )


def pessimistic_s(step):
    """A step that is the less certain, the more chips wait for each other."""
    return step.total_s * (1 + 0.03 * log2(step.plan.cp * step.plan.pp))


class Unusual:
    """The step times a factor that depends on the degrees of a plan alone."""

    def __call__(self, step):
        p = step.plan
        return step.total_s * self.least_factor(tp=p.tp, cp=p.cp, pp=p.pp, microbatch=p.microbatch, ep=p.ep)

    def least_factor(self, *, tp, cp, pp, microbatch, ep=None):
        return (
            (1 + 0.1 * log2(cp * pp))
            * (1.2 if tp > 1 else 1)
            * (1.1 if microbatch > 2 else 1)
            * (ep or 1) ** 0.1
        )


def told(found):
    return [(one.plan, one.objective_s) for one in found]


@pytest.mark.parametrize("objective", [planner.step_time, pessimistic_s, Unusual()])
@pytest.mark.parametrize("seed", range(24))
def test_the_best_are_those_of_an_exhaustive_search(seed, objective):
    model, machine, asked = drawn(seed)
    how = {"objective": objective, "headroom": (0.0, 0.3, -0.1)[seed % 3]}
    every = planner.plans(model, machine, **asked, **how, every=True)
    found = planner.plans(model, machine, **asked, **how)
    assert told(found) == told(every)
    assert (found.next_mesh and found.next_mesh.plan) == (every.next_mesh and every.next_mesh.plan)
    assert (found.spreads, found.legal, found.rejected) == (every.spreads, every.legal, every.rejected)
    assert found.judged <= every.judged
    assert every.pruned == 0
    if found.best:
        assert found.winner.objective_s == min(point.objective_s for point in every.points)


@pytest.mark.parametrize("seed", range(24))
def test_no_plan_is_below_its_bounds(seed):
    model, machine, asked = drawn(seed)
    how = {name: asked[name] for name in ("batch", "T")}
    on = space(model, machine, **how, pods=1, fixed=asked["fixed"], candidates=asked["tried"])
    case = TrainingCase(model, machine, **how, efficiency=asked["efficiency"])
    feasible, r, most = Feasible(on, case), Random(seed), on.candidates["zero"][-1]
    groups = list(on.groups())
    for g in r.sample(groups, min(len(groups), 25)):
        fsdp = r.choice(on.splits(g.mesh.data_ranks))
        for sharing in feasible.sharings(g, fsdp)[:3]:
            for remat in on.candidates["remat"]:
                least_s = step_bounds.compute_s(on, case, g, remat)
                bound_s = step_bounds.exposed_s(on, case, g, sharing, remat)
                for zero in feasible.zeros(g, sharing):
                    plan = on.plan(**plan_fields(g, sharing), zero=zero, remat=remat)
                    one = training.evaluate(case, plan, memory_first=False)
                    if one.step:
                        assert least_s <= bound_s * (1 + 1e-12)
                        assert bound_s <= one.step_s * (1 + 1e-12)
                    full = on.plan(**plan_fields(g, sharing), zero=zero, remat=feasible.remats[0])
                    kept = step_bounds.kept_bytes(held(case.shape(full), machine))
                    assert kept <= held(case.shape(plan), machine).total
                    if zero <= most and most in feasible.zeros(g, sharing):
                        top = on.plan(**plan_fields(g, sharing), zero=most, remat=feasible.remats[0])
                        state = step_bounds.state_bytes(held(case.shape(top), machine))
                        assert state <= held(case.shape(plan), machine).total


def test_an_objective_below_the_step_is_refused():
    with pytest.raises(ValueError, match="of its step"):
        planner.plans(DENSE[1], CLUSTERS[0], batch=64, T=4096, objective=lambda step: step.total_s / 2)


def test_of_a_large_machine_s_plans_few_are_judged():
    cluster = clusters.Cluster.of(chips.H100, 16384)
    found = planner.plans(models.find("Llama 3.1 405B"), cluster, batch=2048, T=8192, keep=5)
    assert found.legal == 17_293
    assert found.pruned > 0.9 * found.legal
    assert found.judged < 0.1 * found.legal
    assert f"{found.pruned:,} pruned because the lower bound on their step time exceeds" in found.counts


def test_a_search_that_is_ended_has_the_best_so_far():
    how = {"batch": 256, "T": 4096}
    whole = planner.plans(DENSE[1], CLUSTERS[0], **how)
    assert not whole.stopped
    ended = planner.plans(DENSE[1], CLUSTERS[0], **how, watch=lambda done, of: of > 0 and done > 20)
    assert ended.stopped
    assert ended.best
    assert 20 < ended.judged < whole.judged
    at_once = planner.plans(DENSE[1], CLUSTERS[0], **how, watch=lambda *_: True)
    assert at_once.stopped
    assert at_once.best
    assert at_once.legal < whole.legal
