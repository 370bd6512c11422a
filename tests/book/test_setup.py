"""The set-up finds a Python where common tools put one, does its work once, and never destroys what works."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

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
    assert "--extra viz --group site" in log(project)[-1]
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


def a_folder(project):
    """Put a folder where the link is."""
    folder = project / ".venv"
    folder.unlink()
    put(folder / "bin/python", WORKS)
    return folder


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
    assert done.stderr.splitlines()[-1].startswith("set-up: pip could not install uv from a package index; ")
    assert not (project / ".venv").exists()
    assert kept(project) == []


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_interrupted_it_removes_what_it_began(standing, name):
    before = change(standing)
    done = set_up(standing, uv=f"kill -{name} $PPID; exit 1")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, "==> interrupted")
    assert kept(standing) == ["1"]
    (standing / "uv.lock").write_text(before)
    assert environment(standing) == ".venvs/1"


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


def said(process, beginning):
    """Read what a set-up says until it says this."""
    for line in process.stderr:
        if line.startswith(beginning):
            return line
    raise AssertionError(f"it ended and never said {beginning!r}")


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
