"""Pipeline schedules played out: against the published figures, their formulas and each other's limits."""

import sys
from fractions import Fraction

import pytest

from scalingbook_lib.steps import pipelines
from scalingbook_lib.steps.pipelines import PipelineError, bubble, simulate
from scalingbook_lib.training import plan


def letters(run, stage):
    return " ".join(f"{span.kind}{span.microbatch}" for span in run.stage(stage))


def test_gpipe_in_full():
    run = simulate("gpipe", 2, 2, forward_s=1, backward_s=2)
    assert [tuple(span) for span in run.spans] == [
        (0, "F", 0, 0, 0, 1), (0, "F", 1, 0, 1, 2), (0, "B", 1, 0, 5, 7), (0, "B", 0, 0, 7, 9),
        (1, "F", 0, 0, 1, 2), (1, "F", 1, 0, 2, 3), (1, "B", 1, 0, 3, 5), (1, "B", 0, 0, 5, 7),
    ]  # fmt: skip
    assert run.total_s == 9
    assert run.bubble == Fraction(1, 3)
    assert run.overhead == Fraction(1, 2)
    assert run.live == (2, 2)


def test_1f1b_as_published():
    run = simulate("1f1b", 4, 8)
    assert letters(run, 0) == "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7"
    assert letters(run, 3) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7"
    assert run.live == (4, 3, 2, 1)


def test_interleaved_as_published():
    run = simulate("interleaved", 4, 8, chunks=2)
    order = [f"{span.kind}{span.microbatch}{'ab'[span.chunk]}" for span in run.stage(0)]
    assert order[:8] == ["F0a", "F1a", "F2a", "F3a", "F0b", "F1b", "F2b", "F3b"]
    assert order[8:15] == ["F4a", "F5a", "F6a", "B0b", "F7a", "B1b", "F4b"]
    assert run.live == (Fraction(11, 2), Fraction(9, 2), Fraction(7, 2), Fraction(5, 2))


def test_zero_bubble_as_published():
    """ZB-H1 with four stages and eight microbatches: the last stage puts off three weights."""
    run = simulate("zero-bubble", 4, 8, forward_s=1, backward_s=2)
    assert letters(run, 0).startswith("F0 F1 F2 F3 B0 W0 F4 B1 W1 F5")
    assert letters(run, 3).startswith("F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1")
    assert letters(run, 3).endswith("B7 W4 W5 W6 W7")
    assert run.live == (4, 4, 4, 4)
    assert run.idle_s * 3 == simulate("1f1b", 4, 8).idle_s


