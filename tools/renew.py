"""What does a new JAX change in the book? `python -m tools.renew [STEM ...]` after `uv lock --upgrade`.

It asks the compilers again (`tools.record`), executes every notebook, and reports, cell by cell, which
printed figures changed and which assertions no longer hold. Nothing is decided: it says where to look.
"""

import difflib
import re
import subprocess
import sys
from collections.abc import Iterator

from nbformat import NotebookNode

from tools import environment, notebooks
from tools.environment import ROOT
from tools.notebooks import Notebook

REPORT = ROOT / "_build" / "renewed.md"
_NUMBER = re.compile(r"\d")


def printed(notebook: NotebookNode) -> list[str]:
    """What each code cell says, as text."""
    return ["\n".join(_texts(cell)) for cell in notebook.cells if cell.cell_type == "code"]


def _texts(cell: NotebookNode) -> Iterator[str]:
    for output in cell.outputs:
        yield output.get("text") or output.get("data", {}).get("text/plain", "")


def figures(before: list[str], after: list[str]) -> Iterator[str]:
    """The lines with figures that a notebook prints otherwise than before."""
    for number, (old, new) in enumerate(zip(before, after, strict=True), 1):
        changed = difflib.ndiff(old.splitlines(), new.splitlines())
        told = [line for line in changed if line[0] in "-+" and _NUMBER.search(line)]
        if told:
            yield f"- cell {number}\n" + "\n".join(f"      {line}" for line in told)


def renewed(notebook: Notebook) -> str:
    """Execute one notebook; what it says otherwise, or where it stopped; '' where nothing changed."""
    before = printed(notebook.committed())
    try:
        notebooks.execute(notebook)
    except Exception as error:  # the report names every notebook that stops
        return f"## {notebook}: stopped\n\n{str(error)[-1500:]}\n"
    told = list(figures(before, printed(notebook.committed())))
    return f"## {notebook}\n\n" + "\n".join(told) + "\n" if told else ""


def main(stems: list[str]) -> int:
    """Renew everything and write the report; 1 where a notebook stopped."""
    environment.apply()
    subprocess.run([sys.executable, "-m", "tools.record"], cwd=ROOT, check=True)
    recorded = subprocess.run(
        ["git", "diff", "--stat", "--", "scalingbook_lib"], cwd=ROOT, capture_output=True, text=True
    )
    parts = [told for notebook in notebooks.every(stems) if (told := renewed(notebook))]
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("\n".join(["# What changed", "", recorded.stdout, *parts]), encoding="utf-8")
    stopped = sum(": stopped\n" in part for part in parts)
    print(f"{len(parts)} notebooks changed, {stopped} of them stopped: {REPORT.relative_to(ROOT)}")
    return 1 if stopped else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
