"""The rooflines exercises: answers worked out by hand, and the slips that people make are named."""

import pytest
from judged import right, wrong

from scalingbook_lib.chapters import checks

CHECKS = checks.catalogue("rooflines")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("rooflines.1", 74.86e-6 + 52.34e-6),
        ("rooflines.2", 394 / 0.819 / 2),
        ("rooflines.2", 243),  # the reference, with 810 GB/s
        ("rooflines.3", "120 tokens"),
        ("rooflines.4", 989.5 / 4.8),
        ("rooflines.5", 2),
        ("rooflines.6", 129.6),  # the sheet's, from a ridge of 240.2
        ("rooflines.7", 226.8 / 136.3),
        ("rooflines.8", 1120),
        ("rooflines.9", "9.62 MB"),
        ("rooflines.10", "5.7 %"),
        ("rooflines.11", 459e12 / 100e9),
        ("rooflines.12", "2.77 MB"),
        ("rooflines.13", 197e12 / 16e9),
        ("rooflines.14", "3.83 TB/s"),
        ("rooflines.15", 2 * 15 * 1970),
        ("rooflines.16", 13 / 9),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("rooflines.1", "74.9 µs", "perfect overlap"),
        ("rooflines.2", 481, "That is the ridge"),
        ("rooflines.3", 240.5, "bf16 weights"),
        ("rooflines.4", 412, "sparsity"),
        ("rooflines.5", 1.0, "two FLOPs"),
        ("rooflines.8", 560, "D/2"),
        ("rooflines.9", "4.6 MiB", ""),
        ("rooflines.11", 9180, "whole sum"),
        ("rooflines.13", 240.5, "HBM"),
        ("rooflines.15", 63_040, "1/16"),
        ("rooflines.15", 29_550, "may stay split"),
        ("rooflines.16", 9 / 13, "inverse"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


def test_the_easy_ones_come_first():
    difficulties = [check.difficulty for check in CHECKS.values()]
    assert difficulties == sorted(difficulties)