def test_dualpipe_as_published():
    """Eight stages, twenty microbatches, as in DeepSeek-V3's figure."""
    run = simulate("dualpipe", 8, 20, forward_s=2, backward_s=4, both_s=5)
    ways = "".join(f"{span.kind}{span.chunk}" for span in run.stage(0))
    assert ways.startswith("F0" * 7 + "F1" + "B1W1F1" * 3 + "F0B1F1B0")
    assert ways.endswith("B1B0" + "W0B0" * 3 + "W0")
    assert run.live == (9,) * 8
    assert run.idle_s == (8 // 2 - 1) * (5 + 4 - 3 * 2)


def test_zb_h2_as_published():
    """The first of four stages has seven warm-up forwards, and no stage has a gap."""
    run = simulate("zb-h2", 4, 8)
    assert letters(run, 0).startswith("F0 F1 F2 F3 F4 F5 F6 B0 W0 F7 B1 W1 B2")
    assert letters(run, 3).startswith("F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 W0 F7 B7 W1")
    assert letters(run, 3).endswith("B7 W1 W2 W3 W4 W5 W6 W7")
    assert run.live == (7, 7, 7, 7)
    assert (run.idle_s, run.idle_within_s) == (3, 0)


def test_zb_v_as_published():
    """The first stage holds the first and the last chunk, and the last stage the two in the middle."""
    run = simulate("zb-v", 4, 8)
    ways = [f"{span.kind}{span.microbatch}{'ab'[span.chunk]}" for span in run.stage(0)]
    assert ways[:10] == ["F0a", "F1a", "F2a", "F3a", "F4a", "F5a", "F6a", "F0b", "B0b", "W0b"]
    last = [f"{span.kind}{span.microbatch}{'ab'[span.chunk]}" for span in run.stage(3)]
    assert last[:9] == ["F0a", "F0b", "F1a", "F1b", "F2a", "F2b", "F3a", "F3b", "B0b"]
    assert run.live == (4, 4, 4, 4)
    assert run.chunks == 2
    assert (run.idle_s, run.idle_within_s) == (Fraction(3, 2), 0)


def test_dualpipe_v_as_published():
    """Four stages of two chunks and ten microbatches, as in the figure of the DualPipe repository."""
    times = {"forward_s": 4, "backward_s": 8, "both_s": 10}  # a chunk takes half as long
    run = simulate("dualpipe-v", 4, 10, **times)
    ways = "".join(f"{span.kind}{span.chunk}" for span in run.stage(0))
    assert ways.startswith("F0" * 7 + "F1" + "B1W1F1" * 3 + "F0B1F1B0")
    assert ways.endswith("B1B0" + "W0B0" * 3 + "W0")
    assert run.live == (Fraction(9, 2),) * 4
    assert run.idle_s == (8 // 2 - 1) * (5 + 4 - 3 * 2)  # the formula has PP = 8 chunks


def test_only_dualpipe_holds_the_weights_of_two_stages():
    copies = {name: simulate(name, 4, 8).weight_copies for name in pipelines.SCHEDULES}
    assert [name for name, held in copies.items() if held != 1] == ["dualpipe"]
    assert copies["dualpipe"] == 2


def test_without_a_barrier_the_idle_time_of_1f1b_remains_and_that_of_zb_h2_does_not():
    runs = {name: simulate(name, 4, 8) for name in pipelines.SCHEDULES}
    within = {name: run.idle_within_s for name, run in runs.items()}
    for name in ("gpipe", "1f1b", "zero-bubble", "dualpipe", "dualpipe-v"):
        assert within[name] == runs[name].idle_s
    assert within["zb-h2"] == within["zb-v"] == 0


def test_the_share_and_the_overhead_have_names():
    """(P - 1)/(M + P - 1) of the step, (P - 1)/M over the work; the latter falls by v where interleaved."""
    for schedule in ("gpipe", "1f1b"):
        found = bubble(schedule, 8, 32)
        assert (found.share, found.overhead) == (Fraction(7, 39), Fraction(7, 32))
    four = bubble("interleaved", 8, 32, chunks=4)
    assert (four.share, four.overhead) == (Fraction(7, 135), Fraction(7, 128))


def test_the_table_of_deepseek_v3():
    """The order of the table: DualPipe < ZB < 1F1B, with F = I = W and a free overlap."""
    times = {"forward_s": 1, "backward_s": 2, "weight_s": 1}
    idle = [bubble(name, 16, 64, **times).idle_s for name in ("dualpipe", "zero-bubble", "1f1b")]
    assert idle == [7 * (3 + 2 - 3), 15 * 1, 15 * 3]


def test_floats_stay_floats_and_exact_stays_exact():
    run = simulate("1f1b", 4, 8, forward_s=0.1, backward_s=0.2, hop_s=0.01)
    assert isinstance(run.total_s, float)
    assert all(isinstance(span.end, float) for span in run.spans)
    exact = simulate(
        "1f1b", 4, 8, forward_s=Fraction(1, 10), backward_s=Fraction(1, 5), hop_s=Fraction(1, 100)
    )
    assert run.total_s == pytest.approx(float(exact.total_s))
    assert isinstance(exact.total_s, Fraction)


def test_hops():
    """Every hop of 1F1B is waited for, once its stages are full; those of chunks only at the ends."""
    assert simulate("1f1b", 4, 8, hop_s=1).total_s == 33 + 2 * (3 + 5)
    assert simulate("interleaved", 4, 8, chunks=2, forward_s=2, backward_s=4, hop_s=1).total_s == 57 + 14
    assert simulate("1f1b", 1, 8, hop_s=9).total_s == 24


def test_dualpipe_overlaps_all_but_p_and_one_microbatches_and_waits_for_hops_of_rounds_and_ends():
    asked = {"forward_s": 2, "backward_s": 4, "weight_s": 2, "both_s": 5}
    free, paid = (bubble("dualpipe", 4, 8, hop_s=hop_s, **asked) for hop_s in (0, 1))
    assert (free.work_s, free.idle_s) == (3 * 5 + 5 * 6, 5 + 4 - 3 * 2)
    assert paid.idle_s - free.idle_s == 8 * 3 / 4 + 3


@pytest.mark.parametrize(
    ("chunks", "hop_s", "exact"), [(1, 0, True), (1, 1, False), (2, 1, True), (2, 2, False)]
)
def test_a_bubble_of_chunks_is_exact_while_a_hop_takes_less_than_a_piece(chunks, hop_s, exact):
    assert bubble("interleaved", 4, 8, chunks, forward_s=2, backward_s=4, hop_s=hop_s).exact is exact


@pytest.mark.parametrize("schedule", pipelines.SCHEDULES)
def test_a_task_costs_the_same_in_a_large_schedule(schedule):
    small, large = lines_a_task(schedule, 8, 32), lines_a_task(schedule, 32, 256)
    assert large <= small
    assert small < 60  # 37 to 43, which take 6 to 10 ms for 16 stages and 64 microbatches


def lines_a_task(schedule, P, M):
    """How many lines of Python run for each task: a count says the same on a busy machine."""
    passed = 0

    def tracer(frame, event, argument):
        nonlocal passed
        passed += event == "line"
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        run = simulate(schedule, P, M)
    finally:
        sys.settrace(before)
    return passed / len(run.spans)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("2f2b", 4, 8), "'2f2b' is not a pipeline schedule; write one of gpipe, 1f1b"),
        (("gpipe", 0, 8), "stages=0; write a whole number"),
        (("1f1b", 4, 8, 2), "only 'interleaved' divides a stage into chunks; write chunks=1"),
        (("interleaved", 4, 9, 2), "set microbatches=12"),
        (("zero-bubble", 4, 3), "write microbatches=4 or more"),
        (
            ("zb-h2", 4, 6),
            "zb-h2 with 4 stages needs at least 7 .* 6 is less than that; write microbatches=7 or more",
        ),
        (
            ("zb-v", 4, 6),
            "zb-v with 4 stages needs at least 7 .* 6 is less than that; write microbatches=7 or more",
        ),
        (("zb-v", 4, 8, 3), "a stage of 'zb-v' always has two chunks; write chunks=1"),
        (("dualpipe-v", 4, 7), "dualpipe-v needs .* write microbatches=8 or more"),
        (("dualpipe-v", 4, 8, 2), "a stage of 'dualpipe-v' always has two chunks"),
        (("dualpipe", 3, 12), "dualpipe needs an even number of stages"),
        (
            ("dualpipe", 4, 6),
            "not stages=4 and microbatches=6; write stages=4 and microbatches=8",
        ),
    ],
)
def test_what_cannot_be(arguments, words):
    schedule, P, M, *chunks = arguments
    for ask in (simulate, bubble):
        with pytest.raises(PipelineError, match=words):
            ask(schedule, P, M, **({"chunks": chunks[0]} if chunks else {}))


