"""The looks of `tools/mysteries/looks.toml` find every fault, and nothing where the file has no fault."""

import contextlib
import io
import re
import shlex
import subprocess
import tomllib
from statistics import mean, median

import pytest

import scalingbook_cli as cli
from scalingbook_book import mysteries
from scalingbook_book.chapters import checks
from scalingbook_book.chapters.profiling.checks import mysteries as asked
from scalingbook_lib import inspection, profiles
from scalingbook_lib.steps import expert_load
from scalingbook_lib.units import percent, si
from tools.environment import ROOT
from tools.mysteries import FOLDER, HEALTHY, LOOKS

SOLVED = {one["file"]: one for one in tomllib.loads(LOOKS.read_text(encoding="utf-8"))["mystery"]}
NAMES = {
    "expert_load": expert_load,
    "inspection": inspection,
    "mean": mean,
    "median": median,
    "mysteries": mysteries,
    "percent": percent,
    "profiles": profiles,
    "re": re,
    "si": si,
}  # what the solutions import
SHELL = ("cut ", "grep ", "sort ")


def seen(looks, folder, monkeypatch):
    """What each look prints in a folder of mysteries."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(mysteries, "FOLDERS", (folder,))
    monkeypatch.setenv("COLUMNS", "400")  # no sentence is wrapped
    names = dict(NAMES)
    for look in looks:
        told = io.StringIO()
        if look.startswith("scalingbook "):
            with contextlib.redirect_stdout(told):
                assert cli.main(shlex.split(look)[1:]) == 0
        elif look.startswith(SHELL):
            run = subprocess.run(["bash", "-c", look], capture_output=True, text=True, check=True)
            told.write(run.stdout)
        else:
            with contextlib.redirect_stdout(told):
                exec(compile(look, "look", "exec"), names)
        yield told.getvalue()


def test_every_mystery_is_solved_in_at_most_five_looks():
    assert set(SOLVED) == set(mysteries.names()) == {path.name for path in HEALTHY.iterdir()}
    assert {one["check"] for one in SOLVED.values()} == {check.key for check in asked.MYSTERIES}
    for one in SOLVED.values():
        assert 1 <= len(one["looks"]) <= 5
        assert all(len(look.strip().splitlines()) <= 3 for look in one["looks"])


@pytest.mark.parametrize("name", SOLVED)
def test_the_last_look_reveals_the_fault(name, monkeypatch):
    one = SOLVED[name]
    told = [*seen(one["looks"], FOLDER, monkeypatch)]
    assert all(told)
    assert one["reveals"] in told[-1]


@pytest.mark.parametrize("name", SOLVED)
def test_the_file_without_its_fault_does_not_show_it(name, monkeypatch):
    one = SOLVED[name]
    told = [*seen(one["looks"], HEALTHY, monkeypatch)]
    assert told[-1]
    assert one["reveals"] not in "".join(told)
    assert (HEALTHY / name).read_bytes() != (FOLDER / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("tight-memory.hlo.gz", "replicated state"),
        ("eight-nodes.hlo.gz", "axis across nodes"),
        ("one-layer.hlo.gz", "padded matmuls"),
        ("twelve-layers.hlo.gz", "calls to the host"),
    ],
)
def test_the_inspector_does_not_find_the_fault_of_a_program_without_it(name, rule, monkeypatch):
    monkeypatch.setattr(mysteries, "FOLDERS", (HEALTHY,))
    assert rule not in [one.rule for one in inspection.inspect(mysteries.text(name)).findings]


@pytest.mark.parametrize("name", SOLVED)
def test_the_solution_shows_the_looks(name):
    page = (ROOT / "solutions" / "profiling.md").read_text(encoding="utf-8")
    sections = page.split('+++ {"exercise": "')
    shown = next(part for part in sections if part.startswith(f'{SOLVED[name]["check"]}"'))
    for look in SOLVED[name]["looks"]:
        assert look.strip() in shown


def test_the_answers_follow_from_what_the_last_looks_show():
    """The figures that `reveals` rounds are the answers of the checks, or lead to them."""
    answers = {key.rpartition("-")[2]: checks.find(key).answer() for key in (c.key for c in asked.MYSTERIES)}
    assert answers["loss"] == asked.TOKENS / asked.DATA  # one batch of eight
    assert si(answers["idle"], "s") == "15.5 ms"
    assert round(answers["compiler"], 1) == 74.8
    assert round(asked.SLOW_RING_MS) == 152
    assert round(max(asked.BUSIEST), 1) == 5.3
    assert percent(answers["layer"]) == "34%"
    assert answers["twelve"] == 96
