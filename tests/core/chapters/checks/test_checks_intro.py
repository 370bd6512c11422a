"""The day-one questions: published answers, and every known mistake is named."""

import pytest
from judged import right, wrong

from scalingbook_lib.chapters import checks

CHECKS = checks.catalogue("intro")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("intro.1", "1.09 ms"),
        ("intro.2", "10.4 ms"),
        ("intro.3", "2.68 GB"),
        ("intro.3", "2.5 GiB"),
        ("intro.4", "2.8 s"),
        ("intro.2", "10 ms"),
        ("intro.5", 8.59e9),
        ("intro.5", "8.6 billion parameters"),
        ("intro.6", "weak scaling at 90 %"),
        ("intro.6", "(b)"),
        ("intro.6", "Weak scaling at 90%."),
        ("intro.7", "44.3 days"),
        ("intro.7", "6.3 weeks"),
        ("intro.8", 9),
        ("intro.9", "1.4 s"),
        ("intro.10", "42.9 %"),
        ("intro.10", 3 / 7),
        ("intro.11", 4364),
        ("intro.12", 798),
        ("intro.13", "200 chips"),
        ("intro.14", 0.9615),
        ("intro.12", "798 ×"),
        ("intro.15", "60.7 %"),
        ("intro.15", 0.6),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("intro.4", "0.35 s", "bits"),
        ("intro.5", 8e9, "powers of two"),
        ("intro.7", "17.7 days", "full peak"),
        ("intro.8", 8, "not enough"),
        ("intro.9", "1.56 s", "reference"),
        ("intro.2", "333 ms", "all read at once"),
        ("intro.3", "335.5 MB", "key/value head"),
        ("intro.7", 44.3, "write the unit"),
        ("intro.8", 8.75, "16 GiB"),
        ("intro.9", "0.233 s", "both directions"),
        ("intro.14", 1.04, "upside down"),
        ("intro.10", "30 %", "does not make up"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


@pytest.mark.parametrize("check", CHECKS.values(), ids=list(CHECKS))
def test_every_listed_mistake_gets_its_own_sentence(check):
    for mistake in check.mistakes:
        outcome = check(mistake.value(check.answer()))
        assert (outcome.status, outcome.message) == ("wrong", mistake.says)


@pytest.mark.parametrize(("key", "given"), [("intro.10", 0.4), ("intro.11", 4500), ("intro.14", 0.9375)])
def test_binary_and_decimal_prefixes_are_blamed_only_where_bytes_are_counted(key, given):
    assert "prefixes" not in CHECKS[key](given).message


def test_three_difficulties():
    assert {c.difficulty for c in CHECKS.values()} == {1, 2, 3}
