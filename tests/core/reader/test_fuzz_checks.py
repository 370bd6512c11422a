"""No text makes a check raise, and no message ever holds the answer."""

import json
import re

import pytest

from scalingbook_book.chapters.checks import Check, catalog, judge_json
from scalingbook_book.reader.checks.given import canonical
from scalingbook_lib import units
from tests.core import repeatable

pytest.importorskip("hypothesis")
from hypothesis import given
from hypothesis import strategies as st

UNITS = st.sampled_from(["", "s", "B", "B/s", "FLOP", "FLOP/s", "FLOP/B", "tokens"])
ANSWERS = st.floats(min_value=1e-9, max_value=1e18)
KINDS = (
    Check(key="fuzz.1", title="", answer=lambda: 43.61e-6, unit="s", chips=8),
    Check(key="fuzz.2", title="", answer=lambda: "b", choices=("a", "b")),
    Check(key="fuzz.3", title="", answer=lambda: "A[I_X, J]", kind="notation"),
)
NUMBERLIKE = st.from_regex(r"[-+]?[\d_,.^* e]{1,12} ?[kMGTmunµ%KiBbsFLOPtokens/]{0,8}", fullmatch=True)


@repeatable.examples(500)
@given(text=st.one_of(st.text(max_size=60), NUMBERLIKE), check=st.sampled_from(KINDS))
def test_any_text_is_judged(text, check):
    outcome = check(text)
    assert outcome.message
    assert outcome.ok == (outcome.status == "right")


@repeatable.examples(500)
@given(
    answer=ANSWERS, factor=st.floats(min_value=1e-15, max_value=1e15), unit=UNITS, chips=st.integers(1, 4096)
)
def test_no_message_holds_the_answer(answer, factor, unit, chips):
    check = Check(key="fuzz.4", title="", answer=lambda: answer, unit=unit, chips=chips)
    message = check(answer * factor).message
    for digits in (
        f"{answer:.4g}",
        units.si(answer, digits=4).split()[0],
        units.binary(answer, digits=4).split()[0],
    ):
        if sum(c.isdigit() for c in digits.strip("0.")) >= 4 and "1024" not in digits:
            assert not re.search(rf"(?<!\d){re.escape(digits)}", message)


@repeatable.examples(500)
@given(answer=ANSWERS, unit=UNITS)
def test_an_answer_is_right_with_its_unit_and_without(answer, unit):
    check = Check(key="fuzz.5", title="", answer=lambda: answer, unit=unit)
    assert check(answer).ok
    assert check(f"{answer!r} {unit}").ok
    assert canonical(unit).unit == unit


EVERY = sorted(catalog())


@pytest.mark.skipif(not EVERY, reason="no chapter has exercises yet")
@repeatable.examples(500)
@given(data=st.data(), text=st.one_of(st.text(max_size=30), NUMBERLIKE))
def test_any_text_in_any_answer_box_comes_back_as_json(data, text):
    reply = json.loads(judge_json(data.draw(st.sampled_from(EVERY)), text))
    assert reply["status"] in ("right", "wrong", "unread", "open")
