"""Run every notebook alone in an empty folder, where the library is not installed.

`python -m tools.isolated_run` runs two kinds on Colab's versions (`tools/colab.txt`). Every notebook as the
site offers it, which carries the library, runs in full (with `--with-jax`, only those that use JAX, because
the others depend on no package whose version differs); the committed notebooks of one chapter run their
set-up cells next to a wheel of this tree. On the versions of `uv.lock`, on which the tests run every cell,
only one chapter's set-up cells run. Nothing may be installed during a run: the only package index that pip
can reach is in this process and empty, and a request to it fails the run.
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
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

from tools import environment, first_cell, notebooks
from tools import wheel as library
from tools.environment import ROOT
from tools.notebooks import Notebook
from tools.testing import changes

WORK = ROOT / ".make" / "alone"
UV = Path(sys.executable).with_name("uv")
COLAB = ROOT / "tools" / "colab.txt"
COLAB_PYTHON = "3.13"
SET_UP_CELLS = 3  # code cells: the first one, the devices, the imports
BATCHES = 16  # starts of pytest, each of which takes as long as the cells of a short notebook
PYTEST = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--nbval-lax", "--nbval-current-env"]
PYTEST += ["--nbval-cell-timeout=900", "--durations=5"]


@dataclass(frozen=True, slots=True)
class Versions:
    """An environment without the library; `whole` if notebooks run on it from end to end."""

    name: str
    home: Path
    whole: bool


class Interpreter(NamedTuple):
    """A Python on this machine, with its version as in '3.13'."""

    path: Path
    version: str


@dataclass(frozen=True)
class Index:
    """An empty package index on this machine; `requests` are the paths that were requested."""

    url: str
    requests: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Run:
    """A notebook to run alone: as the site offers it, or as committed with a wheel next to it."""

    notebook: Notebook
    on: Versions
    carrying: str = ""  # the text of the first cell that carries the library

    def __str__(self) -> str:
        kind = "from the site" if self.carrying else "beside a wheel"
        return f"{self.notebook} {kind} on {self.on.name}"

    @property
    def folder_name(self) -> str:
        return str(self).replace("/", "-").replace(" ", "-")

    @property
    def compiles(self) -> bool:
        """Whether cells beyond the set-up run, which may compile programs for TPUs."""
        return bool(self.carrying) and self.on.whole

    def notebook_to_run(self) -> NotebookNode:
        """Return the notebook, or only its set-up cells."""
        copy = self.notebook.committed()
        if self.carrying:
            copy = first_cell.put(copy, self.carrying)
        return copy if self.compiles else NotebookNode(copy | {"cells": list(_set_up_cells(copy.cells))})


def _set_up_cells(cells: Iterable[NotebookNode]) -> Iterator[NotebookNode]:
    left = SET_UP_CELLS
    for cell in cells:
        yield cell
        left -= cell.cell_type == "code"
        if not left:
            return


def wheel() -> Path:
    """Build the library of this tree as a wheel and return its path."""
    folder = WORK / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    here = ("--no-build-isolation", "--python", sys.executable)  # with the pinned build backend
    subprocess.run([UV, "build", "--wheel", "--quiet", *here, "--out-dir", folder, ROOT], check=True)
    (made,) = folder.glob("*.whl")
    return made


def colab_python() -> Interpreter:
    """Return an interpreter of Colab's Python, or the one that runs this if the machine has none.

    It is looked for on PATH, where Debian puts one too, in pyenv, and among those that uv manages.
    """
    found = (path for path in _candidates(COLAB_PYTHON) if _version(path) == COLAB_PYTHON)
    own = Path(sys.executable)
    return Interpreter(path, COLAB_PYTHON) if (path := next(found, None)) else Interpreter(own, _version(own))


def _candidates(version: str) -> Iterator[Path]:
    """Yield where an interpreter of this version may be."""
    for folder in (*os.environ.get("PATH", "").split(os.pathsep), "/usr/bin", "/usr/local/bin"):
        yield Path(folder, f"python{version}")
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv")
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python")
    yield from sorted(pyenv.glob(f"versions/{version}*/bin/python"), reverse=True)
    yield from sorted(uv.glob(f"cpython-{version}*/bin/python3"), reverse=True)


def _version(python: Path) -> str:
    """Return the version of an interpreter, or "" if it does not run: pyenv has shims of absent versions."""
    if not python.is_file():
        return ""
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def colab() -> Versions:
    """Return an environment with Colab's package versions, and its Python where this machine has that."""
    home, stamp, base = WORK / "packages", WORK / "packages" / ".set-up", colab_python()
    other = "" if base.version == COLAB_PYTHON else f", for lack of Python {COLAB_PYTHON}"
    print(f"Colab's versions run on Python {base.version}{other}: {base.path}", flush=True)
    digest = f"{base.version} {hashlib.sha256(COLAB.read_bytes()).hexdigest()}"
    if not stamp.exists() or stamp.read_text() != digest:
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([UV, "venv", "--quiet", "--seed", "--python", base.path, home], check=True)
        python = home / "bin" / "python"
        subprocess.run(
            [UV, "pip", "install", "--quiet", "--require-hashes", "--python", python, "-r", COLAB], check=True
        )
        stamp.write_text(digest)
    return Versions("Colab's versions", home, whole=True)


