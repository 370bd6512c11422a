"""The day-one questions: published answers, and every known mistake is named."""

import pytest
from judged import right, wrong

from scalingbook_book.chapters import checks

CHECKS = checks.catalog("intro")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("intro.compute-time", "1.09 ms"),
        ("intro.read-weights", "10.4 ms"),
        ("intro.cache-size", "2.68 GB"),
        ("intro.cache-size", "2.5 GiB"),
        ("intro.network-card", "2.8 s"),
        ("intro.read-weights", "10 ms"),
        ("intro.parameters-that-fit", 8.59e9),
        ("intro.parameters-that-fit", "8.6 billion parameters"),
        ("intro.strong-or-weak", "weak scaling at 90%"),
        ("intro.strong-or-weak", "(b)"),
        ("intro.strong-or-weak", "Weak scaling at 90%."),
        ("intro.training-days", "44.3 days"),
        ("intro.training-days", "6.3 weeks"),
        ("intro.fewest-chips", 9),
        ("intro.allreduce-time", "1.4 s"),
        ("intro.quality-break-even", "42.9%"),
        ("intro.quality-break-even", 3 / 7),
        ("intro.three-axis-knee", 4364),
        ("intro.largest-speed-up", 798),
        ("intro.hops-equal-bytes", "200 chips"),
        ("intro.gain-of-change", 0.9615),
        ("intro.largest-speed-up", "798 ×"),
        ("intro.weak-efficiency", "60.7%"),
        ("intro.weak-efficiency", 0.6),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("intro.network-card", "0.35 s", "bits"),
        ("intro.parameters-that-fit", 8e9, "powers of two"),
        ("intro.training-days", "17.7 days", "full peak"),
        ("intro.fewest-chips", 8, "not enough"),
        ("intro.allreduce-time", "1.56 s", "90 GB/s per link"),
        ("intro.read-weights", "333 ms", "all read at once"),
        ("intro.cache-size", "335.5 MB", "key-value head"),
        ("intro.training-days", 44.3, "write the unit"),
        ("intro.fewest-chips", 8.75, "16 GiB"),
        ("intro.allreduce-time", "0.233 s", "both directions"),
        ("intro.gain-of-change", 1.04, "inverse"),
        ("intro.quality-break-even", "30%", "does not make up"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


@pytest.mark.parametrize("check", CHECKS.values(), ids=list(CHECKS))
def test_every_listed_mistake_gets_its_own_sentence(check):
    for mistake in check.mistakes:
        outcome = check(mistake.value(check.answer()))
        assert (outcome.status, outcome.message) == ("wrong", mistake.message)


@pytest.mark.parametrize(
    ("key", "given"),
    [("intro.quality-break-even", 0.4), ("intro.three-axis-knee", 4500), ("intro.gain-of-change", 0.9375)],
)
def test_binary_and_decimal_prefixes_are_blamed_only_where_bytes_are_counted(key, given):
    assert "prefixes" not in CHECKS[key](given).message


def test_three_difficulties():
    assert {c.difficulty for c in CHECKS.values()} == {1, 2, 3}