def test_a_bubble_without_a_closed_form_is_refused():
    for schedule in ("zb-h2", "zb-v"):
        with pytest.raises(PipelineError, match=rf"{schedule} has no closed form .*hop_s=1.*; use simulate"):
            bubble(schedule, 4, 8, hop_s=1)
        assert bubble(schedule, 1, 8, hop_s=1).idle_s == 0
    with pytest.raises(PipelineError, match=r"zb-v has a closed form only if .*; use simulate"):
        bubble("zb-v", 4, 8, forward_s=2, backward_s=2)


def test_a_plan_says_which_schedules_are_only_simulated():
    for schedule in set(pipelines.SCHEDULES) - set(plan.SCHEDULES):
        with pytest.raises(
            plan.PlanError, match=rf"schedule='{schedule}': steps.pipelines simulates .* 'gpipe'"
        ):
            plan.Plan(pp=4, schedule=schedule)
    assert set(plan.SCHEDULES) < set(pipelines.SCHEDULES)


def test_times_that_cannot_be():
    with pytest.raises(PipelineError, match="forward_s=-1; write a time"):
        simulate("gpipe", 2, 2, forward_s=-1)
    with pytest.raises(PipelineError, match="weight_s=3 is part of backward_s=2"):
        simulate("gpipe", 2, 2, weight_s=3)


def test_they_tell_themselves():
    run = simulate("1f1b", 4, 8)
    assert str(run) == (
        "1f1b, 4 stages, 8 microbatches: 33 s, idle 27% of the time (38% over the work); "
        "a stage holds up to 4 microbatches"
    )
    assert str(bubble("1f1b", 4, 8)) == "1f1b: idle 9 s of 33 s, 27% of the time (38% over the work)"
