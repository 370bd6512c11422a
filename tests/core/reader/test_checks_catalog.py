"""For every exercise: its answer is right, its known mistakes are wrong, and its hints reveal nothing."""

import json
import re

import pytest
from judged import by_judge

from scalingbook_book.chapters import checks
from scalingbook_lib import units


def test_a_key_that_does_not_exist_is_answered_and_not_raised_in_the_page():
    assert json.loads(checks.judge_json("nowhere.1", "3"))["status"] == "unread"
    assert json.loads(checks.hint_json("nowhere.1", 1))["n"] == 0
    with pytest.raises(ValueError, match="no chapter"):
        checks.find("nowhere.1")
    for stem in checks.stems():
        with pytest.raises(ValueError, match="nearest"):
            checks.find(f"{stem}.no-such-exercise")


EVERY = [pytest.param(check, id=key) for key, check in checks.catalog().items()]


@pytest.mark.parametrize("check", EVERY)
def test_the_librarys_own_answer_is_right(check):
    assert check(by_judge(check, check.answer())).ok
    typed = json.loads(checks.judge_json(check.key, str(check.answer())))
    assert typed["ok"] or (check.kind, typed["status"]) == ("program", "unread")  # no function fits in a box


@pytest.mark.parametrize("check", EVERY)
def test_every_known_mistake_is_wrong_and_gets_its_message(check):
    for mistake in check.mistakes:
        outcome = check(by_judge(check, mistake.value(check.answer())))
        assert (outcome.status, outcome.message) == ("wrong", mistake.message)


@pytest.mark.parametrize("check", EVERY)
def test_hints_never_contain_the_answer(check):
    assert check.title
    assert len(check.hints) >= 2
    texts = [*check.hints, *(m.message for m in check.mistakes), check.right, check.title]
    for told in digits(check):
        assert not any(re.search(rf"(?<![\d.]){re.escape(told)}(?!\d)", text) for text in texts), told


def digits(check):
    """How an answer would look in a sentence, where it looks like nothing else."""
    if check.kind != "number":
        return []
    answer = float(check.answer())
    forms = {units.si(answer), units.binary(answer, ""), f"{answer:g}", f"{answer:,.0f}"}
    numbers = {form.split()[0] for form in forms if form}
    return [n for n in numbers if sum(c.isdigit() for c in n.lstrip("0.")) >= 3 and n.strip("0") != "1"]
