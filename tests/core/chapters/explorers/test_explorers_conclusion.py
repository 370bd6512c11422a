"""The explorers of the last chapter: what is uncertain, and the questions without paper.

Those are answerable, the same for everyone, and judged by how many times off.
"""

import math

import pytest

from scalingbook_book.chapters import explorers
from scalingbook_book.chapters.conclusion.explorers import errors
from scalingbook_book.chapters.conclusion.explorers.estimate import QUESTIONS, estimate, said
from scalingbook_book.chapters.conclusion.explorers.questions import question
from scalingbook_lib import calibrated, units
from scalingbook_lib.machines import chips
from scalingbook_lib.words import joined_units

START = (67.0, 91.0, 95.0, 88.0)
CASES = tuple(errors.CASES)
EXPLORER = explorers.find("conclusion.estimate")


@pytest.mark.parametrize("case", CASES)
def test_the_parts_are_the_step_and_it_fits(case):
    for given in (None, START):
        found = errors.step(case, given)
        assert math.isclose(sum(errors.parts(found)), found.total_s)
        assert found.memory.fits


@pytest.mark.parametrize("case", CASES)
def test_a_worse_share_never_shortens_a_step_and_peaks_are_the_earliest(case):
    assert all(span >= 0 for span in errors.spans(case, START, 10).values())
    assert errors.step(case, None).total_s <= errors.step(case, (100.0,) * 4).total_s


def test_nothing_uncertain_is_no_interval_and_the_start_is_the_calibrated_line():
    assert set(errors.spans(CASES[0], START, 0).values()) == {0.0}
    found = calibrated.training(chips.V6E)
    shares = found.matmul, found.memory, found.torus, found.overlap
    assert tuple(round(100 * share) for share in shares) == START


@pytest.mark.parametrize(
    ("links", "widest"), [(95.0, "matmuls"), (58.0, "matmuls"), (56.0, "overlap"), (50.0, "links")]
)
def test_what_has_to_be_known_well_changes_with_the_links(links, widest):
    spans = errors.spans(CASES[0], (67.0, 91.0, links, 88.0), 10)
    assert max(spans, key=lambda name: spans[name]) == widest


@pytest.mark.parametrize("number", range(1, QUESTIONS + 1))
def test_every_question_is_judged(number):
    asked = question(number)
    assert asked == question(number)
    assert math.isfinite(asked.value)
    for times, verdict in (
        (1.0, "Exactly."),
        (1.5, "Good enough: your estimate is 1.5 times too high"),
        (0.2, "5 times too low"),
    ):
        seen = EXPLORER.evaluate_state({"number": number, "guess": f"{asked.value * times!r} {asked.unit}"})
        if asked.unit or asked.value * times <= 1:
            assert not seen.error
            assert seen.view is not None
            assert verdict.lower() in seen.view.verdict.lower()


@pytest.mark.parametrize("number", range(1, 25))
def test_an_answer_as_it_is_said_is_a_right_one_and_is_hidden_until_asked_for(number):
    asked = question(number)
    told = said(asked.value, asked.unit)
    assert math.isclose(estimate(told, asked.unit), asked.value, rel_tol=0.07)
    start, shown = EXPLORER.render({"number": number}), EXPLORER.render({"number": number, "show": True})
    painted = joined_units(told)
    assert painted not in start.verdict + start.readouts
    assert painted in shown.verdict
    assert painted in shown.readouts


def test_answers_by_hand():
    assert question(1).asked.startswith(
        "How many bytes do weights, gradients and Adam's state of Llama 3.1 405B"
    )
    assert math.isclose(question(1).value, 16 * 405.85e9, rel_tol=1e-4)
    assert math.isclose(question(5).value, 1e9 * 15 / 16 / 200e9)
    assert question(11).value == 15 / 31
    assert math.isclose(question(10).value, 459e12 / 400e9)
    assert len({question(n).asked for n in range(1, QUESTIONS + 1)}) > 0.7 * QUESTIONS


@pytest.mark.parametrize(
    ("number", "text"), [(1, "3 s"), (1, "0 B"), (5, "4"), (11, "48"), (1, "many"), (3, "-2")]
)
def test_what_is_no_answer_is_refused_with_an_example(number, text):
    error = EXPLORER.evaluate_state({"number": number, "guess": text}).error
    assert "write " in error


def test_tokens_need_no_unit_and_shares_may_be_plain():
    assert estimate("300", "tokens") == 300
    assert estimate("0.48", "") == estimate("48%", "") == 0.48
    assert units.parse("2 days").value == 2 * 86400 == estimate("2 days", "s")
