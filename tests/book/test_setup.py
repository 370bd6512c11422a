"""The set-up finds a Python where common tools put one, does its work once, and mends what a kill left."""

import os
import shutil
import subprocess

import pytest

from tools.environment import ROOT

TOOLS = ("sh cat cut dirname ls mkdir mv rm sed sha256sum shasum sleep tr grep ps kill cp chmod").split(" ")  # noqa: SIM905

WORKS = """#!/bin/sh
case "$*" in
  *"-m venv"*)
    mkdir -p .venv/bin && cp "$0" .venv/bin/python
    echo made >>log
    printf '#!/bin/sh\\n[ "$1" = --version ] || echo "uv $*" >>log\\n' >.venv/bin/uv
    chmod +x .venv/bin/uv ;;
  *) echo 3.12 ;;
esac
"""
BROKEN = "#!/bin/sh\necho 'pyenv: python3.12: command not found' >&2\nexit 127\n"


@pytest.fixture
def project(tmp_path):
    """The files that the set-up reads, and a PATH with no Python on it."""
    for name in ("tools/setup.sh", "uv.lock", "pyproject.toml", ".python-version"):
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "project" / name)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        if found := shutil.which(tool):
            (tmp_path / "bin" / tool).symlink_to(found)
    return tmp_path


def put(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)


def set_up(project, *path, layer="test"):
    paths = os.pathsep.join([*map(str, path), str(project / "bin")])
    return subprocess.run(
        [project / "project/tools/setup.sh", layer],
        env={"PATH": paths, "HOME": str(project / "home")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def log(project):
    return (project / "project/log").read_text().split("\n")[:-1]


def test_no_python_is_told_in_one_line_and_leaves_nothing(project):
    put(project / "bin/python3.12", BROKEN)
    done = set_up(project)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "set-up: no Python >= 3.12 with its venv module found (looked on PATH, in pyenv and in uv); "
        "install one, then run this again"
    ]
    assert not (project / "project/.venv").exists()
    assert not list((project / "project/.make").iterdir())


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
    put(project / "pyenv/shims/python3.12", BROKEN)
    put(project / place, WORKS)
    done = set_up(project, project / "pyenv/shims")
    assert done.returncode == 0, done.stderr
    assert f"making .venv with {project / place}" in done.stderr


def test_the_version_that_the_project_names_is_preferred(project):
    put(project / "bin/python3.13", WORKS)
    put(project / "home/.pyenv/versions/3.12.4/bin/python", WORKS)
    assert "versions/3.12.4" in set_up(project).stderr


def test_a_second_run_does_nothing_until_the_lock_changes(project):
    put(project / "bin/python3", WORKS)
    for _ in range(2):
        assert set_up(project).returncode == 0
    assert len(log(project)) == 2  # made once, synced once
    assert "sync --frozen --inexact" in log(project)[1]
    assert set_up(project, layer="book").returncode == 0
    assert len(log(project)) == 2  # the test layers hold the book's
    with (project / "project/uv.lock").open("a") as lock:
        lock.write("# changed\n")
    set_up(project)
    assert len(log(project)) == 3


def test_the_book_needs_no_jax(project):
    put(project / "bin/python3", WORKS)
    set_up(project, layer="book")
    assert "--extra viz --group site" in log(project)[1]
    assert "lab" not in log(project)[1]


def test_a_killed_set_up_is_started_afresh(project):
    put(project / "bin/python3", WORKS)
    lock = project / "project/.make/set-up.lock"
    lock.mkdir(parents=True)
    (lock / "pid").write_text(f"{os.getpid()}\n")  # alive, and no set-up: its number is used again
    put(project / "project/.venv/bin/python", WORKS)
    done = set_up(project)
    assert "interrupted" in done.stderr
    assert log(project)[0] == "made"
    assert not lock.exists()


def test_a_failed_sync_is_tried_again(project):
    put(project / "bin/python3", WORKS.replace('|| echo "uv', '|| exit 3 "uv'))
    assert set_up(project).returncode == 1
    assert set_up(project).returncode == 1
    put(project / "project/.venv/bin/uv", '#!/bin/sh\n[ "$1" = --version ] || echo "uv $*" >>log\n')
    assert set_up(project).returncode == 0


def test_an_unknown_layer_is_refused(project):
    assert "tools/setup.sh book" in set_up(project, layer="cellar").stderr
