"""The exercises on training Llama 3: answers worked out by hand, and the slips that people make are named."""

import pytest
from judged import right, wrong

from scalingbook_book.chapters import checks

CHECKS = checks.catalog("training_llama3")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("training_llama3.chips-in-plan", 8192),
        ("training_llama3.count-parameters", 405.85e9),
        ("training_llama3.training-days", "32.1 days"),
        ("training_llama3.mfu-from-hours", 6 * 8.03e9 * 15e12 / (1.46e6 * 3600 * 989e12)),
        ("training_llama3.state-and-activations", 35),
        ("training_llama3.fsdp-batch", 765 * 8960),
        ("training_llama3.best-split", 840),
        ("training_llama3.factor-of-five", "pipeline"),
        ("training_llama3.faster-arithmetic", 4),
        ("training_llama3.checkpoint-interval", (60 * 5.8 * 365.25 * 86400 / 8192) ** 0.5),
        ("training_llama3.pods-for-deadline", 12),
        ("training_llama3.long-sequences", 2.2),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("training_llama3.chips-in-plan", 8960, "pod"),
        ("training_llama3.count-parameters", 405.85e9 - 126 * 16384 * 53248, "gated"),
        ("training_llama3.training-days", "257 days", "eight pods"),
        ("training_llama3.training-days", "12.85 days", "peak"),
        ("training_llama3.mfu-from-hours", 0.0695, "sparsity"),
        ("training_llama3.state-and-activations", 3, "state alone"),
        ("training_llama3.fsdp-batch", 850 * 8960, "90%"),  # the reference
        ("training_llama3.fsdp-batch", 765, "one chip"),
        ("training_llama3.best-split", 10.7, "TP degree"),
        ("training_llama3.factor-of-five", "tensor", "heads"),
        ("training_llama3.faster-arithmetic", 2, "squared"),
        ("training_llama3.checkpoint-interval", 818.7, "factor 2"),
        ("training_llama3.pods-for-deadline", 3072, "chips"),
        ("training_llama3.long-sequences", 1.2026, "beyond 6P"),
        ("training_llama3.long-sequences", 3.42, "skips half"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)
