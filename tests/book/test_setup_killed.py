"""Whatever interrupts a set-up, what worked still works, and of two at once one waits."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.book.set_ups import WORKS, a_folder, change, end, environment, kept, log, put, said, set_up, start

# Runs the set-up and kills it at its first line, or after so many of the changes that it makes on the disk.
KILLED = """
import importlib.util, os, signal, sys
from pathlib import Path
changes, file, *arguments = sys.argv[1:]
spec = importlib.util.spec_from_file_location("set_up", file)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
states = []
def trace(frame, event, _):
    if frame.f_code.co_filename != file:
        return None
    paths = sorted([module.VENV, *module.VENVS.rglob("*")])
    state = [(path, path.lstat().st_ino, path.lstat().st_mtime_ns) for path in paths if os.path.lexists(path)]
    if state not in states[-1:]:
        states.append(state)
    if len(states) > int(changes):
        os.kill(os.getpid(), signal.SIGKILL)
    return trace
sys.settrace(trace)
module.main(*arguments)
"""


# --- What can go wrong? ---


@pytest.mark.parametrize("name", ["INT", "TERM", "KILL"])
def test_an_interrupted_set_up_that_had_nothing_to_do_destroys_nothing(standing, name):
    python = standing / ".venv/bin/python"
    put(python, f"#!/bin/sh\nkill -{name} 0\n")
    assert set_up(standing).returncode != 0
    put(python, WORKS)
    assert environment(standing) == ".venvs/1"


def killed(project, changes):
    """Was a set-up killed after so many changes, or does it make fewer?"""
    command = (sys.executable, "-ISBc", KILLED, str(changes), str(project / "tools/set_up.py"), "test")
    done = set_up(project, layer=None, command=(*command, str(project.parent / "bin/python3")))
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def test_killed_after_any_of_its_changes_it_leaves_the_environment_of_before(standing):
    changes, before = 0, change(standing, "# 0")
    while killed(standing, changes):
        (standing / "uv.lock").write_text(before)
        assert environment(standing) == ".venvs/1", f"killed after {changes} changes"
        changes += 1
        (standing / "uv.lock").write_text(f"{before}# {changes}\n")
    assert changes > 10
    assert kept(standing) == ["1", Path(environment(standing)).name]


def test_a_folder_gives_way_to_a_link_whenever_that_is_killed(standing):
    """It takes two steps; a kill between them is mended by the next run."""
    change(standing)
    set_up(standing)  # what is asked for stands beside: what remains to be killed is the switch
    folder, changes = a_folder(standing), 0
    while killed(standing, changes):
        assert folder.is_dir() or (standing / ".venvs/0/bin/python").exists()
        changes += 1
    assert changes > 3
    assert environment(standing) == ".venvs/2"


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_interrupted_it_removes_what_it_began(standing, name):
    before = change(standing)
    done = set_up(standing, uv=f"kill -{name} $PPID; exit 1")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, "==> interrupted")
    assert kept(standing) == ["1"]
    (standing / "uv.lock").write_text(before)
    assert environment(standing) == ".venvs/1"


def test_what_was_half_built_is_built_anew(standing):
    change(standing)
    assert set_up(standing, uv="kill -9 $PPID $$").returncode == -signal.SIGKILL
    assert kept(standing) == ["1", "2"]
    assert set_up(standing).returncode == 0
    assert environment(standing) == ".venvs/2"


@pytest.fixture
def gate(standing):
    """What `uv` waits at until the test opens it."""
    os.mkfifo(standing / "gate")
    file = os.open(standing / "gate", os.O_RDWR)
    yield lambda: os.write(file, b"open\n")
    os.write(file, b"open\n")  # nothing waits for ever where a test has failed
    os.close(file)


def test_of_two_at_once_one_waits_and_finds_nothing_to_do(standing, gate):
    change(standing)
    one = start(standing, uv="read line <gate")
    said(one, "==> installing")
    other = start(standing)
    said(other, "==> waiting for another set-up")
    gate()
    first, second = end(one), end(other)
    assert (first.returncode, second.returncode, second.stderr) == (0, 0, "")
    assert [line.split(" --")[0] for line in log(standing)] == ["made", "uv sync"]


def test_what_a_killed_set_up_began_is_waited_for(standing, gate):
    """A kill does not reach its uv, which goes on writing."""
    change(standing)
    assert set_up(standing, uv="kill -9 $PPID; exec >&- 2>&-; read line <gate").returncode == -signal.SIGKILL
    other = start(standing)
    said(other, "==> waiting for another set-up")
    gate()
    assert end(other).returncode == 0
    assert environment(standing) == ".venvs/2"
    assert kept(standing) == ["1", "2"]
