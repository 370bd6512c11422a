"""The exercises of the last chapter: answers by hand, named slips, and capstones that no plan beats."""

import pytest
from judged import right, wrong

from scalingbook_lib import checks, planner
from scalingbook_lib.checks import conclusion

CHECKS = checks.catalogue("conclusion")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("conclusion.1", 40),
        ("conclusion.2", 3 * 2048),
        ("conclusion.3", 4),
        ("conclusion.4", 63 / 64 * 2e15 / 5e11),
        ("conclusion.5", (4 * 32 * 2**30 - 2 * 41.3e9) // (4 * 60 * 8 * 64 * 4096)),
        ("conclusion.6", "24.7 days"),
        ("conclusion.7", "968 ms"),
        ("conclusion.8", 18.6),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("conclusion.1", 64, "ten bytes"),
        ("conclusion.1", 8, "two moments"),
        ("conclusion.2", 4096, "three matrices"),
        ("conclusion.3", 8, "longer"),
        ("conclusion.3", 64, "domain"),
        ("conclusion.4", 40_000, "share"),
        ("conclusion.5", 6.75, "128"),
        ("conclusion.6", "14.9 days", "peaks"),
        ("conclusion.7", "1.39 s", "fewer expert ways"),
        ("conclusion.8", 27.3, "limit"),
        ("conclusion.8", 113, "dearest"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


def test_no_plan_that_the_search_knows_beats_the_capstones():
    plans = planner.plans(conclusion.QWEN, conclusion.CUBE, batch=256, T=4096, keep=1)
    assert plans.winner.step.total_s == pytest.approx(conclusion.train_s(), rel=1e-9)
    served = planner.serve(conclusion.M70, conclusion.SERVER, P=30_000, G=2_000, itl_s=0.03)
    assert served.best.cost == pytest.approx(conclusion.usd(), rel=1e-9)


def test_eight_in_three_difficulties_the_easy_ones_first():
    assert [check.difficulty for check in CHECKS.values()] == [1] * 2 + [2] * 4 + [3] * 2
