"""Does every notebook run alone, in an empty folder, where nobody has installed the library?

`python -m tools.alone` tries two kinds on the versions that Colab has (`tools/colab.txt`): every notebook as
the site gives it, which carries the library, whole; and those of one chapter as committed, beside a wheel of
this tree, the cells that set up. On the versions of `uv.lock`, where `make test-all` runs every cell, one
chapter's cells that set up are tried again. Nothing may be installed meanwhile: the only index that pip is
told of stands in this process, knows no package at all, and what is asked of it fails the run.
"""

import argparse
import contextlib
import hashlib
import http.server
import os
import shutil
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools import environment, first_cell, notebooks
from tools import wheel as library
from tools.environment import ROOT
from tools.notebooks import Notebook

WORK = ROOT / ".make" / "alone"
UV = Path(sys.executable).with_name("uv")
COLAB = ROOT / "tools" / "colab.txt"
SETTING_UP = 3  # code cells: the first, the one that asks for devices, the imports
PYTEST = ["-q", "-p", "no:cacheprovider", "--nbval-lax", "--nbval-current-env"]
PYTEST += ["--nbval-cell-timeout=900", "--durations=5"]


@dataclass(frozen=True, slots=True)
class Versions:
    """An environment without the library, and whether notebooks run on it from end to end."""

    name: str
    home: Path
    whole: bool


@dataclass(frozen=True)
class Index:
    """An index on this machine that has no package; `asked` is what was asked of it."""

    url: str
    asked: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Run:
    """A notebook to run alone: as the site gives it, or as it is committed, with a wheel beside it."""

    notebook: Notebook
    on: Versions
    carrying: str = ""  # the cell that carries the library

    def __str__(self) -> str:
        kind = "from the site" if self.carrying else "beside a wheel"
        return f"{self.notebook} {kind} on {self.on.name}"

    def copied(self) -> NotebookNode:
        """What is copied of the notebook: all of it, or what sets it up."""
        copy = self.notebook.committed()
        if self.carrying:
            copy = first_cell.put(copy, self.carrying)
            return copy if self.on.whole else NotebookNode(copy | {"cells": list(_setting_up(copy.cells))})
        return NotebookNode(copy | {"cells": list(_setting_up(copy.cells))})


def _setting_up(cells: Iterable[NotebookNode]) -> Iterator[NotebookNode]:
    left = SETTING_UP
    for cell in cells:
        yield cell
        left -= cell.cell_type == "code"
        if not left:
            return


def wheel() -> Path:
    """The library as a wheel, made of this tree."""
    folder = WORK / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    here = ("--no-build-isolation", "--python", sys.executable)  # with what uv.lock pins
    subprocess.run([UV, "build", "--wheel", "--quiet", *here, "--out-dir", folder, ROOT], check=True)
    (made,) = folder.glob("*.whl")
    return made


