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


def test_reported_words_are_counted_and_never_refused():
    assert len(list(phrases.report())) == len(phrases.phrases("reported"))
    assert list(phrases.refusals("page", "A figure shows that each device holds a copy beside it.")) == []
    assert list(phrases.refusals("page", "The arithmetic intensity is 64.")) == []
