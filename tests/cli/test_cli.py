"""The command line says what the library says."""

import json

import pytest

from scalingbook_lib import cli


def test_a_model_is_counted(capsys):
    assert cli.main(["model", "llama-3-70b", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"]["total"] == 70_553_706_496


@pytest.mark.parametrize("line", ["model nothing", "roofline v5e", "collective all-gather 1 v5e", "nothing"])
def test_bad_input_is_one_sentence(capsys, line):
    assert cli.main(line.split()) == 2
    told = capsys.readouterr()
    assert not told.out
    assert len(told.err.splitlines()) == 1
