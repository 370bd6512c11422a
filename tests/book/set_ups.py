"""A project to set up: a Python and a uv that only tell what they were asked, and what came of it."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from tools.environment import ROOT

TOOLS = ["sh", "cat", "cp", "dirname", "ln", "ls", "mkdir", "sed", "tr"]
FILES = ("tools/setup.sh", "tools/set_up.py", "uv.lock", "pyproject.toml", ".python-version")

# A Python whose environments hold itself and a uv; `$pip` and `$uv` are what those two are to do first.
WORKS = f"""#!/bin/sh
case "$*" in
  *"-m venv"*)
    for new; do :; done
    mkdir -p "$new/bin" && cp "$0" "$new/bin/python" && echo "VIRTUAL_ENV='$new'" >"$new/bin/activate"
    echo made >>log ;;
  *"-m pip"*)
    eval "${{pip:-}}"
    echo pip >>log
    cp tools/uv "${{0%/*}}/uv" ;;
  *) exec '{os.path.realpath(sys.executable)}' -S "$@" ;;
esac
"""
UV = """#!/bin/sh
[ "$1" != --version ] || exit 0
echo "uv $*" >>log
eval "${uv:-}"
cp uv.lock "$UV_PROJECT_ENVIRONMENT/installed"
"""
OFFLINE = {"pip": "exit 1", "uv": "exit 2"}
BROKEN = "#!/bin/sh\necho 'pyenv: python3.12: command not found' >&2\nexit 127\n"


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
    put(project.parent / "bin/python3", WORKS)
    assert set_up(project).returncode == 0
    (project / "log").unlink()
    return project


def put(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)


def start(project, *path, layer="test", command=("tools/setup.sh",), **does):
    home = project.parent
    paths = os.pathsep.join([*map(str, path), str(home / "bin")])
    return subprocess.Popen(
        [*command, layer] if layer else command,
        cwd=project,
        env={"PATH": paths, "HOME": str(home / "home"), **does},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )


def end(process):
    said = process.communicate(timeout=120)[1]
    return subprocess.CompletedProcess(process.args, process.returncode, stderr=said)


def set_up(project, *path, **options):
    return end(start(project, *path, **options))


def log(project):
    return (project / "log").read_text().split("\n")[:-1] if (project / "log").exists() else []


def change(project, line="# changed"):
    """Change the lock; what it was."""
    before = (project / "uv.lock").read_text()
    (project / "uv.lock").write_text(f"{before}{line}\n")
    return before


def environment(project):
    """Which environment .venv is, after a run that fetches nothing and finds in it what uv.lock says."""
    done = set_up(project, **OFFLINE)
    assert (done.returncode, done.stderr) == (0, "")
    assert (project / ".venv/installed").read_text() == (project / "uv.lock").read_text()
    return os.readlink(project / ".venv")


def kept(project):
    return sorted(path.name for path in (project / ".venvs").iterdir() if path.is_dir())


def a_folder(project):
    """Put a folder where the link is."""
    folder = project / ".venv"
    folder.unlink()
    put(folder / "bin/python", WORKS)
    return folder


def said(process, beginning):
    """Read what a set-up says until it says this."""
    for line in process.stderr:
        if line.startswith(beginning):
            return line
    raise AssertionError(f"it ended and never said {beginning!r}")
