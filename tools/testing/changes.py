"""Find the files that a change touches, and the notebooks that it can break.

The tree is compared with ``BASE``: a commit that the environment names, else the merge base with main, else
(on main itself) the parent commit. Without such a history nothing counts as changed, and only the canaries
run. A notebook can be broken by its source, by the package of its chapter, and by every library module that
it imports, however indirectly; import-linter's import graph (grimp) finds these.
"""

import ast
import contextlib
import os
import subprocess
from collections.abc import Iterator
from random import Random

import grimp

from tools import first_cell, notebooks
from tools.environment import PACKAGES, ROOT
from tools.notebooks import Notebook

CANARIES = (
    "chapters/rooflines",
    "chapters/sharding",
    "chapters/training",
    "chapters/jax",
    "solutions/rooflines",
)
MOST = 8  # notebooks of one run beyond the canaries; the full run has them all


def git(*words: str) -> list[str] | None:
    """Return the lines that git prints, or None if it fails or there is no git."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.splitlines()


def base() -> str | None:
    """Return the commit to compare with, or None if the history has none."""
    if named := os.environ.get("BASE"):
        if git("rev-parse", "--verify", "--quiet", f"{named}^{{commit}}") is None:
            raise SystemExit(f"BASE={named} is no commit of this repository; name one that `git log` lists")
        return named
    head = git("rev-parse", "HEAD")
    for branch in ("main", "origin/main"):
        fork = git("merge-base", branch, "HEAD")
        if fork and fork != head:
            return fork[0]
    parent = git("rev-parse", "--verify", "--quiet", "HEAD~1")
    return parent[0] if parent else None


def changed() -> set[str]:
    """Return the files that differ from the base or are new, by their paths below the root."""
    commit = base()
    if commit is None:
        return set()
    differing = git("diff", "--name-only", commit) or []
    return {*differing, *(git("ls-files", "--others", "--exclude-standard") or [])}


def affected(paths: set[str]) -> set[str]:
    """Return the library modules among these files, and all modules that import them, however indirectly."""
    graph = grimp.build_graph(*PACKAGES)
    found: set[str] = set()
    for path in paths:
        if path.startswith(tuple(f"{package}/" for package in PACKAGES)):
            module = path.rpartition(".")[0].removesuffix("/__init__").replace("/", ".")
            while module not in graph.modules:  # a data file belongs to the package that contains it
                module = module.rpartition(".")[0]
            found |= {module, *graph.find_downstream_modules(module)}
    return found


def imports(notebook: Notebook) -> set[str]:
    """Return the modules and names that a notebook's cells import after the set-up, dotted."""
    return {name for cell in _code(notebook) for name in _imported(cell)}


def _code(notebook: Notebook) -> Iterator[str]:
    cells = notebook.committed().cells
    yield from (cell.source for cell in cells if cell.cell_type == "code" and not first_cell.is_it(cell))


def _imported(cell: str) -> Iterator[str]:
    with contextlib.suppress(SyntaxError):  # a cell for IPython alone
        for node in ast.walk(ast.parse(cell)):
            if isinstance(node, ast.Import):
                yield from (name.name for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield from (node.module, *(f"{node.module}.{name.name}" for name in node.names))


def chapters(paths: set[str]) -> set[str]:
    """Return the chapters whose package is among these files."""
    parts = (path.split("/") for path in paths if path.startswith("scalingbook_book/chapters/"))
    return {path[2] for path in parts if len(path) > 3}


def chosen(paths: set[str], most: int = MOST) -> tuple[list[str], int]:
    """Return the notebooks to run after a change to these files, and how many affected ones are left out.

    The nearest come first: those whose own file changed, then those of a changed chapter package, then those
    that import a changed module. The canaries always run.
    """
    modules, packages = affected(paths), chapters(paths)
    nearness: dict[str, int] = {}
    for notebook in notebooks.every():
        own = {path.relative_to(ROOT).as_posix() for path in (notebook.path, notebook.source_path)}
        if own & paths:
            nearness[str(notebook)] = 0
        elif notebook.stem in packages or any(notebook.stem.startswith(f"{name}_") for name in packages):
            nearness[str(notebook)] = 1
        elif modules and imports(notebook) & modules:
            nearness[str(notebook)] = 2
    names = sorted(nearness.keys() - set(CANARIES))
    Random(0).shuffle(names)  # so that no chapter takes all places
    names.sort(key=lambda name: nearness[name])
    return sorted([*CANARIES, *names[:most]]), max(0, len(names) - most)
