"""The set-up finds a Python where common tools put one, does its work once, and never destroys what works."""

import re
from pathlib import Path

import pytest

from tests.book.set_ups import BROKEN, OFFLINE, WORKS, a_folder, change, environment, kept, log, put, set_up

# --- Which Python? ---


def test_no_python_is_told_in_one_line_and_leaves_nothing(project):
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
    put(home / place, WORKS)
    done = set_up(project, home / "pyenv/shims")
    assert done.returncode == 0, done.stderr
    assert f"making .venv with {home / place}" in done.stderr


def test_the_version_that_the_project_names_is_preferred(project):
    put(project.parent / "bin/python3.13", WORKS)
    put(project.parent / "home/.pyenv/versions/3.12.4/bin/python", WORKS)
    assert "versions/3.12.4" in set_up(project).stderr


# --- What is there to do? ---


def test_a_second_run_does_nothing_until_the_lock_changes(project):
    put(project.parent / "bin/python3", WORKS)
    assert set_up(project).returncode == 0
    before = {path: path.lstat() for path in (project, *project.rglob("*"))}
    for layer in ("test", "book"):  # the test layers hold the book's
        done = set_up(project, layer=layer)
        assert (done.returncode, done.stderr) == (0, "")
    after = {path: path.lstat() for path in (project, *project.rglob("*"))}
    assert after.keys() == before.keys()
    assert all(after[path].st_mtime_ns == before[path].st_mtime_ns for path in before), "it writes nothing"
    assert [line.split(" --")[0] for line in log(project)] == ["made", "pip", "uv sync"]
    assert "sync --frozen --inexact" in log(project)[2]
    assert re.fullmatch(
        r"uv==\d[\d.]+( --hash=sha256:[0-9a-f]{64}){9,}", (project / ".venv/uv.txt").read_text()
    )
    change(project)
    set_up(project)
    assert [line.split(" --")[0] for line in log(project)][3:] == ["made", "uv sync"]


def test_of_pyproject_only_what_is_installed_counts(standing):
    settings = standing / "pyproject.toml"
    settings.write_text(settings.read_text().replace("line-length = 110", "line-length = 111"))
    assert environment(standing) == ".venvs/1"
    settings.write_text(settings.read_text().replace('version = "0.1.0"', 'version = "0.2.0"'))
    set_up(standing)
    assert environment(standing) == ".venvs/2"
    settings.write_text("[project")
    done = set_up(standing)
    assert done.returncode == 1
    assert done.stderr.startswith("set-up: pyproject.toml cannot be read: ")
    assert len(done.stderr.splitlines()) == 1


def test_the_book_needs_no_jax_and_takes_none_away(project):
    put(project.parent / "bin/python3", WORKS)
    set_up(project, layer="book")
    assert "--extra viz --extra cli --group site" in log(project)[-1]
    assert "lab" not in log(project)[-1]
    set_up(project)
    assert "--all-extras --all-groups" in log(project)[-1]
    change(project)
    set_up(project, layer="book")
    assert "--all-extras --all-groups" in log(project)[-1]


@pytest.mark.parametrize("lost", [".venv/bin/python", ".venv/bin/uv", ".venv"])
def test_an_environment_that_lost_its_python_or_its_uv_or_was_removed_is_made_anew(standing, lost):
    (standing / lost).unlink()
    assert set_up(standing).returncode == 0
    assert environment(standing) == ".venvs/2"


def test_a_tree_that_was_moved_is_set_up_anew(standing):
    moved = standing.rename(standing.parent / "elsewhere, später")
    assert set_up(moved).returncode == 0
    assert environment(moved) == ".venvs/2"
    assert (moved / ".venv/bin/activate").read_text() == f"VIRTUAL_ENV='{moved}/.venv'\n"


def test_a_lock_that_comes_back_finds_its_environment(standing):
    before = change(standing)
    set_up(standing)
    assert environment(standing) == ".venvs/2"
    (standing / "uv.lock").write_text(before)
    assert environment(standing) == ".venvs/1"
    change(standing, "# changed otherwise")
    set_up(standing)
    assert (environment(standing), kept(standing)) == (".venvs/3", ["1", "3"])


def test_an_unknown_layer_is_refused(project):
    assert "tools/setup.sh book" in set_up(project, layer="cellar").stderr


@pytest.mark.parametrize("made_by", ["a set-up", "the reader"])
def test_what_was_a_folder_stays_until_the_next_switch_or_for_good(standing, made_by):
    folder = a_folder(standing)
    if made_by == "a set-up":
        (folder / ".set-up-book").write_text("earlier")
    done = set_up(standing)
    assert done.stderr == "==> keeping what was .venv as .venvs/0\n"
    assert kept(standing) == ["0", "1"]
    change(standing)
    set_up(standing)
    assert kept(standing) == (["1", "2"] if made_by == "a set-up" else ["0", "1", "2"])


def test_a_failed_sync_leaves_all_as_it_was_and_is_tried_again(standing):
    change(standing)
    done = set_up(standing, **OFFLINE)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("set-up: uv could not install what uv.lock pins; its message is above; ")
    assert last.endswith("; .venv is as it was")
    assert kept(standing) == ["1"]
    assert set_up(standing).returncode == 0
    assert environment(standing) == ".venvs/2"


def test_the_first_set_up_without_an_index_says_so(project):
    put(project.parent / "bin/python3", WORKS)
    done = set_up(project, **OFFLINE)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "set-up: pip could not install the uv that uv.lock pins from a package index; "
    )
    assert not (project / ".venv").exists()
    assert kept(project) == []


@pytest.mark.parametrize("blocked", [".venvs", "lock", "full"])
def test_what_cannot_be_written_is_said_in_one_sentence(standing, blocked):
    """Permissions do not bind root, and a full disk is not at hand: other things stand in the way."""
    uv, why = "", "Is a directory"
    if blocked == ".venvs":
        (standing / ".venvs").rename(standing / "elsewhere")
        (standing / ".venvs").touch()
        why = "File exists"
    elif blocked == "lock":
        (standing / ".venvs/lock").unlink()
        (standing / ".venvs/lock").mkdir()
        assert environment(standing) == ".venvs/1", "where there is nothing to do, nothing is written"
    else:
        uv = 'ln -s /dev/full "$UV_PROJECT_ENVIRONMENT/.set-up-book"'
        why = "No space left on device" if Path("/dev/full").exists() else ""
    change(standing)
    done = set_up(standing, uv=uv)
    assert done.returncode == 1
    *steps, last = done.stderr.splitlines()
    assert last.startswith(f"set-up: {standing}/.venvs")
    assert last.endswith(f"{why}; .venv is as it was")
    assert all(step.startswith("==> ") for step in steps), "no traceback"


def test_what_make_keeps_for_itself_is_no_concern(standing):
    (standing / ".make").touch()  # the lock and the marks were there
    change(standing)
    assert set_up(standing).returncode == 0
    (standing / ".make").unlink()
    (standing / ".make/set-up.interrupted").mkdir(parents=True)
    assert environment(standing) == ".venvs/2"
