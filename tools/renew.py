"""Report what a new JAX version changes in the book: `python -m tools.renew [STEM ...]`.

Run it after `uv lock --upgrade`. It records compiler output anew (`tools.record`), executes every notebook,
and reports which recorded numbers changed, which printed ones, cell by cell, and which assertions fail.
Measured times are not compared: cells that nbval ignores are ignored, and a notebook with equal output is
left as committed.
"""

import difflib
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from tools import environment, notebooks, record
from tools.environment import ROOT
from tools.notebooks import Notebook

REPORT = ROOT / "_build" / "renewed.md"
SHOWN, WIDTH = 12, 110  # maximum changes shown of one record or notebook, and characters per line
UNCOMPARED = "nbval-ignore-output"  # the tag of cells that print times and device names
_NUMBER = re.compile(r"\d")


def printed(notebook: NotebookNode) -> list[str]:
    """Return the text output of each code cell; "" for cells whose output depends on the machine."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return ["" if UNCOMPARED in c.metadata.get("tags", ()) else "\n".join(_texts(c)) for c in cells]


def _texts(cell: NotebookNode) -> Iterator[str]:
    for output in cell.outputs:
        yield output.get("text") or output.get("data", {}).get("text/plain", "")


def figures(before: list[str], after: list[str]) -> Iterator[str]:
    """Yield the lines with numbers that a notebook prints differently than before."""
    for number, (old, new) in enumerate(zip(before, after, strict=True), 1):
        changed = difflib.ndiff(old.splitlines(), new.splitlines())
        told = [line for line in changed if line[0] in "-+" and _NUMBER.search(line)]
        if told:
            yield f"- cell {number}\n" + "\n".join(f"      {_cut(line)}" for line in told)


def renewed(notebook: Notebook) -> str:
    """Execute one notebook; returns what changed or where it stopped, or ""."""
    before, kept = printed(notebook.committed()), notebook.path.read_bytes()
    try:
        notebooks.execute(notebook)
    except CellExecutionError as error:
        return f"## {notebook}: stopped\n\n{_stopped(error)}\n"
    except Exception as error:  # the report names every notebook that stops
        return f"## {notebook}: stopped\n\n{_cut(str(error))}\n"
    told = list(figures(before, printed(notebook.committed())))
    if not told:
        notebook.path.write_bytes(kept)  # only times differ
    return f"## {notebook}\n\n" + _listed(told) if told else ""


def _stopped(error: CellExecutionError) -> str:
    """Return the error, and the lines of the cell at which it occurred."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", error.traceback)
    lines = [line.partition(" ")[2].strip() for line in plain.splitlines() if line.startswith("---->")]
    return "\n".join([f"- {error.ename}: {_cut(error.evalue)}", *(f"      {_cut(line)}" for line in lines)])


def recorded() -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every record in the library."""
    return {name: json.loads(record.path_of(name).read_text(encoding="utf-8")) for name in record.RECORDS}


def changed_rows(name: str, before: list[dict[str, Any]], after: list[dict[str, Any]]) -> str:
    """Return the numbers of one record that have changed, or ""."""
    old, new = (dict(figure for row in rows for figure in _leaves(row)) for rows in (before, after))
    places = [place for place in old | new if old.get(place) != new.get(place)]
    told = [f"- {place}: {_cut(old.get(place))} → {_cut(new.get(place))}" for place in places]
    return f"## recorded {name}\n\n" + _listed(told) if told else ""


def _leaves(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every number of a row with its name: 'v5e:1x1 bf16, cycles 8'."""
    name = row.get("title") or row.get("name") or f"{row['topology']} {row['dtype']}"
    for key, value in row.items():
        inner = value.items() if isinstance(value, Mapping) else [("", value)]
        yield from ((f"{name}, {key} {part}".strip(), one) for part, one in inner)


def _listed(told: list[str]) -> str:
    left = len(told) - SHOWN
    return "\n".join([*told[:SHOWN], *([f"- and {left} more: git diff"] if left > 0 else [])]) + "\n"


def _cut(told: Any) -> str:
    line = " ".join(str(told).split())
    return line if len(line) <= WIDTH else line[: WIDTH - 2] + " …"


def main(stems: list[str]) -> int:
    """Renew everything and write the report; returns 1 if a notebook stopped."""
    environment.apply()
    before = recorded()
    subprocess.run([sys.executable, "-m", "tools.record"], cwd=ROOT, check=True)
    after = recorded()
    records = [told for name in before if (told := changed_rows(name, before[name], after[name]))]
    every = notebooks.every(stems)
    parts = [told for notebook in every if (told := renewed(notebook))]
    stopped = sum(": stopped\n" in part for part in parts)
    said = (
        f"{len(records)} of {len(before)} records and {len(parts)} of {len(every)} notebooks changed, "
        f"{stopped} of them stopped"
    )
    if not (records or parts):
        said = f"Nothing changed: {len(before)} records and {len(every)} notebooks say what they said"
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("\n".join(["# What changed", "", f"{said}.", "", *records, *parts]), encoding="utf-8")
    print(f"{said}: {REPORT.relative_to(ROOT)}")
    return 1 if stopped else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
