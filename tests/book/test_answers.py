"""What a Predict box hides: an answer, and nothing that a reader needs to read on."""

import re

import pytest

from scalingbook_book.reader.checks import guess
from tools import pages, plain
from tools.environment import ROOT

ASKED = re.compile(r":::\{admonition\} Predict\n:class: predict\n(?P<question>.*?)\n:::\n", re.DOTALL)
ANSWER = re.compile(r"\n:::\{answer\}\n(?P<options>(?::\w+:[^\n]*\n)*)\n*(?P<body>.*?)\n:::\n", re.DOTALL)
OPTION = re.compile(r"^:(\w+): ?(.*)$", re.MULTILINE)
NEEDED = re.compile(r"\*\*|\$\$|^\(|^#|^\||:::|```|\{(?:eq|figure|exercises)\}`?", re.MULTILINE)
BACKWARD = re.compile(r"(?:But|And|Or|So|Yes|No|It|They|That|This|These|Those|One|Neither|Both)\b")


def answers(page):
    """The question, the options and the text of each, and the page's source behind it."""
    for asked in ASKED.finditer(page.text):
        found = ANSWER.match(page.text, asked.end())
        assert found, f"no answer follows {asked['question']!r}"
        yield (
            asked["question"],
            dict(OPTION.findall(found["options"])),
            found["body"],
            page.text[found.end() :].lstrip(),
        )


@pytest.mark.parametrize("page", pages.every(), ids=str)
def test_each_question_is_answered_at_once_and_each_answer_has_its_question(page):
    assert (
        len(list(answers(page))) == page.text.count("\n:::{answer}\n") == page.text.count(":class: predict")
    )


@pytest.mark.parametrize("page", pages.every(), ids=str)
def test_an_answer_hides_no_definition_formula_figure_explorer_or_takeaway(page):
    for _, _, body, _ in answers(page):
        assert not NEEDED.search(body), body


@pytest.mark.parametrize("page", pages.every(), ids=str)
def test_a_hidden_output_is_that_of_the_next_cell_and_no_picture(page):
    for _, options, body, after in answers(page):
        if "output" in options:
            assert after.startswith("```{code-cell}"), body
            cell = after[: after.index("\n```\n")]
            assert not re.search(r"\bshow\.(?:figure|explorer)\(|:tags: \[remove", cell), cell


@pytest.mark.parametrize("page", pages.every(), ids=str)
def test_what_a_guess_is_judged_by_is_what_the_answer_says(page):
    for question, options, body, _ in answers(page):
        if "choices" in options:
            choices = [one.strip() for one in options["choices"].split("|")]
            assert options["value"] in choices, question
            assert len(choices) == len(set(choices)) > 1, question
        elif value := options.get("value"):
            assert value in body.replace("{,}", ",").replace("\n", " "), (question, body)
            assert str(guess.judge(value, value, options.get("unit", ""))) == "✓ Exactly.", question
        assert set(options) <= {"value", "unit", "choices", "output"}, question


@pytest.mark.parametrize("page", pages.every(), ids=str)
def test_the_text_behind_an_answer_reads_on_without_it(page):
    for _, _, body, after in answers(page):
        assert not BACKWARD.match(after), (body, after[:80])


def test_the_notebooks_have_the_answers_in_plain_markdown():
    asked = ":::{admonition} Predict\n:class: predict\nHow many?\n:::\n\n"
    source = asked + ":::{answer}\n:value: 2\n\nThere are 2.\n:::"
    at = (ROOT / "chapters" / "here.ipynb").relative_to(ROOT)
    assert plain.text(source, at, plain.Book({}, {})) == "> **Predict**\n>\n> How many?\n\nThere are 2."


@pytest.mark.parametrize(
    ("given", "answer", "unit", "said"),
    [
        ("500", "454", "rows", "✓ Within a factor of 2."),
        ("454 rows", "454", "rows", "✓ Exactly."),
        ("1,000", "454", "rows", "✗ Too large by a factor of 2.2."),
        ("1", "1.01 ms", "ms", "✓ Within 2%."),
        ("1 µs", "1.01 ms", "ms", "✗ Too small by a factor of 1,010."),
        ("40", "57%", "%", "✓ Within a factor of 2."),
        ("0.4", "57%", "%", "✗ Too small by a factor of 142."),
        ("16 KiB", "16 KiB", "bytes", "✓ Exactly."),
        ("-3", "4", "chips", "✗ Not that."),
    ],
)
def test_a_guess_is_judged_by_its_factor(given, answer, unit, said):
    assert str(guess.judge(given, answer, unit)) == said


def test_words_are_no_number_and_are_told_so():
    assert guess.judge("a banana", "454", "rows").status == "unread"
