"""The commands that README.md and CONTRIBUTING.md print work in a fresh clone, in the order of the README.

The clone has the files of the working tree, committed or not, and nothing else: no environment and no site.
This test therefore sets up an environment and builds the whole site, which takes minutes.
"""

import os
import re
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.book import examples
from tools.environment import ROOT

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/")
GIVE_UP_S = 45 * 60  # kills a `make book` that hangs; this is no test of speed
SET_BY_TESTS = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "TEST_SCOPE", "CI", "MAKEFLAGS", "MAKELEVEL")


def git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words, "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split("\0") if name]


@pytest.fixture
def clone(tmp_path):
    """A clone of the repository with the changes that the working tree has over its last commit."""
    folder = tmp_path / "book"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, folder], check=True)
    for name in (*git("diff", "--name-only", "HEAD"), *git("ls-files", "--others", "--exclude-standard")):
        (folder / name).unlink(missing_ok=True)
        if os.path.lexists(ROOT / name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    yield folder
    shutil.rmtree(folder)  # more than half a gigabyte


def environment() -> dict[str, str]:
    """The reader's environment: this one without what this environment and its tests have set."""
    own = str(ROOT)
    paths = [path for path in os.environ["PATH"].split(os.pathsep) if not path.startswith(own)]
    kept = {name: value for name, value in os.environ.items() if name not in SET_BY_TESTS}
    return kept | {"PATH": os.pathsep.join(paths)}


def page_of_make_book(clone: Path) -> tuple[int, str]:
    """Run `make book` until it prints its address, and return the status and the text of the page there."""
    book = subprocess.Popen(
        ["make", "book"],
        cwd=clone,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert book.stdout
    guard = threading.Timer(GIVE_UP_S, os.killpg, (book.pid, signal.SIGKILL))
    guard.start()
    printed = []
    try:
        for line in book.stdout:
            printed.append(line)
            if found := ADDRESS.search(line):
                with urlopen(found[0]) as answer:
                    return answer.status, answer.read().decode()
    finally:
        guard.cancel()
        if book.poll() is None:
            os.killpg(book.pid, signal.SIGTERM)
        book.stdout.close()
        book.wait()
    pytest.fail("make book ended without an address:\n" + "".join(printed[-40:]))


def problem(command: list[str], clone: Path) -> str:
    """What went wrong with a command in the clone; nothing where it worked."""
    done = subprocess.run(command, cwd=clone, env=environment(), capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    if done.returncode == 0 and "Traceback" not in output:
        return ""
    return f"{command[-1]}: status {done.returncode}\n{output}"


def test_a_fresh_clone_does_what_the_readme_says(clone):
    status, page = page_of_make_book(clone)
    title = examples.text("README.md").splitlines()[0].removeprefix("# ")
    assert status == 200
    assert title in page

    activate = "source .venv/bin/activate"
    assert activate in examples.text("README.md")
    commands = examples.scalingbook_commands()
    assert commands
    problems = [problem(["bash", "-c", f"{activate} && {line}"], clone) for line in commands]
    programs = examples.python_examples()
    assert programs
    for number, program in enumerate(programs):
        path = clone / f"example{number}.py"
        path.write_text(program, encoding="utf-8")
        problems.append(problem([".venv/bin/python", path.name], clone))
    assert not any(problems), "\n".join(filter(None, problems))
