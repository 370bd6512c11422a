"""Tests of the page on published training runs: its statements and its example hold."""

import re
from statistics import mean

from scalingbook_lib import training
from scalingbook_lib.evidence import training as published
from tools import training_compared as compared
from tools.environment import ROOT


def test_the_pages_example_is_predicted_within_10_percent():
    page = (ROOT / "training-runs.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.S)
    said: dict[str, training.TrainingStep] = {}
    exec(example, said)
    assert abs(said["step"].total_s / 14.67 - 1) < 0.1  # dgxc-llama3-70b on 512 H100, release 25.04.02


def test_errors_within_series_grow_with_chips_but_not_with_memory():
    assert 0.005 < compared.per_doubling() < 0.015  # steps grow with the chips, and predictions do not
    crowded = compared.crowded()
    assert len(crowded) > 50
    assert abs(mean(one.error for one in crowded)) < 0.01  # a full memory is no reason


def test_ratios_within_a_series_are_predicted():
    errors = sorted(abs(one.error) for one in compared.ratios())
    assert len(errors) == 228
    assert mean(error**2 for error in errors) ** 0.5 < 0.04
    assert sum(error <= 0.05 for error in errors) / len(errors) > 0.88


def test_plan_pairs_are_ranked_as_published():
    pairs = published.plan_pairs()
    assert len(pairs) == 7
    assert all(pair.agrees for pair in pairs)


def test_peak_memory_is_predicted():
    found = compared.held()
    assert len(found) == 10
    assert all(abs(one.error) < 0.15 for one in found)
    assert sum(abs(one.error) for one in found) / len(found) < 0.06


def test_comparisons_print_as_sentences():
    found = (compared.held()[0], published.plan_pairs()[0], compared.ratios()[0])
    assert all("%" in str(one) or "times as long" in str(one) for one in found)
