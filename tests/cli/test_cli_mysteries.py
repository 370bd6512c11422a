"""The commands find the faults of the mysteries and print what their checks ask for."""

import pytest

from scalingbook_book.chapters import checks
from scalingbook_book.chapters.profiling.checks import mysteries as asked
from tools.environment import ROOT

FOLDER = ROOT / "data" / "mysteries"


def test_the_command_inspect_prints_the_replicated_state(ask):
    told = ask("inspect --json", str(FOLDER / "tight-memory.hlo.gz")).values
    assert told["findings"][0]["rule"] == "replicated state"
    assert told["findings"][0]["saved_bytes"] == checks.find("profiling.mystery-memory").answer()


def test_the_command_profile_names_what_the_device_waits_for(ask):
    told = ask("profile --json", str(FOLDER / "idle-chip.json")).values
    assert told["levers"][0]["rule"] == "waiting for the host"
    assert "during 'next batch'" in told["levers"][0]["message"]


def test_the_command_launch_suggests_the_flag_and_predicts_what_the_check_says(ask):
    told = ask("launch --machine v5p:4x4x4 --json", str(FOLDER / "long-context.sh")).values
    change = told["changes"][0]
    assert "context_parallel_load_balance" in str(change)
    predicted = [asked.context_step_s(balanced) for balanced in (False, True)]
    assert told["step_time_s"] == pytest.approx(predicted[0])
    assert change["step_time_s"] == pytest.approx(predicted[1])
