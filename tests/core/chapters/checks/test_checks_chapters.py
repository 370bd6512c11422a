"""Across all chapters: a check tells right from wrong, tells slips apart, and keeps its answer."""

import itertools
import math
import re

import pytest
from judged import by_judge

from scalingbook_book.chapters import checks
from scalingbook_lib import units

ALL = checks.catalog()
EVERY = [pytest.param(check, id=key) for key, check in ALL.items()]
NUMBERS = [pytest.param(check, id=key) for key, check in ALL.items() if check.kind == "number"]


def texts(check):
    return [*check.hints, *(m.message for m in check.mistakes), check.right, check.title]


def mistaken(check):
    return [by_judge(check, mistake.value(check.answer())) for mistake in check.mistakes]


def accepts(check, value, target):
    return math.isclose(value, target, rel_tol=check.rel_tol, abs_tol=check.abs_tol)


def in_sentences(answer):
    """The ways in which the digits of an answer could stand in a text."""
    forms = {units.si(answer), units.si(answer, digits=4), f"{answer:.3g}", f"{answer:,.0f}", f"{answer:.0f}"}
    numbers = {form.split()[0] for form in forms if form}
    return {
        n for n in numbers if sum(c.isdigit() for c in n.lstrip("0.")) >= 3 and not re.match(r"1[0,.]*$", n)
    }


@pytest.mark.parametrize("check", EVERY)
def test_the_answer_is_right_and_every_mistake_is_wrong_with_its_own_sentence(check):
    assert check(by_judge(check, check.answer())).message == check.right
    for mistake, value in zip(check.mistakes, mistaken(check), strict=True):
        outcome = check(value)
        assert (outcome.status, outcome.message) == ("wrong", mistake.message), value
    assert len({mistake.message for mistake in check.mistakes}) == len(check.mistakes)


@pytest.mark.parametrize("check", NUMBERS)
def test_a_mistake_is_farther_from_the_answer_than_the_tolerance(check):
    answer = float(check.answer())
    for mistake, value in zip(check.mistakes, mistaken(check), strict=True):
        assert abs(value - answer) > 1.2 * (check.rel_tol * abs(answer) + check.abs_tol), mistake.message


@pytest.mark.parametrize("check", NUMBERS)
def test_two_mistakes_are_never_taken_for_each_other(check):
    for (one, a), (other, b) in itertools.combinations(zip(check.mistakes, mistaken(check), strict=True), 2):
        assert not accepts(check, a, b), (one.message, other.message)


@pytest.mark.parametrize("check", NUMBERS)
def test_the_answer_may_be_written_with_three_digits_and_its_unit(check):
    answer = float(check.answer())
    if check.rel_tol >= 0.01:
        assert check(f"{answer:.3g}").ok
        if check.unit in ("s", "B", "B/s"):
            assert check(units.si(answer, check.unit)).ok


@pytest.mark.parametrize("check", EVERY)
def test_harder_exercises_have_more_than_one_hint(check):
    assert len(check.hints) >= min(2, check.difficulty)
    assert len(set(check.hints)) == len(check.hints)


@pytest.mark.parametrize("check", NUMBERS)
def test_no_text_holds_the_digits_of_the_answer(check):
    for told, text in itertools.product(in_sentences(float(check.answer())), texts(check)):
        assert not re.search(rf"(?<![\d.,]){re.escape(told)}(?![\d])", text), (told, text)


@pytest.mark.parametrize("check", NUMBERS)
def test_no_judgement_holds_the_digits_of_the_answer(check):
    answer = float(check.answer())
    for factor in (0, 0.1, 0.5, 0.9, 1.3, 2, 8, 1000, 1.024**3, -1, math.inf):
        outcome = check(factor * answer if factor or not math.isinf(answer) else 0)
        for told in in_sentences(answer):
            assert not re.search(rf"(?<![\d.,]){re.escape(told)}(?![\d])", outcome.message)


@pytest.mark.parametrize("check", [c for c in EVERY if c.values[0].kind == "choice"])
def test_every_wrong_choice_is_told_why(check):
    told = {mistake.wrong_answer for mistake in check.mistakes}
    assert told == {choice for choice in check.choices if choice != check.answer()}


@pytest.mark.parametrize("stem", checks.stems())
def test_a_title_stands_once_and_a_key_is_words(stem):
    found = checks.catalog(stem)
    assert all(re.fullmatch(rf"{stem}\.(?=[0-9-]*[a-z])[a-z0-9]+(-[a-z0-9]+){{0,2}}", key) for key in found)
    assert len({check.title for check in found.values()}) == len(found)
