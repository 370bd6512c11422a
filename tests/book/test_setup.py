"""The set-up finds a Python where common tools put one, brings the pinned uv, and leaves the rest to uv."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tools.environment import ROOT

TOOLS = ["sh", "cat", "cp", "dirname", "grep", "ls", "mkdir", "rm", "sed", "tr"]
FILES = ("tools/setup.sh", "uv.lock", ".python-version")

# A Python whose environments hold itself and, after pip, a uv: both write down what they are asked.
PYTHON = f"""#!/bin/sh
case "$*" in
  *"-m venv"*)
    mkdir -p .venv/bin && cp "$0" .venv/bin/python && echo "VIRTUAL_ENV='$PWD/.venv'" >.venv/bin/activate
    echo made >>log ;;
  *"-m pip"*)
    [ -z "${{OFFLINE:-}}" ] || exit 1
    echo pip >>log
    cp tools/uv .venv/bin/uv ;;
  *) exec '{os.path.realpath(sys.executable)}' -S "$@" ;;
esac
"""
UV = """#!/bin/sh
case "$*" in
  --version) exit 0 ;;
  *--check*) [ -x .venv/bin/python ] && [ "$(cat .venv/installed 2>/dev/null)" = "$(cat uv.lock)" ]; exit ;;
esac
echo "uv $*" >>log
[ -z "${OFFLINE:-}" ] || exit 2
cp uv.lock .venv/installed
"""
BROKEN = "#!/bin/sh\necho 'pyenv: python3.12: command not found' >&2\nexit 127\n"


def put(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)


@pytest.fixture
def project(tmp_path):
    """The files that the set-up reads, and a PATH with no Python on it."""
    for name in FILES:
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "project" / name)
    put(tmp_path / "project/tools/uv", UV)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        if found := shutil.which(tool):
            (tmp_path / "bin" / tool).symlink_to(found)
    return tmp_path / "project"


@pytest.fixture
def standing(project):
    """A project that is set up."""
    put(project.parent / "bin/python3", PYTHON)
    assert set_up(project).returncode == 0
    (project / "log").unlink()
    return project


def set_up(project, *path, layer="test", **variables):
    home = project.parent
    environment = {"PATH": os.pathsep.join(map(str, (*path, home / "bin"))), "HOME": str(home / "home")}
    return subprocess.run(
        ["tools/setup.sh", layer], cwd=project, env=environment | variables, capture_output=True, text=True
    )


def log(project):
    """What Python, pip and uv were asked to do."""
    return (project / "log").read_text().splitlines() if (project / "log").exists() else []


def test_without_a_python_one_line_says_so_and_nothing_is_written(project):
    put(project.parent / "bin/python3.12", BROKEN)
    before = sorted(project.rglob("*"))
    done = set_up(project)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "set-up: no Python >= 3.12 with its venv module found (looked on PATH, in pyenv and in uv); "
        "install one, then run this again"
    ]
    assert sorted(project.rglob("*")) == before


@pytest.mark.parametrize(
    "place",
    [
        "bin/python3",
        "bin/python3.13",
        "home/.pyenv/versions/3.12.4/bin/python",
        "pyenv/versions/3.13.0/bin/python",
        "home/.local/share/uv/python/cpython-3.12.9-linux-x86_64-gnu/bin/python3",
    ],
)
def test_a_python_is_found_behind_a_shim_that_fails(project, place):
    home = project.parent
    put(home / "pyenv/shims/python3.12", BROKEN)
    put(home / place, PYTHON)
    done = set_up(project, home / "pyenv/shims")
    assert done.returncode == 0, done.stderr
    assert f"making .venv with {home / place}" in done.stderr


def test_the_version_that_the_project_names_is_preferred(project):
    put(project.parent / "bin/python3.13", PYTHON)
    put(project.parent / "home/.pyenv/versions/3.12.4/bin/python", PYTHON)
    assert "versions/3.12.4" in set_up(project).stderr


def test_a_second_run_says_and_does_nothing_until_the_lock_changes(project):
    put(project.parent / "bin/python3", PYTHON)
    assert set_up(project).returncode == 0
    assert [line.split(" --")[0] for line in log(project)] == ["made", "pip", "uv sync"]
    pinned = (project / ".venv/uv.txt").read_text()
    assert re.fullmatch(r"uv==\d[\d.]+( --hash=sha256:[0-9a-f]{64}){9,}\n", pinned)
    done = set_up(project, OFFLINE="yes")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with (project / "uv.lock").open("a") as lock:
        lock.write("# changed\n")
    assert set_up(project).returncode == 0
    assert [line.split(" --")[0] for line in log(project)][3:] == ["uv sync"]


def test_the_book_needs_no_jax_and_no_layer_takes_another_away(standing):
    (standing / ".venv/installed").unlink()
    set_up(standing, layer="book")
    assert "sync --frozen --inexact" in log(standing)[-1]
    assert log(standing)[-1].endswith("--extra book --extra cli --group site")
    (standing / ".venv/installed").unlink()
    set_up(standing)
    assert log(standing)[-1].endswith("--all-extras --all-groups")


@pytest.mark.parametrize("lost", [".venv/bin/python", ".venv/bin/uv"])
def test_an_environment_that_lost_its_python_or_its_uv_is_made_anew(standing, lost):
    (standing / lost).unlink()
    assert set_up(standing).returncode == 0
    assert [line.split(" --")[0] for line in log(standing)] == ["made", "pip", "uv sync"]


def test_a_tree_that_was_moved_gets_a_new_environment(standing):
    moved = standing.rename(standing.parent / "elsewhere, später")
    assert set_up(moved).returncode == 0
    assert log(moved)[0] == "made"
    assert (moved / ".venv/bin/activate").read_text() == f"VIRTUAL_ENV='{moved}/.venv'\n"


def test_what_fails_without_a_network_is_told_and_tried_again(standing):
    (standing / ".venv/installed").unlink()
    done = set_up(standing, OFFLINE="yes")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1,
        "set-up: uv could not install what uv.lock pins; its message is above",
    )
    (standing / ".venv/bin/uv").unlink()
    done = set_up(standing, OFFLINE="yes")
    assert "pip could not install the uv that uv.lock pins from a package index" in done.stderr
    assert set_up(standing).returncode == 0


def test_an_unknown_layer_is_refused(project):
    assert "tools/setup.sh book" in set_up(project, layer="cellar").stderr
