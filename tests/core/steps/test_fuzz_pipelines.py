"""Any schedule of any size: its rules hold, and its idle time is what the closed form says."""

from fractions import Fraction
from itertools import pairwise

import pytest

from scalingbook_lib.steps.pipelines import SCHEDULES, V_SHAPED, PipelineError, bubble, simulate
from tests.core import repeatable

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies
SETTINGS = repeatable.examples(80)

TIME = st.integers(1, 12) | st.fractions(Fraction(1, 8), 12, max_denominator=8)
NONE_OR_MORE = st.just(0) | TIME


@st.composite
def sizes(draw, schedule):
    """Stages, microbatches and chunks that the schedule allows."""
    P = draw(st.integers(1, 7))
    if schedule == "dualpipe":
        P = 2 * draw(st.integers(1, 4))
        return P, 2 * draw(st.integers(P, 2 * P + 2)), {}
    if schedule == "interleaved":
        return P, P * draw(st.integers(1, 4)), {"chunks": draw(st.integers(1, 4))}
    least = {"zero-bubble": P, "zb-h2": 2 * P - 1, "zb-v": 2 * P - 1, "dualpipe-v": 2 * P}
    return P, draw(st.integers(least.get(schedule, 1), 20)), {}


@st.composite
def times(draw):
    """Any times of the tasks; the weights' is part of the backward."""
    inputs, weights = draw(TIME), draw(NONE_OR_MORE)
    return {"forward_s": draw(TIME), "backward_s": inputs + weights, "weight_s": weights}


@st.composite
def runs(draw):
    """Any step of any schedule, with what it was asked for."""
    schedule = draw(st.sampled_from(SCHEDULES))
    P, M, chunks = draw(sizes(schedule))
    asked = draw(times()) | chunks | {"hop_s": draw(NONE_OR_MORE)}
    if schedule in ("dualpipe", "dualpipe-v"):
        alone = asked["forward_s"] + asked["backward_s"]
        asked["both_s"] = alone * draw(st.fractions(Fraction(1, 2), 1, max_denominator=8))
    return simulate(schedule, P, M, **asked), asked


@SETTINGS
@hypothesis.given(runs())
def test_a_stage_does_one_task_at_a_time_and_every_task_once(made):
    run, _ = made
    done = set()
    for s in range(run.stages):
        spans = run.stage(s)
        assert all(a.end <= b.start for a, b in pairwise(spans))
        assert sum(span.end - span.start for span in spans) == run.work_s[s]
        done |= {(s, span.kind, span.microbatch, span.chunk) for span in spans}
    forwards = {(s, m, c) for s, kind, m, c in done if kind == "F"}
    assert forwards == {(s, m, c) for s, kind, m, c in done if kind == "B"}
    ways = 1 if run.schedule == "dualpipe" else run.chunks
    assert run.chunks == 2 or run.schedule not in V_SHAPED
    assert len(forwards) == run.stages * run.microbatches * ways
    assert len(done) == len(run.spans)


@SETTINGS
@hypothesis.given(runs())
def test_every_task_waits_for_what_it_needs(made):
    run, asked = made
    at = {span[:4]: span for span in run.spans}
    for (s, kind, m, c), span in at.items():
        if kind == "W":
            assert at[s, "B", m, c].end <= span.start
        elif kind == "B":
            assert at[s, "F", m, c].end <= span.start
        ahead = place(run, s, c, 1 if kind == "B" else -1)
        if kind != "W" and ahead:
            before = at[ahead[0], kind, m, ahead[1]]
            hop_s = 0 if ahead[0] == s else asked["hop_s"]  # a stage sends nothing to itself
            assert before.end + hop_s <= span.end
            if "both_s" not in asked:
                assert before.end + hop_s <= span.start


