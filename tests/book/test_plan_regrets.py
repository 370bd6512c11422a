"""The recorded regrets of published plans are what the tool finds, and obey the law of the accuracy page."""

import csv
import io

from scalingbook_lib.calibrated.pessimistic import OUTSIDE
from scalingbook_lib.evidence.training import regret
from tools import plan_regrets
from tools.published import csv_text

QUESTIONS = regret.questions()


def test_the_recorded_regrets_of_published_plans_are_what_the_tool_finds_and_small():
    """One in 24 of the questions is asked again."""
    found = regret.regrets(QUESTIONS[::24])
    assert len(found.found) == len(QUESTIONS[::24])
    recorded = {row["run"]: row for row in plan_regrets.recorded()}
    assert {run.id for run in QUESTIONS} >= recorded.keys()
    assert len(recorded) >= len(QUESTIONS) - 1  # one plan fits nowhere
    again = csv_text(plan_regrets.row(one) for one in found.found)
    assert [*csv.DictReader(io.StringIO(again))] == [recorded[one.run.id] for one in found.found]
    every = sorted(float(row["regret"]) for row in recorded.values())
    assert -0.1 < every[len(every) // 10] < every[len(every) // 2] < 0.1
    assert "regret of" in str(found)
    assert all("is predicted to take" in str(one) for one in found.found)


def test_every_recorded_plan_outside_the_published_range_is_10_percent_better():
    for row in plan_regrets.recorded():
        if row["outside"] and row["published_leaves_headroom"] == "yes":
            assert float(row["p80_ratio"]) > OUTSIDE
