"""The exercises of the last chapter: answers by hand, named slips, and capstones that no plan beats."""

import pytest
from judged import right, wrong

from scalingbook_book.chapters import checks
from scalingbook_book.chapters.conclusion import checks as conclusion
from scalingbook_lib import planner

CHECKS = checks.catalog("conclusion")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("conclusion.chips-for-state", 40),
        ("conclusion.tokens-or-experts", 3 * 2048),
        ("conclusion.cache-fills-chip", 104_858),
        ("conclusion.training-days", "89.0 days"),
        ("conclusion.tensor-ways", 4),
        ("conclusion.data-ways", 63 / 64 * 2e15 / 5e11),
        ("conclusion.sequences-that-fit", (4 * 32 * 2**30 - 2 * 41.3e9) // (4 * 60 * 8 * 64 * 4096)),
        ("conclusion.trillion-tokens", "28.1 days"),
        ("conclusion.plan-with-experts", "968 ms"),
        ("conclusion.cheapest-server", 18.6),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("conclusion.chips-for-state", 64, "ten bytes"),
        ("conclusion.chips-for-state", 8, "two moments"),
        ("conclusion.tokens-or-experts", 4096, "has three"),
        ("conclusion.cache-fills-chip", 2 * 104_858, "Both keys"),
        ("conclusion.cache-fills-chip", 104_858 / 8, "8 heads"),
        ("conclusion.training-days", "29.7 days", "forward"),
        ("conclusion.training-days", "35.6 days", "peak"),
        ("conclusion.tensor-ways", 8, "longer"),
        ("conclusion.tensor-ways", 64, "domain"),
        ("conclusion.data-ways", 40_000, "share"),
        ("conclusion.sequences-that-fit", 6.75, "128"),
        ("conclusion.trillion-tokens", "14.9 days", "peak rates"),
        ("conclusion.plan-with-experts", "1.39 s", "lower degree"),
        ("conclusion.cheapest-server", 27.3, "deadline"),
        ("conclusion.cheapest-server", 113, "most expensive"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


def test_no_plan_that_the_search_knows_beats_the_capstones():
    plans = planner.plans(conclusion.QWEN, conclusion.CUBE, batch=256, T=4096, keep=1)
    assert plans.winner.step.total_s == pytest.approx(conclusion.train_s(), rel=1e-9)
    served = planner.serve(conclusion.M70, conclusion.SERVER, P=30_000, G=2_000, itl_s=0.03)
    assert served.best.cost == pytest.approx(conclusion.usd(), rel=1e-9)
