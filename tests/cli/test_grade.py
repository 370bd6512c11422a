"""Readers' notebooks are graded: what is right counts, and whatever a file is or does, a sentence says so."""

import csv
import json
import os
from functools import partial
from pathlib import Path

import pytest

from scalingbook_book.chapters import checks
from scalingbook_book.code_exercises import grade

KEYS = ("intro.compute-time", "intro.read-weights", "intro.cache-size")
RIGHT = [checks.find(key).answer() for key in KEYS]
FIND = "from scalingbook_book.chapters import checks"


def check(key, answer):
    return f'checks.find("{key}")({answer})'


RIGHTLY = check(KEYS[0], repr(RIGHT[0]))
PROGRAM = "jax.shard-means"


def written(path: Path, *cells):
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in (FIND, *cells)]
    path.write_text(
        json.dumps({"nbformat": 4, "cells": [{"cell_type": "markdown", "source": "# Hi"}, *code]})
    )
    return path


@pytest.fixture
def graded(tmp_path):
    def one(*cells, seconds=60.0, gib=16.0):
        path = written(tmp_path / "mine.ipynb", *cells)
        (found,) = grade.folder(path, seconds=seconds, gib=gib)
        return found, {exercise.key: exercise for exercise in found.exercises}

    return one


def test_what_is_right_counts_and_a_cell_that_fails_stops_no_other(graded):
    cells = (
        f"%matplotlib inline\n%time x = 3\n{RIGHTLY}",
        "import sys\nsys.exit(3)",
        check(KEYS[1], "1e9"),
        f"answer = 1 / 0\n{check(KEYS[2], 'answer')}",
        check("intro.network-card", "..."),
        "display('x')\nget_ipython()\n!ls",
        check("intro.strong-or-weak", repr(checks.find("intro.strong-or-weak").answer())),
    )
    found, each = graded(*cells)
    assert not found.problem
    assert (found.solved, len(found.exercises)) == (2, len(checks.catalog("intro")))
    assert each[KEYS[0]].status == each["intro.strong-or-weak"].status == "right"
    assert each[KEYS[1]].status == "wrong"
    assert each[KEYS[2]].says == "ZeroDivisionError: division by zero"
    assert each["intro.network-card"].status == "open"
    assert each["intro.training-days"].says == "not in this notebook"


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("while True: pass", "cell 3 of 4 ran longer than 4 s; the cells after it did not run"),
        ("import os\nos._exit(0)", "cell 3 of 4 ended Python (exit code 0); the cells"),
        ("import os\nos.kill(os.getpid(), 9)", "cell 3 of 4 ended Python (exit code -9)"),
        ("import os, time\nif os.fork(): time.sleep(60)", "ran longer than 4 s"),
    ],
)
def test_what_ends_a_notebook_is_said_and_what_came_before_counts(graded, cell, says):
    if "fork" in cell and not hasattr(os, "fork"):
        pytest.skip("nothing forks here")
    found, each = graded(RIGHTLY, cell, check(KEYS[1], RIGHT[1]), seconds=4.0)
    assert says in found.problem
    assert each[KEYS[0]].status == "right"
    assert (each[KEYS[1]].status, each[KEYS[1]].says) == ("unchecked", found.problem)


def test_memory_and_output_are_bounded(graded):
    pytest.importorskip("resource")
    cells = "x = bytearray(3 * 2**30)", "print('x' * 2**20 * 9)", "open('x', 'w')", RIGHTLY
    found, each = graded(*cells, check(KEYS[1], "len(x)"), gib=2.0)
    assert not found.problem
    assert each[KEYS[0]].status == "right"
    assert each[KEYS[1]].says == "NameError: name 'x' is not defined"


@pytest.mark.parametrize(
    "cell",
    [
        f"from scalingbook_book.reader.checks.check import Check\nCheck('{KEYS[0]}', '', lambda: 1)(1)",
        "from scalingbook_book.reader.checks.check import Check\nCheck.__call__ = lambda *_: True",
        check(KEYS[0], f"checks.find('{KEYS[0]}').answer()"),
        "import glob\nfor f in glob.glob('../*'):\n  open(f, 'a').write('x [\"given\", \""
        + KEYS[0]
        + "\", 1]\\n')",
    ],
)
def test_what_a_cell_says_of_itself_does_not_count(graded, cell):
    found, _ = graded(check(KEYS[0], "7e9"), cell)
    assert found.solved == 0


@pytest.mark.parametrize(
    "answer",
    ["'solved in the notebook'", "programs.right({})", f"checks.find({PROGRAM!r})"],
)
def test_a_verdict_that_no_judge_made_does_not_count(graded, answer):
    _, each = graded("from scalingbook_book.reader.checks import programs", check(PROGRAM, answer))
    assert each[PROGRAM].status != "right"


def test_a_folder_is_told_as_a_table_as_csv_and_as_json(ask, tmp_path):
    work = tmp_path / "work"
    (work / "ann").mkdir(parents=True)
    written(work / "ann" / "intro.ipynb", RIGHTLY)
    hostile = {
        "=cmd\x1b[2J.ipynb": b"\xff\x00 no JSON",
        "deep.ipynb": b"[" * 200_000,
        "list.ipynb": b"[1, 2]",
        "cells.ipynb": b'{"cells": [1, {"cell_type": "code", "source": [3, {}]}, {"cell_type": "code"}]}',
        "empty.ipynb": b"",
    }
    for name, held in hostile.items():
        (work / name).write_bytes(held)
    (work / "folder.ipynb").mkdir()
    (work / "nowhere.ipynb").symlink_to(work / "none")
    told = ask("grade --csv", str(tmp_path / "out.csv"), str(work))
    assert told.code == 0
    assert "1/15" in told.out
    assert "\x1b" not in told.out
    rows = list(csv.DictReader((tmp_path / "out.csv").open(encoding="utf-8")))
    assert [row["status"] for row in rows].count("right") == 1
    said = {row["notebook"]: row["says"] for row in rows if not row["exercise"]}
    assert said.pop("'=cmd\\x1b[2J.ipynb").startswith("it cannot be read: ")
    assert said["list.ipynb"].startswith("it cannot be read: it is not a notebook of format 4")
    assert said["cells.ipynb"].startswith("it cannot be read: it does not check any exercise of the book")
    assert (
        said["folder.ipynb"]
        == said["nowhere.ipynb"]
        == "it cannot be read: it is not a file of at most 67,108,864 bytes; clear its outputs"
    )
    assert len(said) == len(hostile) + 1
    values = ask("grade --json", str(work / "ann")).values["notebooks"]
    assert [(one["name"], one["solved"], len(one["exercises"])) for one in values] == [("intro.ipynb", 1, 15)]


def test_a_record_that_no_check_wrote_ends_no_grading(graded, monkeypatch):
    monkeypatch.setattr(grade.secrets, "token_hex", lambda n: "0" * n)
    found, _ = graded(
        "import glob\nfor f in glob.glob('../0*'):\n  open(f, 'a').write('0' * 16 + ' [[\\n')", RIGHTLY
    )
    assert found.solved == 0
    assert "it cannot be read" in found.problem


def test_a_folder_without_notebooks_is_a_question_that_cannot_be_read(ask, tmp_path):
    told = partial(ask, "grade")
    assert "contains no notebooks; name a folder" in told(str(tmp_path)).err
    assert told(str(tmp_path)).code == told(str(tmp_path / "none")).code == 2