def colab() -> Versions:
    """What Colab has, in an environment of its own."""
    home, stamp = WORK / "packages", WORK / "packages" / ".set-up"
    digest = hashlib.sha256(COLAB.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([UV, "venv", "--quiet", "--seed", "--python", sys.executable, home], check=True)
        python = home / "bin" / "python"
        subprocess.run(
            [UV, "pip", "install", "--quiet", "--require-hashes", "--python", python, "-r", COLAB], check=True
        )
        stamp.write_text(digest)
    return Versions("Colab's versions", home, whole=True)


def newest() -> Versions:
    """What uv.lock pins: an environment that sees everything in this one but the library."""
    home, links = WORK / "newest", WORK / "links"
    for leftover in (home, links):
        shutil.rmtree(leftover, ignore_errors=True)
    links.mkdir(parents=True)  # of links and not a copy: this environment has gigabytes
    for path in _packages(Path(sys.prefix)).iterdir():
        # A .pth file is how an editable install is found: with it the library would be there after all.
        if "scalingbook_lib" not in path.name and path.suffix != ".pth":
            (links / path.name).symlink_to(path)
    venv.create(home, symlinks=True)
    (_packages(home) / "links.pth").write_text(f"{links}\n")
    return Versions("the newest versions", home, whole=False)


def _packages(environment: Path) -> Path:
    """The site-packages of an environment."""
    (found,) = environment.glob("lib/python3*/site-packages")
    return found


def _installed(versions: Versions) -> set[Path]:
    """What stands there, but for bytecode."""
    return {path for path in _packages(versions.home).iterdir() if path.name != "__pycache__"}


@contextlib.contextmanager
def index() -> Iterator[Index]:
    """An index that knows no package, while the block runs."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Index(f"http://127.0.0.1:{server.server_port}/simple", asked)
    server.shutdown()


def run(what: Run, wheel: Path, empty: Index) -> str:
    """Copy a notebook into an empty folder and run it there; what went wrong, or ''."""
    home = WORK / str(what).replace("/", "-").replace(" ", "-")
    shutil.rmtree(home, ignore_errors=True)
    alone = home / "alone"
    alone.mkdir(parents=True)
    nbformat.write(what.copied(), alone / what.notebook.path.name)
    if not what.carrying:
        (alone / wheel.name).symlink_to(wheel)
    if what.carrying and what.on.whole:  # what only sets up compiles nothing
        environment.profile(home / "ipython", environment.COMPILE_CACHE)
    problem = ended(alone / what.notebook.path.name, what.on, empty)
    if not problem:
        shutil.rmtree(home)
    return f"{what}: {problem}" if problem else ""


def ended(notebook: Path, on: Versions, empty: Index) -> str:
    """Run a notebook where it lies, on these versions; what went wrong, or ''."""
    command = [on.home / "bin" / "python", "-P", "-m", "pytest", *PYTEST, notebook.name]
    done = subprocess.run(
        command,
        cwd=notebook.parent,
        env=_variables(notebook.parents[1], empty),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return f"status {done.returncode}\n{done.stdout[-12_000:]}" if done.returncode else ""


def _variables(home: Path, empty: Index) -> dict[str, str]:
    """This process's variables, without what makes the book's kernels quiet, and no index but ours."""
    # A reader has none of these: PYTHONWARNINGS and JAX_PLATFORMS would hide what a fresh kernel says.
    kept = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("PYTHON", "PIP_", "UV_", "VIRTUAL_ENV", "JAX_"))
    }
    pip = {
        "PIP_INDEX_URL": empty.url,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_RETRIES": "0",
        "NO_PROXY": "127.0.0.1",
    }
    return kept | pip | {"IPYTHONDIR": str(home / "ipython"), "TMPDIR": str(home), "PYTHONUTF8": "1"}


def runs(versions: Versions, stems: list[str], carrying: str) -> Iterator[Run]:
    """What is to run on these versions; where it only sets up, one chapter: the cell is the same in all.

    Of the notebooks with exercises one chapter runs too: their cells are those of the worked solutions.
    """
    for notebook in notebooks.every(stems):
        first = notebook.stem == (stems or ["intro"])[0]
        if first or (versions.whole and notebook.folder != "exercises"):
            yield Run(notebook, versions, carrying)
        if first:
            yield Run(notebook, versions)


def main(argv: list[str] | None = None) -> int:
    """Run them all; 1 where something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.alone", description="Run every notebook alone.")
    parser.add_argument("stems", nargs="*")
    parser.add_argument(
        "--only", choices=["colab", "newest"], help="the versions to run on; both if left out"
    )
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args(argv)
    started, made, carrying = time.monotonic(), wheel(), first_cell.carrying(library.carried())
    on = [make() for make in (colab, newest) if asked.only in (None, make.__name__)]
    before = {versions: _installed(versions) for versions in on}
    todo = [run for versions in on for run in runs(versions, asked.stems, carrying)]
    # The longest first: where the last to start is short, no worker waits long for the other.
    todo.sort(key=lambda run: -run.on.whole * bool(run.carrying) * run.notebook.path.stat().st_size)
    with index() as empty, ThreadPoolExecutor(asked.jobs) as pool:
        problems = list(filter(None, pool.map(lambda one: _told(run(one, made, empty)), todo)))
    problems += [_told(f"the index was asked for {path}") for path in empty.asked]
    installed = (new for v in on for new in _installed(v) - before[v])
    problems += [_told(f"was installed: {new}") for new in installed]
    print(f"{len(todo)} runs alone, {len(problems)} failed, {time.monotonic() - started:.0f} s", flush=True)
    return 1 if problems else 0


def _told(problem: str) -> str:
    if problem:
        print(problem, file=sys.stderr, flush=True)
    return problem


if __name__ == "__main__":
    raise SystemExit(main())