def newest() -> Versions:
    """Return an environment with everything that `uv.lock` pins except the library."""
    home, links = WORK / "newest", WORK / "links"
    for leftover in (home, links):
        shutil.rmtree(leftover, ignore_errors=True)
    links.mkdir(parents=True)  # links, because a copy would take gigabytes
    for path in _packages(Path(sys.prefix)).iterdir():
        # A .pth file would make the library's editable install visible.
        if "scalingbook" not in path.name and path.suffix != ".pth":
            (links / path.name).symlink_to(path)
    venv.create(home, symlinks=True)
    (_packages(home) / "links.pth").write_text(f"{links}\n")
    return Versions("the newest versions", home, whole=False)


def _packages(environment: Path) -> Path:
    """Return the site-packages folder of an environment."""
    (found,) = environment.glob("lib/python3*/site-packages")
    return found


def _installed_paths(versions: Versions) -> set[Path]:
    """What is installed in an environment, without bytecode."""
    return {path for path in _packages(versions.home).iterdir() if path.name != "__pycache__"}


@contextlib.contextmanager
def index() -> Iterator[Index]:
    """Provide an empty package index that runs during the block."""
    requests: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Index(f"http://127.0.0.1:{server.server_port}/simple", requests)
    server.shutdown()


def run(batch: Sequence[Run], wheel: Path, empty: Index) -> str:
    """Run notebooks on the same versions, each in its own empty folder; return what went wrong, or ""."""
    first = batch[0]
    home = WORK / first.folder_name
    shutil.rmtree(home, ignore_errors=True)
    paths: list[Path] = []
    for one in batch:
        alone = home / one.folder_name
        alone.mkdir(parents=True)
        paths.append(alone / one.notebook.path.name)
        nbformat.write(one.notebook_to_run(), paths[-1])
        if not one.carrying:
            (alone / wheel.name).symlink_to(wheel)
    if first.compiles:
        environment.profile(home / "ipython", environment.COMPILE_CACHE)
    problem = run_failure(home, paths, first.on, empty)
    if not problem:
        shutil.rmtree(home)
    return problem


def run_failure(home: Path, paths: list[Path], on: Versions, empty: Index) -> str:
    """Run these notebooks on these versions; return what went wrong, or "" where all passed."""
    command = [on.home / "bin" / "python", "-P", "-m", "pytest", *PYTEST]
    done = subprocess.run(
        [*command, *(path.relative_to(home) for path in paths)],
        cwd=home,
        env=_variables(home, empty),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if not done.returncode:
        return ""
    names = ", ".join(path.parent.name for path in paths)
    return f"{names}: status {done.returncode}\n{done.stdout[-12_000:]}"


def batches(planned: Sequence[Run]) -> Iterator[list[Run]]:
    """Yield batches of runs that share versions and a profile; the longest notebooks start first."""
    # A notebook's size tells roughly how long it runs.
    longest_first = sorted(planned, key=lambda run: -run.notebook.path.stat().st_size)
    kinds = {(run.on, run.compiles): None for run in planned}
    for kind in sorted(kinds, key=lambda kind: not kind[1]):
        same = [run for run in longest_first if (run.on, run.compiles) == kind]
        count = BATCHES if len(same) > BATCHES else 1
        yield from (same[start::count] for start in range(count))


def _variables(home: Path, empty: Index) -> dict[str, str]:
    """This process's environment without variables that a reader lacks, and with only the empty index."""
    # PYTHONWARNINGS and JAX_PLATFORMS would hide what a reader's kernel prints.
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


def runs(versions: Versions, stems: list[str], carrying: str, *, with_jax: bool = False) -> Iterator[Run]:
    """Yield the runs on these versions; set-up runs cover one chapter, because the cell is the same in all.

    Exercise notebooks of one chapter run too; the cells of the others are those of the worked solutions.
    """
    for notebook in notebooks.every(stems):
        first = notebook.stem == (stems or ["intro"])[0]
        whole = versions.whole and notebook.folder != "exercises"
        if first or (whole and (uses_jax(notebook) or not with_jax)):
            yield Run(notebook, versions, carrying)
        if first:
            yield Run(notebook, versions)


def uses_jax(notebook: Notebook) -> bool:
    """Return whether cells after the set-up import JAX or the laboratory."""
    return any(name.startswith(("jax", "scalingbook_lab")) for name in changes.imports(notebook))


def main(argv: list[str] | None = None) -> int:
    """Run all notebooks and return 1 if any run failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.isolated_run", description="Run every notebook alone."
    )
    parser.add_argument("stems", nargs="*")
    parser.add_argument(
        "--only", choices=["colab", "newest"], help="the versions to run on; both if left out"
    )
    parser.add_argument("--with-jax", action="store_true", help="leave out notebooks that use no JAX")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args(argv)
    started, made, carrying = time.monotonic(), wheel(), first_cell.carrying(library.carried())
    on = [make() for make in (colab, newest) if asked.only in (None, make.__name__)]
    before = {versions: _installed_paths(versions) for versions in on}
    each = (runs(versions, asked.stems, carrying, with_jax=asked.with_jax) for versions in on)
    planned = [run for some in each for run in some]
    with index() as empty, ThreadPoolExecutor(asked.jobs) as pool:
        problems = list(
            filter(None, pool.map(lambda batch: _report(run(batch, made, empty)), batches(planned)))
        )
    problems += [_report(f"the index was asked for {path}") for path in empty.requests]
    installed = (new for v in on for new in _installed_paths(v) - before[v])
    problems += [_report(f"was installed: {new}") for new in installed]
    print(
        f"{len(planned)} runs alone, {len(problems)} problems, {time.monotonic() - started:.0f} s", flush=True
    )
    return 1 if problems else 0


def _report(problem: str) -> str:
    if problem:
        print(problem, file=sys.stderr, flush=True)
    return problem


if __name__ == "__main__":
    raise SystemExit(main())
