"""What a person sees, to the letter.

`PYTHONPATH=. python tests/cli/test_cli_screens.py` writes them anew; read them before they are committed.
"""

import contextlib
import io
import os
import re
from pathlib import Path

import pytest

from scalingbook_lib import cli

FIGURE = re.compile(r"(?<= )[0-9.]+(?=\s)")
FOLDER = Path(__file__).with_name("screens")
SCREENS = {
    "help": "",
    "help_model": "model --help",
    "help_roofline": "roofline --help",
    "help_collective": "collective --help",
    "help_plan": "plan --help",
    "help_chips": "chips -h",
    "help_completion": "completion --help",
    "chips": "chips",
    "model": "model mixtral-8x7b --sequence 4096 --tokens 1T",
    "roofline": "roofline v5e --matmul 64x8192x8192 --explain",
    "collective_torus": "collective all-to-all 2GiB v5p:4x4x8 --explain",
    "collective_cluster": "collective all-reduce 16M h100:1024 --mesh X=8,Y=128 --over XY --explain",
}


def screen(line):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert cli.main(line.split()) == 0
    return "".join(f"{row.rstrip()}\n" for row in out.getvalue().splitlines())


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_as_it_was_read(name):
    assert screen(SCREENS[name]) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_fits_100_columns(name):
    assert max(map(len, screen(SCREENS[name]).splitlines())) <= 100


def test_every_screen_belongs_to_a_command():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(SCREENS)


def test_a_narrow_terminal_loses_no_figure(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    narrow = screen("chips")
    assert max(map(len, narrow.splitlines())) <= 80
    wide = (FOLDER / "chips.txt").read_text(encoding="utf-8")
    assert set(FIGURE.findall(wide)) <= set(FIGURE.findall(narrow))


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    FOLDER.mkdir(exist_ok=True)
    for name, line in SCREENS.items():
        (FOLDER / f"{name}.txt").write_text(screen(line), encoding="utf-8")
