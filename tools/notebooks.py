"""Execute and check the notebooks that are generated from the book's sources.

`python -m tools.notebooks execute [stems] [--force]` runs chapters/<stem>.md and solutions/<stem>.md, blanks
the exercises, and writes the three .ipynb files; unchanged ones are skipped. `check` lists the committed
notebooks that differ from their source. `renew` rewrites text, first cells and the layout of code in all
notebooks without running them; it refuses code that does something else than the code that ran.
"""

import argparse
import ast
import hashlib
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

from tools import environment, exercises, first_cell, pages, plain
from tools.environment import ROOT

WIDGET = "application/vnd.jupyter.widget-view+json"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
SOURCES = {"chapters": "chapters", "solutions": "solutions", "exercises": "solutions"}  # of each folder
GPU_PAGES = {"gpus", "gpus_network", "profiling_gpus"}  # chapters, with their deeper pages, and single pages


@dataclass(frozen=True, slots=True)
class Notebook:
    """One generated notebook and its source."""

    folder: str  # a key of SOURCES
    stem: str
    root: Path = ROOT

    def __str__(self) -> str:
        return f"{self.folder}/{self.stem}"

    @property
    def source_path(self) -> Path:
        return self.root / SOURCES[self.folder] / f"{self.stem}.md"

    @property
    def path(self) -> Path:
        return self.root / self.folder / f"{self.stem}.ipynb"

    def made(self) -> NotebookNode:
        """Return the notebook as its source gives it, before any cell has run."""
        notebook = jupytext.read(self.source_path, fmt="md:myst")
        if self.folder == "exercises":
            notebook = exercises.blanked(notebook)
        self._write_plainly(notebook)
        return _fixed(first_cell.put(notebook, first_cell.source(self.root)), self.runtime)

    @property
    def runtime(self) -> dict[str, object]:
        """Return the metadata with which Colab opens the notebook on a free chip of the kind it is about."""
        on_gpu = bool({self.stem, pages.chapter(self.stem, self.root)} & GPU_PAGES)
        kind, model = ("GPU", "T4") if on_gpu else ("TPU", "V5E1")
        return {"accelerator": kind, "colab": {"gpuType": model, "provenance": [], "toc_visible": True}}

    def _write_plainly(self, notebook: NotebookNode) -> None:
        """Convert MyST to plain Markdown, because notebook front ends do not render MyST."""
        known = plain.book(self.root)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = plain.text(cell.source, self.path.relative_to(self.root), known)

    def committed(self) -> NotebookNode:
        """Return the notebook as last executed."""
        return nbformat.read(self.path, as_version=4)


def every(stems: list[str] | None = None, root: Path = ROOT) -> list[Notebook]:
    """Return all notebooks of the book, or those of some chapters (with their deeper pages) or pages."""
    found = [
        Notebook(folder, path.stem, root)
        for folder, sources in SOURCES.items()
        for path in sorted((root / sources).glob("*.md"))
    ]
    if not stems:
        return found
    if unknown := set(stems) - {notebook.stem for notebook in found}:
        raise SystemExit(
            f"no source for {', '.join(sorted(unknown))}; there is chapters/<stem>.md, solutions/<stem>.md"
        )
    return [n for n in found if {n.stem, pages.chapter(n.stem, root)} & {*stems}]


def differences(notebook: Notebook) -> list[str]:
    """How a committed notebook differs from its source, or was not executed."""
    if not notebook.path.exists():
        return [f"{notebook}.ipynb is missing; run make execute"]
    made, committed = notebook.made(), notebook.committed()
    if made.metadata != committed.metadata:
        return [f"{notebook}.ipynb has other metadata than its source gives it; renew it"]
    if [_told(cell) for cell in made.cells] != [_told(cell) for cell in committed.cells]:
        return [f"{notebook}.ipynb is not what {notebook.source_path.name} makes of it; run make execute"]
    return list(_unexecuted(notebook, committed))


def _unexecuted(notebook: Notebook, committed: NotebookNode) -> Iterator[str]:
    for number, cell in enumerate(c for c in committed.cells if c.cell_type == "code"):
        if cell.execution_count != number + 1:
            yield f"{notebook}.ipynb: code cell {number} was not executed in order; run make execute"
        for output in cell.outputs:
            if output.output_type == "error" and "raises-exception" not in cell.metadata.get("tags", ()):
                yield f"{notebook}.ipynb: code cell {number} ended in {output.ename}"
            if output.get("name") == "stderr":
                yield f"{notebook}.ipynb: code cell {number} writes to standard error: {output.text[:80]!r}"
            if WIDGET in output.get("data", {}):
                yield f"{notebook}.ipynb: code cell {number} stores a widget's id, which no reader can show"


def _told(cell: NotebookNode) -> tuple:
    return cell.id, cell.cell_type, cell.source, cell.metadata


def execute(notebook: Notebook) -> None:
    """Run every cell in a fresh kernel and write the notebook atomically."""
    from nbclient import NotebookClient

    made = notebook.made()
    where = {"metadata": {"path": str(notebook.path.parent)}}
    notebook.path.parent.mkdir(exist_ok=True)
    # A busy machine takes minutes to start a kernel, and delivers a cell's output in several pieces.
    client = NotebookClient(
        made, timeout=900, startup_timeout=600, resources=where, record_timing=False, coalesce_streams=True
    )
    client.execute()
    _write(_stripped(made), notebook)


