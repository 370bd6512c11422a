"""One source makes the worked solutions, the exercise notebook and the page's questions."""

import jupytext
import pytest

from scalingbook_book.chapters import checks
from tools import exercises
from tools.environment import ROOT
from tools.exercises import Cell, ExerciseError
from web.extension import numbers


def test_a_source_is_read_with_its_question_its_stub_and_its_solution(book):
    first, second = exercises.read("sums", book)
    assert (first.key, first.number, first.title) == ("sums.two-halves", 1, "A half and a half")
    assert first.question_md == "How much is $1/2 + 1/2$?"
    assert first.stub == "one = ...  # one line: a sum of two Fractions"
    assert first.solution[-1] == Cell("markdown", "Two halves are a whole.")
    assert second.question_md == "Here is a list:\n\nWhich comes next?"
    assert second.given == (Cell("code", "halves = [1, 2, 4]"),)
    assert [cell.source for cell in second.solution] == ["last = halves[-1]", "following = 2 * last"]


def test_a_blanked_notebook_holds_the_stub_and_no_word_of_the_solution(book):
    blank = exercises.blanked(exercises.source("sums", book))
    text = "\n".join(cell.source for cell in blank.cells)
    assert "one = ...  # one line: a sum of two Fractions" in text
    assert "following = ...  # a number" in text
    for solved in ("half + half", "whole", "2 * last", "halves[-1]"):
        assert solved not in text
    assert not any("solution" in cell.metadata.get("tags", ()) for cell in blank.cells)


def test_a_source_comes_back_the_same_through_jupytext(book):
    notebook = exercises.source("sums", book)
    again = jupytext.reads(jupytext.writes(notebook, fmt="md:myst"), fmt="md:myst")
    told = [[(c.cell_type, c.source, c.metadata) for c in nb.cells] for nb in (notebook, again)]
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("written", "instead", "rule"),
    [
        ("## 1. A half and a half", "## A half and a half", "a heading"),
        ("## 1. A half and a half", "## 7. A half and a half", "in order"),
        ('"exercise": "sums.halving"', '"exercise": "sums.thirds"', 'checks.find\\("sums.thirds"\\)'),
        ("sums.halving", "sums.2", "is no key"),
        ("sums.halving", "other.halving", "is no key"),
        ("sums.halving", "sums.two-halves", "stands twice"),
        (':stub: "one line: a sum of two Fractions"\n', "", "exactly one code cell"),
        ("one = half + half", "half + half", "assignment"),
        ('checks.find("sums.two-halves")(one)', 'checks.find("sums.two-halves")(half)', "its last cell"),
    ],
)
def test_a_source_that_breaks_the_format_is_told_what_to_write(book, written, instead, rule):
    path = book / "solutions" / "sums.md"
    path.write_text(path.read_text().replace(written, instead, -1 if written == "sums.halving" else 1))
    with pytest.raises(ExerciseError, match=rule):
        exercises.read("sums", book)


@pytest.mark.parametrize("stem", exercises.stems())
def test_every_exercise_has_its_check_and_every_check_its_exercise(stem):
    asked = exercises.read(stem)
    assert {e.key: e.title for e in asked} == {c.key: c.title for c in checks.catalog(stem).values()}


@pytest.mark.parametrize("stem", exercises.stems())
def test_a_chapter_has_ten_exercises_in_three_difficulties(stem):
    found = checks.catalog(stem).values()
    assert len(found) >= 10
    assert {check.difficulty for check in found} == {1, 2, 3}


BY_SUBJECT = {"gpus", "posttraining", "sharding"}  # their exercises are grouped by subject instead


@pytest.mark.parametrize("stem", sorted({*exercises.stems()} - BY_SUBJECT))
def test_the_easy_ones_come_first(stem):
    difficulties = [checks.find(exercise.key).difficulty for exercise in exercises.read(stem)]
    assert difficulties == sorted(difficulties)


def test_every_chapter_with_checks_has_exercises():
    assert exercises.stems() == checks.stems()


@pytest.mark.parametrize("name", ["exposed-share", "bytes-per-run", "compilation-share"])
def test_the_profile_that_a_question_is_about_is_on_its_page(name):
    cells = [cell for one in exercises.shown("profiling", [name]) for cell in one.given]
    printed = [exercises.output("profiling", cell).text for cell in cells]
    assert any("run" in text or "The device is busy" in text for text in printed)


def test_an_exercise_has_the_number_of_its_worked_solution():
    html = '<h3 class="exercise-title" id="exercise-{}-b">{}. A title <span class="difficulty"></span></h3>'
    known = numbers.of_pages(ROOT)
    for page in ("rooflines", "rooflines_narrow", "transformers_experts"):
        count = numbers.Count(known[f"chapters/{page}"], page)
        for stem, own in (("rooflines", 4), ("rooflines", 17), ("training_llama3", 2)):
            shown = count.raw(html.format(stem, own), "section")
            assert f"<span>{known[f'chapters/{stem}']}.{own}. A" in shown
