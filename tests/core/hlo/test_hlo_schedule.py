"""Reads from a program's order which work overlaps which transfer."""

import pytest

from scalingbook_lib.hlo import HloError, schedule
from scalingbook_lib.notation import Mesh

X2Y4 = Mesh(X=2, Y=4)


def test_every_transfer_of_a_collective_matmul_overlaps_with_a_matmul(stored):
    steps = schedule.schedule(stored("tpu_collective_matmul"), X2Y4)
    assert [s.kind for s in steps] == ["start", "compute", "done"] * 3 + ["compute"]
    assert len(steps.hidden) == 3
    assert steps.exposed == ()
    assert all(step.cycles > 250_000 for step in steps.hidden)
    assert str(steps[2]) == "done    collective-permute Y +1, 16.8 MB, 276,236 cycles of overlapped work"


def test_a_schedule_shows_loops_with_their_trip_counts(stored):
    steps = schedule.schedule(stored("tpu_nested_loops"), X2Y4)
    assert [(s.label, s.depth) for s in steps if s.kind in ("loop", "wait")] == [
        ("5 times:", 0),
        ("3 times:", 1),
        ("all-reduce Y", 2),
        ("all-reduce X", 1),
    ]


def test_an_asynchronous_fusion_is_a_start_and_a_done(stored):
    steps = schedule.schedule(stored("tpu_async_fusion"), Mesh(X=4, Y=8))
    (hidden,) = steps.hidden
    assert hidden.label == "all-gather X"
    assert [s.label for s in steps.exposed] == ["all-gather X", "all-reduce Y"]


def test_copies_into_vmem_are_shown_on_request(stored):
    text = stored("tpu_collective_matmul")
    copies = [s.label for s in schedule.schedule(text, X2Y4, copies=True) if "copy" in s.label]
    assert copies == ["copy HBM to VMEM"] * 2  # its start and its end


def test_a_done_without_a_start_is_refused():
    text = (
        "ENTRY %m (p: f32[8]) -> f32[8] {\n  %p = f32[8] parameter(0)\n  %d = f32[8] all-gather-done(%p)\n}"
    )
    with pytest.raises(HloError, match=r"never starts|has no transfer to wait for"):
        schedule.schedule(text, X2Y4)


def test_an_empty_program_has_nothing_to_schedule():
    text = "ENTRY %m (p: f32[8]) -> f32[8] {\n  %p = f32[8] parameter(0)\n}"
    assert str(schedule.schedule(text, X2Y4)) == "nothing to compute and nothing to move"
