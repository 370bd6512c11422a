"""Verdicts on programs are plain values that a check judges without JAX."""

import json

import pytest

from scalingbook_book.chapters import checks
from scalingbook_book.chapters.checks import Check, Mistake
from scalingbook_book.reader.checks import programs
from scalingbook_book.reader.checks.programs import SOLVED, CollectiveCount, ProgramVerdict, right

RING = {"collective-permute Y": (3, 384)}
CHECK = Check(
    key="here.1",
    title="A ring",
    kind="program",
    answer=lambda: right(RING),
    mistakes=(
        Mistake(lambda: right({"all-gather Y": (1, 512)}), "That gathers first: nothing can overlap."),
    ),
    right="Right, and every hop can hide behind a product.",
)


def verdict(moves, **rest):
    return ProgramVerdict(moves=programs.moves(moves), key="here.1", asked=(), **rest)


def test_a_program_that_moves_what_is_asked_for_is_right():
    assert CHECK(verdict(RING)).message == CHECK.right
    assert CHECK(verdict({"collective-permute Y": (3, 380)})).ok


@pytest.mark.parametrize(
    ("moves", "says"),
    [
        ({"all-gather Y": (1, 512)}, "That gathers first: nothing can overlap."),
        ({"all-gather Y": (2, 512)}, "Right result, but all-gather over Y (512 B) is not needed; "
                                     "collective-permute over Y should run but does not."),
        ({"collective-permute Y": (3, 768)}, "Right result, but collective-permute over Y moves 2 times the "
                                             "bytes that it should."),
        ({"collective-permute Y": (1, 384)}, "Right result, but collective-permute over Y runs once, but "
                                             "should run 3 times."),
        ({"collective-permute X": (3, 384)}, "Right result, but collective-permute over X (384 B) is not "
                                             "needed; collective-permute over Y should run but does not."),
    ],
)  # fmt: skip
def test_faults_of_a_program_with_a_right_result_are_listed(moves, says):
    assert str(CHECK(verdict(moves))) == f"✗ {says}"


def test_a_mistake_is_known_in_any_order_and_its_times_may_be_left_open():
    first, second = programs.moves({"all-gather X": (2, 8), "all-reduce Y": (1, 4)})
    known = programs.moves({"all-reduce Y": 4, "all-gather X": (2, 8)})
    assert programs.same((first, second), known)
    assert not programs.same((first,), known)
    assert not programs.same(programs.moves({"all-gather X": (1, 8), "all-reduce Y": (1, 4)}), known)


def test_a_wrong_result_is_wrong_however_little_it_moves():
    outcome = CHECK(verdict(RING, wrong="on every device"))
    assert (outcome.status, outcome.message) == ("wrong", "Wrong result: on every device.")


def test_a_result_with_the_wrong_sharding_is_wrong():
    said = "it is sharded as C[I, K], but should be C[I_X, K]"
    assert CHECK(verdict(RING, also=(said,))).message == f"Right result, but {said}."


def test_the_times_may_be_left_open():
    anyhow = Check(key="here.2", title="", kind="program", answer=lambda: right({"all-reduce X": 64}))
    for moves in ({"all-reduce X": (4, 64)}, {}):
        assert anyhow(ProgramVerdict(moves=programs.moves(moves), key="here.2", asked=())).ok


def test_a_verdict_prints_as_a_sentence():
    assert str(ProgramVerdict()) == "right result, without communication"
    assert str(right(RING)) == "right result; it runs collective-permute over Y: 3×, 384 B"
    assert str(CollectiveCount("all-reduce", "XY", 4)) == "all-reduce over XY: 4 B"
    assert ProgramVerdict().ok
    assert not ProgramVerdict(asked=(), moves=right(RING).moves).ok


def test_a_verdict_on_another_exercise_is_not_taken():
    outcome = CHECK(ProgramVerdict(key="here.7", asked=()))
    assert (outcome.status, outcome.ok) == ("unread", False)
    assert "here.7" in outcome.message


def test_the_answer_box_of_a_page_accepts_a_program_exercise(monkeypatch):
    monkeypatch.setattr(checks, "find", lambda key: CHECK)
    reply = json.loads(checks.judge_json("here.1", SOLVED))
    assert (reply["ok"], reply["status"]) == (True, "right")


@pytest.mark.parametrize("given", [min, 3.0, "3 permutes", {"all-gather Y": 1}, object()])
def test_anything_else_is_asked_for_the_judges_verdict(given):
    outcome = CHECK(given)
    assert outcome.status == "unread"
    assert "the judge's verdict" in outcome.message
    assert CHECK(...).status == "open"
    assert "your function" in str(CHECK)
