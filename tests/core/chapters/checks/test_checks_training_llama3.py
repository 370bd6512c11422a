"""The exercises on training LLaMA 3: answers worked out by hand, and the slips that people make are named."""

import pytest
from judged import right, wrong

from scalingbook_lib.chapters import checks

CHECKS = checks.catalogue("training_llama3")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("training_llama3.1", 8192),
        ("training_llama3.2", 405.85e9),
        ("training_llama3.3", "32.1 days"),
        ("training_llama3.4", 6 * 8.03e9 * 15e12 / (1.46e6 * 3600 * 989e12)),
        ("training_llama3.5", 35),
        ("training_llama3.6", 765 * 8960),
        ("training_llama3.7", 840),
        ("training_llama3.8", "stages"),
        ("training_llama3.9", 4),
        ("training_llama3.10", (60 * 5.8 * 365.25 * 86400 / 8192) ** 0.5),
        ("training_llama3.11", 12),
        ("training_llama3.12", 2.2),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("training_llama3.1", 8960, "pod"),
        ("training_llama3.2", 405.85e9 - 126 * 16384 * 53248, "gated"),
        ("training_llama3.3", "257 days", "eight pods"),
        ("training_llama3.3", "12.85 days", "peak"),
        ("training_llama3.4", 0.0695, "sparsity"),
        ("training_llama3.5", 3, "state alone"),
        ("training_llama3.6", 850 * 8960, "90 %"),  # the reference
        ("training_llama3.6", 765, "one chip"),
        ("training_llama3.7", 10.7, "tensor ways"),
        ("training_llama3.8", "tensor ways", "heads"),
        ("training_llama3.9", 2, "squared"),
        ("training_llama3.10", 818.7, "factor 2"),
        ("training_llama3.11", 3072, "chips"),
        ("training_llama3.12", 1.2026, "on top"),
        ("training_llama3.12", 3.42, "skips half"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


def test_the_easy_ones_come_first():
    difficulties = [check.difficulty for check in CHECKS.values()]
    assert difficulties == sorted(difficulties)
