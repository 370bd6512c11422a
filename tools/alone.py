"""Does every notebook run alone, copied into an empty folder where nobody has installed the library?

`python -m tools.alone` tries it on the versions that Colab has (`tools/colab.txt`), every notebook whole, and
on those of `uv.lock`, where `make tests` runs every cell: there the introduction whole, and of each other
chapter the cells that set up. Each notebook has an environment of its own, which shows the packages of a
common one without the library; pip finds the library as a wheel made of this tree, and asks no index.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from scalingbook_lib import __version__
from tools import first_cell, notebooks
from tools.environment import ROOT
from tools.notebooks import Notebook

WORK = ROOT / ".make" / "alone"
UV = Path(sys.executable).with_name("uv")
COLAB = ROOT / "tools" / "colab.txt"
BROUGHT = {"scalingbook_lib", f"scalingbook_lib-{__version__}.dist-info"}
SETTING_UP = 3  # code cells: the first, the one that asks for devices, the imports
PYTEST = [
    "-q",
    "-p",
    "no:cacheprovider",
    "--nbval-lax",
    "--nbval-current-env",
    "--nbval-cell-timeout=900",
    "--durations=5",
]


@dataclass(frozen=True, slots=True)
class Versions:
    """Packages without the library, and which notebooks run on them from end to end (None: all)."""

    name: str
    packages: Path
    whole: frozenset[str] | None = None

    def runs(self, stems: list[str]) -> list[Notebook]:
        """The notebooks that run on these versions, those that take long first."""
        found = [n for n in notebooks.every(stems) if n.path.exists()]
        found = [n for n in found if self.whole is None or n.folder == "chapters"]
        return sorted(found, key=lambda n: n.path.stat().st_size, reverse=True)

    def copied(self, notebook: Notebook) -> NotebookNode:
        """What is copied of a notebook: all of it, or what sets it up."""
        copy = notebook.committed()
        if self.whole is None or str(notebook) in self.whole:
            return copy
        return NotebookNode(copy | {"cells": list(_setting_up(copy.cells))})


def _setting_up(cells: Iterable[NotebookNode]) -> Iterator[NotebookNode]:
    left = SETTING_UP
    for cell in cells:
        yield cell
        left -= cell.cell_type == "code"
        if not left:
            return


def wheel() -> Path:
    """The folder with the library as a wheel, made of this tree."""
    folder = WORK / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([UV, "build", "--wheel", "--quiet", "--out-dir", folder, ROOT], check=True)
    return folder


def colab() -> Versions:
    """What Colab has, in an environment of its own."""
    home, stamp = WORK / "packages", WORK / "packages" / ".set-up"
    digest = hashlib.sha256(COLAB.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, home], check=True)
        python = home / "bin" / "python"
        subprocess.run([UV, "pip", "install", "--quiet", "--python", python, "-r", COLAB], check=True)
        stamp.write_text(digest)
    return Versions("colab", _packages(home))


def newest() -> Versions:
    """What uv.lock pins: links to everything in this environment but the library."""
    links = WORK / "links"
    shutil.rmtree(links, ignore_errors=True)
    links.mkdir(parents=True)
    for path in _packages(Path(sys.prefix)).iterdir():
        if "scalingbook_lib" not in path.name and path.suffix != ".pth":
            (links / path.name).symlink_to(path)
    return Versions("newest", links, frozenset({"chapters/intro"}))


def _packages(environment: Path) -> Path:
    """The site-packages of an environment."""
    (found,) = environment.glob("lib/python3*/site-packages")
    return found


def run(notebook: Notebook, on: Versions, wheels: Path) -> str:
    """Copy a notebook into an empty folder and run it there; what went wrong, or ''."""
    home = WORK / on.name / str(notebook).replace("/", "-")
    shutil.rmtree(home, ignore_errors=True)
    alone = home / "alone"
    alone.mkdir(parents=True)
    nbformat.write(_asking_for_the_package(on.copied(notebook)), alone / notebook.path.name)
    own = _packages_beside(home / "environment", on.packages)
    before = {path.name for path in own.iterdir()}
    command = [home / "environment" / "bin" / "python", "-m", "pytest", *PYTEST, notebook.path.name]
    done = subprocess.run(
        command, cwd=alone, env=_variables(home, wheels), capture_output=True, text=True, check=False
    )
    if done.returncode:
        return f"{notebook} alone on {on.name}: status {done.returncode}\n{done.stdout[-9000:]}{done.stderr}"
    if (brought := {path.name for path in own.iterdir()} - before) != BROUGHT:
        return f"{notebook} alone on {on.name}: its first cell brought {brought}, and should {BROUGHT}"
    shutil.rmtree(home)
    return ""


def _asking_for_the_package(copy: NotebookNode) -> NotebookNode:
    """The copy, asking for the package also where a repository is configured: its tag may not be out yet."""
    for cell in filter(first_cell.is_it, copy.cells):
        cell.source = cell.source.replace(first_cell.requirement(), f"scalingbook-lib=={__version__}")
    return copy


def _packages_beside(environment: Path, packages: Path) -> Path:
    """A new environment that sees these packages; its own site-packages, where pip will install."""
    venv.create(environment, symlinks=True)
    own = _packages(environment)
    (own / "common.pth").write_text(f"{packages}\n")
    return own


def _variables(home: Path, wheels: Path) -> dict[str, str]:
    """This process's variables, without what makes the book's own kernels quiet."""
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PIP_", "VIRTUAL_ENV", "JAX_"))
    }
    pip = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_COMPILE": "1",
        "PIP_CONFIG_FILE": "/dev/null",
    }
    return kept | pip | {"IPYTHONDIR": str(home / "ipython"), "PYTHONUTF8": "1"}


def main(argv: list[str] | None = None) -> int:
    """Run them all; 1 where something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.alone", description="Run every notebook alone.")
    parser.add_argument("stems", nargs="*")
    parser.add_argument(
        "--only", choices=["colab", "newest"], help="the versions to run on; both if left out"
    )
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args(argv)
    started, wheels = time.monotonic(), wheel()
    versions = [make() for make in (colab, newest) if asked.only in (None, make.__name__)]
    todo = [(on, n) for on in versions for n in on.runs(asked.stems)]
    with ThreadPoolExecutor(asked.jobs) as pool:
        failed = sum(pool.map(lambda task: _failed(task[0], task[1], wheels), todo))
    print(f"{len(todo)} runs alone, {failed} failed, {time.monotonic() - started:.0f} s", flush=True)
    return 1 if failed else 0


def _failed(on: Versions, notebook: Notebook, wheels: Path) -> bool:
    problem = run(notebook, on, wheels)
    if problem:
        print(problem, file=sys.stderr, flush=True)
    return bool(problem)


if __name__ == "__main__":
    raise SystemExit(main())
