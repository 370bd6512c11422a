"""Whatever the plan: laws that memory, traffic and time must keep."""

from dataclasses import replace

import pytest

from scalingbook_lib import models, training
from scalingbook_lib.machines import chips, clusters
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.training import Plan, TrainingCase, TrainingEfficiency
from tests.core import repeatable

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

SETTINGS = repeatable.examples(60)
_NAMES = ("Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "GPT-2 124M", "Gemma-2 9B")
DENSE = [models.find(name) for name in _NAMES]
ROUTED = [models.find(name) for name in ("Mixtral 8x7B", "DeepSeek-V3", "Qwen3 30B-A3B")]
MACHINES = [clusters.Cluster.of(chips.H100, 256), clusters.Cluster.of(chips.GB200, 576),
            Slice.of(chips.V5P, "4x8x8"), Slice.of(chips.V6E, "16x16")]  # fmt: skip
POWERS = [1, 2, 4, 8, 16]
T, BATCH = 4096, 1152  # divides 256 and 576 chips


@st.composite
def plans(draw, chips_there, ep=(1,)):
    """Any division of the chips, and any of the choices beside it."""
    plan = {}
    for name in ("tp", "cp", "pp"):
        ways = [n for n in POWERS if chips_there % n == 0]
        plan[name] = draw(st.sampled_from(ways[:4]))
        chips_there //= plan[name]
    plan["dp"] = draw(st.sampled_from([n for n in (1, 2) if chips_there % n == 0]))
    plan["fsdp"] = chips_there // plan["dp"]
    return Plan(
        **plan, zero=draw(st.sampled_from((0, 1, 2, 3))), ep=draw(st.sampled_from(ep)),
        remat=draw(st.sampled_from(("none", "alternate", "selective", "full"))),
        sequence_parallel=draw(st.booleans()), collective_matmul=draw(st.booleans()),
        overlap=draw(st.sampled_from(("full", "none", 0.5))),
        schedule=draw(st.sampled_from(("gpipe", "1f1b"))),
        context=draw(st.sampled_from(("ring", "gather", "ulysses"))),
    )  # fmt: skip


@st.composite
def steps(draw, which=DENSE, machines=MACHINES, ep=(1,)):
    """A model, a machine and a plan for it that can be, its memory aside."""
    model, machine = draw(st.sampled_from(which)), draw(st.sampled_from(machines))
    plan = draw(plans(machine.chips, ep))
    batch = plan.ranks * 8
    case = TrainingCase(model, machine, batch=batch, T=T)
    found = training.evaluate(case, plan, memory_first=False)
    hypothesis.assume(not found.why)
    return model, machine, plan, batch


def timed(model, machine, plan, batch, **more):
    return training.step(model, machine, plan, batch=batch, T=T, **more)


@SETTINGS
@hypothesis.given(steps(DENSE + ROUTED, ep=(1, 2, 8)))
def test_the_terms_sum_to_the_step_and_a_search_sees_the_same(given):
    model, machine, plan, batch = given
    step = timed(*given)
    assert sum(step.terms.values()) == pytest.approx(step.total_s)
    assert min(step.terms.values()) > -1e-12
    assert 0 < step.mfu <= step.hfu <= 1 + 1e-9
    found = training.evaluate(TrainingCase(model, machine, batch=batch, T=T), plan, memory_first=False)
    assert found.step == step
    assert found.memory_bytes == pytest.approx(step.memory.total)
    assert all(row.seconds >= 0 and row.n > 1 for row in step.traffic)
    assert str(step)
    assert all(map(str, step.traffic))


@SETTINGS
@hypothesis.given(steps(), steps())
def test_useful_flops_do_not_depend_on_the_plan(one, other):
    model, _, _, batch = one
    step, again = timed(*one), timed(model, *other[1:3], other[3]) if other[0] == model else timed(*one)
    assert step.useful_flops / step.tokens == again.useful_flops / again.tokens
    assert step.useful_flops == 3 * batch * sum(n * T for n in step.work.forward)


@SETTINGS
@hypothesis.given(steps())
def test_more_overlap_is_never_slower(given):
    model, machine, plan, batch = given
    times = [
        timed(model, machine, replace(plan, overlap=o), batch).total_s for o in ("full", 0.7, 0.3, "none")
    ]
    assert (
        times == sorted(times) or max(b - a for a, b in zip(times[1:], times, strict=False)) < 1e-9 * times[0]
    )


@SETTINGS
@hypothesis.given(steps())
def test_full_rematerialization_costs_up_to_a_third_more_than_selective(given):
    model, machine, plan, batch = given
    full, some = (timed(model, machine, replace(plan, remat=r), batch) for r in ("full", "selective"))
    assert 1.0 <= full.hardware_flops / some.hardware_flops <= 1.34
    assert 1.0 - 1e-9 <= full.total_s / some.total_s <= 1.34
    assert full.memory["activations"] <= some.memory["activations"]


@SETTINGS
@hypothesis.given(steps(), st.sampled_from(("torus", "domain", "network", "matmul", "attention", "memory")))
def test_a_lower_efficiency_is_never_faster_and_knows_its_peak(given, name):
    slow, peak = timed(*given, efficiency=TrainingEfficiency(**{name: 0.5})), timed(*given)
    assert slow.total_s >= peak.total_s * (1 - 1e-9)
    assert slow.peak_s == peak.total_s


@SETTINGS
@hypothesis.given(steps(DENSE + ROUTED, ep=(1, 2, 4)))
def test_zero_stages_hold_less_and_less(given):
    model, _, plan, batch = given
    held = [training.memory(model, replace(plan, zero=z), batch=batch, T=T).state for z in (0, 1, 2, 3)]
    assert held == sorted(held, reverse=True)


@SETTINGS
@hypothesis.given(steps(), st.sampled_from(("fsdp", "tp", "pp")))
def test_memory_falls_with_sharding(given, axis):
    """The same microbatch on twice the chips; what every chip has a copy of (norms) stays."""
    model, _, plan, batch = given
    plan = replace(plan, schedule="1f1b", zero=3)
    twice = replace(plan, **{axis: 2 * getattr(plan, axis)})
    more = batch * 2 if axis == "fsdp" else batch
    before, after = (training.memory(model, p, batch=b, T=T) for p, b in ((plan, batch), (twice, more)))
    assert after.state <= before.state * (1 + 1e-9)
    assert after["weights"] < before["weights"] or axis == "pp"


@SETTINGS
@hypothesis.given(st.sampled_from(DENSE), st.sampled_from(MACHINES), st.sampled_from(("none", "full")))
def test_fsdp_moves_one_and_a_half_times_the_bytes_of_data_parallelism(model, machine, remat):
    moved = []
    for zero in (0, 1, 2, 3):
        plan = Plan(fsdp=machine.chips, zero=zero, remat=remat)
        case = TrainingCase(model, machine, batch=machine.chips, T=T)
        hypothesis.assume(not training.evaluate(case, plan, memory_first=False).why)
        rows = training.traffic(model, plan, machine, batch=machine.chips, T=T)
        moved.append(sum(row.received for row in rows))
    assert moved[1:3] == pytest.approx([moved[0]] * 2)
    assert moved[3] == pytest.approx(1.5 * moved[0])


@SETTINGS
@hypothesis.given(steps(machines=MACHINES[:1]))
def test_tensor_parallelism_across_nodes_is_never_faster_than_within(given):
    model, machine, plan, batch = given
    hypothesis.assume(plan.tp > 2)
    apart = replace(machine, domain=plan.tp // 2)
    assert timed(model, apart, plan, batch).total_s >= timed(*given).total_s * (1 - 1e-9)


@SETTINGS
@hypothesis.given(steps(), st.sampled_from((2, 4)))
def test_pods_add_a_sum_and_nothing_else(given, pods):
    model, machine, plan, batch = given
    one = timed(*given)
    many = timed(model, machine, replace(plan, dcn=pods), batch * pods)
    assert many.total_s >= one.total_s * (1 - 1e-9)
    assert many.total_s <= one.total_s + sum(row.seconds for row in many.traffic if row.axes == "S") + 1e-12
    assert many.memory == one.memory
