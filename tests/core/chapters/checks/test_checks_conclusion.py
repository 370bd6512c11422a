"""The exercises of the last chapter: answers by hand, named slips, and capstones that no plan beats."""

import pytest
from judged import right, wrong

from scalingbook_lib import planner
from scalingbook_lib.chapters import checks
from scalingbook_lib.chapters.conclusion import checks as conclusion

CHECKS = checks.catalogue("conclusion")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("conclusion.1", 40),
        ("conclusion.2", 3 * 2048),
        ("conclusion.3", 104_858),
        ("conclusion.4", "89.0 days"),
        ("conclusion.5", 4),
        ("conclusion.6", 63 / 64 * 2e15 / 5e11),
        ("conclusion.7", (4 * 32 * 2**30 - 2 * 41.3e9) // (4 * 60 * 8 * 64 * 4096)),
        ("conclusion.8", "28.1 days"),
        ("conclusion.9", "968 ms"),
        ("conclusion.10", 18.6),
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
        ("conclusion.3", 2 * 104_858, "two"),
        ("conclusion.3", 104_858 / 8, "8 heads"),
        ("conclusion.4", "29.7 days", "forward"),
        ("conclusion.4", "35.6 days", "peak"),
        ("conclusion.5", 8, "longer"),
        ("conclusion.5", 64, "domain"),
        ("conclusion.6", 40_000, "share"),
        ("conclusion.7", 6.75, "128"),
        ("conclusion.8", "14.9 days", "peaks"),
        ("conclusion.9", "1.39 s", "fewer expert ways"),
        ("conclusion.10", 27.3, "limit"),
        ("conclusion.10", 113, "dearest"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


def test_no_plan_that_the_search_knows_beats_the_capstones():
    plans = planner.plans(conclusion.QWEN, conclusion.CUBE, batch=256, T=4096, keep=1)
    assert plans.winner.step.total_s == pytest.approx(conclusion.train_s(), rel=1e-9)
    served = planner.serve(conclusion.M70, conclusion.SERVER, P=30_000, G=2_000, itl_s=0.03)
    assert served.best.cost == pytest.approx(conclusion.usd(), rel=1e-9)


def test_the_easy_ones_come_first():
    difficulties = [check.difficulty for check in CHECKS.values()]
    assert difficulties == sorted(difficulties)