def place(run, s, c, way):
    """The stage and chunk one further on the way of a microbatch; None at its ends."""
    if run.schedule == "dualpipe":
        s += way if c == 0 else -way
        return (s, c) if 0 <= s < run.stages else None
    if run.schedule in V_SHAPED:
        at = (2 * run.stages - 1 - s if c else s) + way  # the position of the chunk among all layers
        stage = min(at, 2 * run.stages - 1 - at)
        return (stage, int(at >= run.stages)) if 0 <= at < 2 * run.stages else None
    at = c * run.stages + s + way
    return (at % run.stages, at // run.stages) if 0 <= at < run.chunks * run.stages else None


@SETTINGS
@hypothesis.given(st.data(), st.sampled_from(["gpipe", "1f1b"]))
def test_gpipe_and_1f1b_equal_their_formula_with_any_times_and_hops(data, schedule):
    P, M, _ = data.draw(sizes(schedule))
    agree(schedule, P, M, exact=True, hop_s=data.draw(NONE_OR_MORE), **data.draw(times()))


@SETTINGS
@hypothesis.given(st.data(), st.sampled_from(["interleaved", "zero-bubble"]))
def test_interleaved_and_zero_bubble_equal_their_formula_with_any_times(data, schedule):
    P, M, chunks = data.draw(sizes(schedule))
    agree(schedule, P, M, exact=True, **data.draw(times()), **chunks)


@SETTINGS
@hypothesis.given(
    st.data(), TIME, st.fractions(0, 1, max_denominator=6), st.fractions(0, 1, max_denominator=6)
)
def test_dualpipe_equals_its_formula(data, f, put_off, saved):
    P, M, _ = data.draw(sizes("dualpipe"))
    w = f * put_off
    asked = {"forward_s": f, "backward_s": f + w, "weight_s": w, "both_s": 2 * f + w * (1 - saved)}
    agree("dualpipe", P, M, exact=True, **asked)


@SETTINGS
@hypothesis.given(
    st.data(), TIME, st.fractions(0, 1, max_denominator=6), st.fractions(0, 1, max_denominator=6)
)
def test_the_v_shaped_schedules_equal_their_formula(data, f, put_off, saved):
    w = f * put_off
    asked = {"forward_s": f, "backward_s": f + w, "weight_s": w}
    P, M, _ = data.draw(sizes("zb-v"))
    agree("zb-v", P, M, exact=True, **asked)
    P, M, _ = data.draw(sizes("dualpipe-v"))
    agree("dualpipe-v", P, M, exact=True, both_s=2 * f + w * (1 - saved), **asked)


@SETTINGS
@hypothesis.given(st.data(), times())
def test_zb_h2_equals_its_formula_with_any_times(data, asked):
    P, M, _ = data.draw(sizes("zb-h2"))
    agree("zb-h2", P, M, exact=True, **asked)
    f, w = asked["forward_s"], asked["weight_s"]
    i = asked["backward_s"] - w
    # (p - 1)(T_F + T_B - 2 T_W) as published, where weight gradients fit into the gaps
    assert simulate("zb-h2", P, M, **asked).idle_within_s == (P - 1) * max(f + i - 2 * w, i - f, 0)


@SETTINGS
@hypothesis.given(st.data(), TIME)
def test_zb_h2_and_zb_v_are_never_idle_within_a_step_if_all_parts_take_equally_long(data, f):
    for schedule, ramp in (("zb-h2", f), ("zb-v", f / 2 if isinstance(f, Fraction) else Fraction(f, 2))):
        P, M, _ = data.draw(sizes(schedule))
        run = simulate(schedule, P, M, forward_s=f, backward_s=2 * f)
        assert run.idle_within_s == 0
        assert run.idle_s == (P - 1) * ramp  # the stages start and end this much apart


@SETTINGS
@hypothesis.given(st.data(), st.sampled_from(SCHEDULES), TIME, st.fractions(0, 1, max_denominator=6))
def test_without_a_barrier_only_zb_h2_and_zb_v_are_idle_for_less_time(data, schedule, f, put_off):
    """As the page tabulates it, for forwards as long as the backward of the inputs."""
    P, M, chunks = data.draw(sizes(schedule))
    w = f * put_off
    run = simulate(schedule, P, M, forward_s=f, backward_s=f + w, weight_s=w, **chunks)
    gap = (P - 1) * 2 * (f - w)
    assert run.idle_within_s == {"zb-h2": gap, "zb-v": gap / 2}.get(schedule, run.idle_s)


@SETTINGS
@hypothesis.given(st.data(), TIME)
def test_dualpipe_v_is_one_half_of_dualpipe(data, f):
    """The mirrored halves of DualPipe execute the same tasks; DualPipe-V executes those of one half."""
    P, M, _ = data.draw(sizes("dualpipe-v"))
    half = simulate("dualpipe-v", P, M, forward_s=2 * f, backward_s=4 * f)
    whole = simulate("dualpipe", 2 * P, 2 * M, forward_s=f, backward_s=2 * f)
    assert half.total_s == whole.total_s
    for s in range(P):
        assert half.stage(s) == whole.stage(s)
        assert 2 * half.live[s] == whole.live[s]


@SETTINGS
@hypothesis.given(st.data(), st.sampled_from(SCHEDULES), times(), NONE_OR_MORE)
def test_a_formula_that_calls_itself_exact_is(data, schedule, asked, hop_s):
    P, M, chunks = data.draw(sizes(schedule))
    agree(schedule, P, M, hop_s=hop_s, **asked, **chunks)


@SETTINGS
@hypothesis.given(st.data(), TIME, st.fractions(0, 1, max_denominator=12))
def test_short_hops_of_chunks_are_waited_for_at_the_ends_alone(data, f, part):
    P, M, chunks = data.draw(sizes("interleaved"))
    agree("interleaved", P, M, forward_s=f, backward_s=2 * f, hop_s=part * f / chunks["chunks"], **chunks)
    P, M, _ = data.draw(sizes("zero-bubble"))
    agree("zero-bubble", P, M, exact=True, forward_s=f, backward_s=2 * f, hop_s=part * f / 2)


def refused(schedule, P, asked):
    """Whether the schedule has no closed form for these times."""
    i = asked["backward_s"] - asked.get("weight_s", Fraction(asked["backward_s"]) / 2)
    w = asked["backward_s"] - i
    even = schedule == "zb-h2" or asked["forward_s"] == i >= w
    return P > 1 and schedule in ("zb-h2", "zb-v") and bool(asked.get("hop_s") or not even)


def agree(schedule, P, M, *, exact=False, **asked):
    if refused(schedule, P, asked):
        assert not exact
        with pytest.raises(PipelineError, match="use simulate"):
            bubble(schedule, P, M, **asked)
        return
    formula, run = bubble(schedule, P, M, **asked), simulate(schedule, P, M, **asked)
    assert formula.exact or not exact
    if formula.exact:
        assert (run.total_s, run.idle_s) == (formula.total_s, formula.idle_s)
        assert (run.bubble, run.overhead) == (formula.share, formula.overhead)


@SETTINGS
@hypothesis.given(st.data(), times())
def test_what_a_stage_holds(data, asked):
    P, M = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 20))
    assert simulate("gpipe", P, M, **asked).live == (M,) * P
    assert simulate("1f1b", P, M, **asked).live == tuple(min(P - s, M) for s in range(P))
    if M >= P:
        assert simulate("zero-bubble", P, M, **asked).live == (P,) * P
    if P % 2 == 0 and M >= P:
        assert simulate("dualpipe", P, 2 * M, **asked).live == (P + 1,) * P
    if M >= 2 * P - 1:
        assert simulate("zb-h2", P, M, **asked).live == (2 * P - 1,) * P
        assert simulate("zb-v", P, M, **asked).live == (P,) * P
    if M >= 2 * P:
        assert simulate("dualpipe-v", P, M, **asked).live == (P + Fraction(1, 2),) * P
    v = data.draw(st.integers(1, 4))
    held = simulate("interleaved", P, P * M, chunks=v, **asked).live
    assert held == tuple(Fraction(min(2 * (P - 1 - s) + (v - 1) * P + 1, v * P * M), v) for s in range(P))
