"""The page on profiles shows what the command line and a notebook print for the recorded profile."""

import contextlib
import io
import re
import shlex
import shutil

import pytest

import scalingbook_cli as cli
from scalingbook_lib import inspection
from tools.environment import ROOT

PAGE = (ROOT / "profile.md").read_text(encoding="utf-8")
H100 = ROOT / "tests" / "core" / "profiles" / "h100"
BLOCKS = re.findall(r"^```(sh|text|python)\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files of the page, to run its commands in."""
    for name in ("layer.xplane.pb.gz", "layer.hlo.gz"):
        shutil.copy(H100 / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "92")
    return tmp_path


def test_the_page_shows_what_is_printed(folder):
    (command,) = [text for kind, text in BLOCKS if kind == "sh"]
    with contextlib.redirect_stdout(io.StringIO()) as told:
        assert cli.main(shlex.split(command)[1:]) == 0
    printed = "\n".join(row.rstrip() for row in told.getvalue().splitlines())
    shown = [text for kind, text in BLOCKS if kind == "text"]
    assert len(shown) == 4
    assert all(text in printed for text in shown)


def test_the_three_lines_of_a_notebook_work(folder):
    *lines, last = [text for kind, text in BLOCKS if kind == "python"][-1].splitlines()
    names = {}
    exec("\n".join(lines), names)
    found = eval(last, names)
    assert str(found).startswith("3 steps of 2.87 ms on 1 × NVIDIA H100")


def test_what_the_text_says_of_the_example_is_true(folder):
    report = inspection.profile("layer.xplane.pb.gz")
    assert len(report.steps) == 3
    assert report.mean.host == "PjitFunction(jit(layer))"
    words = " ".join(PAGE.split())
    assert f"computes for {report.mean.compute_s / report.step_s:.0%} of a step" in words


@pytest.mark.parametrize("limit", ["--max-exposed 10%", "--max-idle 2ms"])
def test_the_limits_of_the_page_are_options(folder, limit):
    assert f"`{limit}`" in PAGE
    with contextlib.redirect_stdout(io.StringIO()):
        assert cli.main(["profile", "layer.xplane.pb.gz", *limit.split()]) == 0
        assert cli.main(["profile", "layer.xplane.pb.gz", "--max-idle", "1us"]) == cli.LIMIT_EXCEEDED
