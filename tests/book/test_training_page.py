"""The appendix on predicted and published steps says what the library says."""

import re
from statistics import mean

from scalingbook_lib import training
from scalingbook_lib.evidence import training as published
from tools import training_ratios
from tools.training_page import PAGE


def test_the_page_is_what_the_library_says():
    assert PAGE.path.read_text() == PAGE.text()


def test_the_picture_shows_every_run_twice():
    drawn = [len(mark.xs) for panel in PAGE.view().panels for mark in panel.marks if hasattr(mark, "labels")]
    assert sum(drawn) == 2 * len(published.scores())
    assert PAGE.picture.read_text().startswith("<?xml")


def test_its_example_predicts_what_was_published_to_a_tenth():
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.path.read_text(), re.S)
    said: dict[str, training.Step] = {}
    exec(example, said)
    assert abs(said["step"].total_s / 14.67 - 1) < 0.1  # dgxc-llama3-70b on 512 H100, release 25.04.02


def test_what_goes_with_the_errors_of_ratios():
    assert 0.005 < training_ratios.per_doubling() < 0.015  # steps grow with the chips, and predictions do not
    crowded = training_ratios.crowded()
    assert len(crowded) > 50
    assert abs(mean(one.error for one in crowded)) < 0.01  # a full memory is no reason
