"""The list of phrases finds what it names and nothing that only looks like it."""

import pytest

from tools import phrases

REFUSED = phrases.phrases("refused")


@pytest.mark.parametrize("phrase", REFUSED, ids=lambda phrase: phrase.pattern.pattern)
def test_a_phrase_is_found_in_its_example_and_not_in_a_correct_sentence(phrase):
    assert phrase.pattern.search(phrase.wrong)
    assert not phrase.pattern.search(phrase.right)
    assert not list(phrases.refusals("right", phrase.right)), "no other row refuses a correct sentence"


def test_no_page_has_a_refused_phrase():
    assert [line for name, text in phrases.texts() for line in phrases.refusals(name, text)] == []
    names = {name for name, _ in phrases.texts()}
    assert {"README.md", "CONTRIBUTING.md", "glossary.md", "chapters/intro.md", "docs/exercises.md"} <= names


def test_no_docstring_message_or_comment_has_a_refused_phrase():
    assert [line for name, text in phrases.code() for line in phrases.refusals(name, text)] == []
    assert {"scalingbook_cli/plan.py", "scalingbook_lib/units.py"} <= {name for name, _ in phrases.code()}


def test_a_phrase_is_found_across_lines_and_in_every_kind_of_text_in_code(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        '"""A token takes 3 ms in\nthe mean."""\n'
        "x = 'fine'  # the colour of a chip\n"
        'message = f"{x} knows no failures"\n'
        "knows_no = 1\n"
    )
    found = list(phrases.refusals("module.py", phrases.words_of_code(module)))
    assert [line.partition(": ")[0] for line in found] == ["module.py:1", "module.py:4", "module.py:3"]


def test_reported_words_are_counted_and_never_refused():
    assert len(list(phrases.report())) == len(phrases.phrases("reported"))
    assert list(phrases.refusals("page", "A figure shows that each device holds a copy beside it.")) == []
    assert list(phrases.refusals("page", "The arithmetic intensity is 64.")) == []
