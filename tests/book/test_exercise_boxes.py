"""An exercise that asks for a function has a box that says where it is solved, and can be ticked off."""

import pytest

pytest.importorskip("sphinx", reason="the site's layer is not set up")
from scalingbook_lib.chapters.checks import Check
from scalingbook_lib.reader.checks.programs import SOLVED, right
from tools.exercises import Exercise
from web.extension import exercises

PROGRAM = Check(
    key="sums.two-halves", title="A sum", kind="program", answer=lambda: right({}), hints=("Add.",)
)
ASKED = Exercise("sums.two-halves", 1, "A sum", "Add them.", (), "mine = ...  # a function", ())


def test_the_box_of_a_function_has_nothing_to_type_into():
    box = exercises.form(ASKED, PROGRAM, "../solutions/sums.html#a-sum")
    assert 'type="text"' not in box
    assert f'<input type="radio" name="answer" value="{SOLVED}">' in box
    assert "Hint 1 of 1" in box
    assert "Worked solution" in box
    assert PROGRAM(SOLVED).ok
