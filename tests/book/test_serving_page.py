"""Tests of the page on published serving runs: its statements and its example hold."""

import re

from scalingbook_lib import inference
from scalingbook_lib.evidence.measured.inference_runs import find
from tools.environment import ROOT
from tools.serving_page import score


def test_the_pages_example_is_predicted_within_10_percent():
    page = (ROOT / "serving-runs.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.S)
    said: dict[str, inference.InferenceStep] = {}
    exec(example, said)
    assert abs(100 / said["step"].total_s / find("inf-0094").tokens_per_s - 1) < 0.1


def test_statements_without_a_number_hold():
    """Statements of the page that contain no computed number."""
    half, whole = score("inf-0020"), score("inf-0019")
    assert round(half.run.tokens_per_s / whole.run.tokens_per_s, 2) == 1.48
    hopper = [
        find(h100).tokens_per_s / find(h200).tokens_per_s
        for h100, h200 in (("inf-0064", "inf-0055"), ("inf-0065", "inf-0056"), ("inf-0066", "inf-0057"))
    ]
    assert all(0.39 < ratio < 0.52 for ratio in hopper)
    for near in ("inf-0293", "inf-0313"):
        assert abs(score(near).error) < abs(score("inf-0303").error) / 1.5
    assert find("inf-0048").tokens_per_s < find("inf-0049").tokens_per_s
    assert find("inf-0038").tokens_per_s > find("inf-0039").tokens_per_s
