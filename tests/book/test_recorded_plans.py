"""The records that searches for plans rest on are what their tools find today."""

import pytest

from tools import measured_plans, memory_margins


def test_the_recorded_memory_margins_are_what_the_tool_finds():
    assert memory_margins.FILE.read_text(encoding="utf-8") == memory_margins.frozen()


@pytest.mark.parametrize("name", ["measured_plans.json", "plan_spread.json"])
def test_the_recorded_plans_are_what_the_tool_finds(name):
    assert (measured_plans.FOLDER / name).read_text(encoding="utf-8") == measured_plans.frozen()[name]
