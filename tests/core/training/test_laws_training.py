"""10,000 plans of catalog chips and models: faster chips are never slower, more ways never hold more."""

import sys
from dataclasses import replace
from random import Random

from laws import PLACES, RATES, SLACK, divisors, machine, types

from scalingbook_lib import calibrated, models
from scalingbook_lib.training import (
    PEAK,
    Plan,
    PlanError,
    TrainingCase,
    TrainingEfficiency,
    evaluate,
    memory,
    shape,
    times,
)
from scalingbook_lib.training.plan import CONTEXTS, REMAT, SCHEDULES
from scalingbook_lib.units import BF16, FP32

MODELS = [model for model in models.CATALOG if not model.linear]
ROUGH = TrainingEfficiency(
    matmul=0.7, attention=0.4, experts=0.3, head=0.6, memory=0.6, torus=0.8, domain=0.7, network=0.6, dcn=0.5,
    overlap=0.7, ramp=800, operands=1.0, layer_s=2e-5, expert_layer_s=4e-4, fixed_s=1e-2,
)  # fmt: skip
# In a browser's Python, a dozen times as slow, some show that its numbers are these; here all hold the law.
PLANS = 1_000 if sys.platform == "emscripten" else 10_000


def ways(r, model, chips, pods):
    """Any division of the chips."""
    found = {"dcn": r.choice((1, 1, 2, 4)) if pods else 1}
    for name, most in (("tp", 16), ("cp", 8), ("pp", 16), ("dp", 16)):
        found[name] = r.choice(divisors(chips, most)) if r.random() < 0.6 else 1
        chips //= found[name]
    found["fsdp"] = chips
    if model.experts and r.random() < 0.8:
        found["expert_tp"] = r.choice((None, 1))
        room = found["cp"] * chips * (found["tp"] if found["expert_tp"] else 1)
        found["ep"] = r.choice([n for n in divisors(room, 64) if model.experts.E % n == 0])
    return found


def subject(r):
    """A model, a place, what is kept and the sequences: plans of one subject share what is known of it."""
    remat = r.choice((*REMAT, "save:q,k,v", "offload:in,o", "full:3"))
    return r.choice(MODELS), r.choice(PLACES), remat, r.choice((1024, 4096, 32768))


def draw(r, model, place, remat, T):
    """The same with a plan that may be, its batch, an efficiency."""
    on = machine(*place)
    split = ways(r, model, on.chips, on.chip.dcn_bytes_per_s)
    schedule = r.choice(SCHEDULES) if split["pp"] > 1 else "1f1b"
    plan = Plan(
        **split, schedule=schedule, chunks=r.randint(1, 4) if schedule == "interleaved" else 1,
        zero=r.choice((0, 1, 2, 3, 3)), remat=remat, overlap=r.choice(("full", "none", 0.5)),
        context=r.choice(CONTEXTS), zigzag=r.random() < 0.7, prefetch=r.random() < 0.7,
        collective_matmul=r.random() < 0.5, sequence_parallel=r.random() < 0.7,
        microbatch=r.choice((1, 1, 2, 4)), compute=r.choice(types(on.chip) or [BF16]),
        gradients=r.choice((BF16, FP32)), master=r.choice((None, FP32)), frozen=r.random() < 0.1,
    )  # fmt: skip
    batch = plan.ranks * plan.microbatch * r.choice((1, 2, 4, 8, 16, 32))
    table = calibrated.training(on.chip, plan.compute.name) if types(on.chip) else ROUGH
    return model, place, plan, {"batch": batch, "T": T, "efficiency": r.choice((PEAK, ROUGH, table))}


def evaluated(model, place, plan, asked, *faster):
    return evaluate(TrainingCase(model, machine(*place, *faster), **asked), plan, memory_first=False)


def slower(count, seed, rates=tuple(RATES)):
    """Of so many plans that can be, those that take longer where a rate is higher."""
    r, found, done, asked = Random(seed), [], 0, ()
    while done < count:
        asked = asked if done % 10 and r.random() < 0.95 else subject(r)
        drawn = draw(r, *asked)
        before = evaluated(*drawn)
        if before.why:
            continue
        done += 1
        rate, by = r.choice(rates), r.choice((1.1, 2.0, 8.0))
        after = evaluated(*drawn, rate, by)
        if after.step_s > before.step_s * SLACK:
            found.append((rate, by, after.step_s / before.step_s, drawn))
    return found


def grown(count, seed):
    """Of so many plans, those of which a chip holds more state when more ways share it."""
    r, found = Random(seed), []
    while count:
        model, _, plan, asked = draw(r, *subject(r))
        axis = r.choice(("fsdp", "tp", "pp", "cp", "ep", "dp", "dcn", "zero"))
        more = min(plan.zero + 1, 3) if axis == "zero" else r.choice((2, 3)) * getattr(plan, axis)
        after = replace(plan, **{axis: more})
        if after.pp * after.chunks > model.L:
            continue
        try:
            held = [memory(model, one, batch=8 * one.ranks * one.microbatch, T=asked["T"]).state
                    for one in (plan, after)]  # fmt: skip
        except PlanError:
            continue  # experts that do not divide over the stage
        count -= 1
        if held[1] > held[0] * SLACK:
            found.append((axis, more, held, model.name, plan))
    return found


def test_no_step_grows_with_a_rate():
    assert slower(PLANS, seed=15) == []


def test_no_state_grows_with_sharding():
    assert grown(2000, seed=15) == []


def _all_or_nothing(busy_s, overlapped, hidden, exposed, repeats):
    """Overlap that fails as a whole where compute is shorter than one axis."""
    return sum(overlapped.values()) if overlapped and max(overlapped.values()) > busy_s else 0.0


def test_the_search_finds_breaks(monkeypatch):
    monkeypatch.setattr(times, "_exposed_s", _all_or_nothing)
    assert slower(400, seed=15, rates=("FLOP/s",))
    dealt = shape.stages  # stages that have more layers, the more there are
    monkeypatch.setattr(shape, "stages", lambda *asked: dealt(*asked)._replace(layers=asked[3]))
    assert grown(200, seed=15)