def _write(made: NotebookNode, notebook: Notebook) -> None:
    half = notebook.path.with_suffix(
        f".{os.getpid()}.half"
    )  # an interrupted write leaves the old notebook intact
    nbformat.write(made, half)
    os.replace(half, notebook.path)


def renew(notebook: Notebook) -> str | None:
    """Rewrite everything but computed outputs; returns a problem if the code does something else."""
    made = notebook.made()
    ran = [c for c in notebook.committed().cells if c.cell_type == "code" and not first_cell.is_it(c)]
    cells = [cell for cell in made.cells if cell.cell_type == "code"]
    if [_code(cell) for cell in cells[1:]] != [_code(cell) for cell in ran]:
        return f"{notebook}: its code has changed; run make execute"
    cells[0].execution_count = 1
    for number, (cell, old) in enumerate(zip(cells[1:], ran, strict=True), 2):
        cell.execution_count, cell.outputs = number, old.outputs
        plain.repaint(cell)
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = number
    return _write(made, notebook)


def _code(cell: NotebookNode) -> str:
    """Return what a cell computes: its syntax tree, without layout, comments and docstrings of functions."""
    if "raises-exception" in cell.metadata.get("tags", ()):
        return cell.source  # a traceback shows the source
    try:
        tree = ast.parse(cell.source)
    except SyntaxError:  # a cell with a magic
        return cell.source
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    silent = cell.source.rstrip().endswith(";")  # does not print its last value
    return f"{ast.dump(tree)}{silent}"


def _fixed(notebook: NotebookNode, runtime: dict[str, object]) -> NotebookNode:
    """Return the notebook with reproducible metadata and with cell ids that depend only on content.

    Without jupytext's pairing, with which JupyterLab refuses to open a notebook newer than its source.
    """
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": KERNEL, "language_info": {"name": "python"}} | runtime
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen: set[str] = set()
    for cell in notebook.cells:
        salt = 0  # equal cells need different ids
        while (name := _short(f"{salt}{cell.cell_type}{cell.source}")) in seen:
            salt += 1
        seen.add(name)
        cell.id = name
    return notebook


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _stripped(notebook: NotebookNode) -> NotebookNode:
    """Return the notebook without widgets' random ids and the kernel's version."""
    notebook.metadata.pop("widgets", None)
    notebook.metadata.language_info = NotebookNode(name="python")
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop(WIDGET, None)
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("data", True)]
    return notebook


def _library(root: Path) -> str:
    """Return a fingerprint of what notebooks depend on besides their source: code, tables, lock file."""
    packages = (root / package for package in environment.PACKAGES)
    code = [path for package in packages for path in package.rglob("*.*") if path.suffix != ".pyc"]
    quoted = (root / "data").rglob("*.*")
    digest = hashlib.sha256()
    for path in (*sorted(code), *sorted(quoted), root / "uv.lock", Path(__file__)):
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest() + first_cell.source(root)


def _mark(notebook: Notebook) -> Path:
    return notebook.root / ".make" / "executed" / str(notebook).replace("/", "-")


def _state(notebook: Notebook, library: str) -> str:
    """Return a fingerprint of a notebook together with its source and the library."""
    made = notebook.path.read_bytes() if notebook.path.exists() else b""
    return hashlib.sha256(library.encode() + notebook.source_path.read_bytes() + made).hexdigest()


def _up_to_date(notebook: Notebook, library: str) -> bool:
    mark = _mark(notebook)
    return mark.exists() and mark.read_text() == _state(notebook, library)


def _bring_up_to_date(notebook: Notebook, library: str) -> str | None:
    """Execute a notebook, record its state, and return what went wrong, or None."""
    try:
        execute(notebook)
    except Exception as error:  # every notebook gets its turn; all failures are reported at the end
        return f"{notebook}: {error}"
    for problem in differences(notebook):
        return problem
    mark = _mark(notebook)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text(_state(notebook, library))
    print(f"executed {notebook}.ipynb", flush=True)
    return None


def main(argv: list[str] | None = None) -> int:
    """Execute, check or renew the notebooks; returns 1 if there are problems."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.notebooks", description="Execute, check or renew the notebooks."
    )
    parser.add_argument("verb", choices=["execute", "check", "renew"])
    parser.add_argument("stems", nargs="*")
    parser.add_argument("--force", action="store_true", help="run what has not changed, too")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args(argv)
    notebooks = every(asked.stems)
    if asked.verb == "check":
        problems = [problem for notebook in notebooks for problem in differences(notebook)]
    elif asked.verb == "renew":
        problems = [problem for notebook in notebooks if (problem := renew(notebook))]
    else:
        environment.apply()
        library = _library(ROOT)
        stale = [n for n in notebooks if asked.force or not _up_to_date(n, library)]
        with ThreadPoolExecutor(asked.jobs) as pool:
            problems = [p for p in pool.map(lambda n: _bring_up_to_date(n, library), stale) if p]
        print(f"{len(notebooks)} notebooks: {len(stale)} executed, {len(notebooks) - len(stale)} up to date")
    print(*problems, sep="\n", file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
