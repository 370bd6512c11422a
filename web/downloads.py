"""What does a reader download? Each notebook with the library inside: it runs in an empty Colab as it is."""

import json
from pathlib import Path

from nbformat import v4

from tools import first_cell, notebooks, wheel
from web import stamp

FOLDER = "notebooks"


def write(made: Path, source: Path) -> None:
    """Put every notebook of the book below `source` into the site, with what it needs in its first cell."""
    carrying = first_cell.carrying(wheel.carried())
    for notebook in notebooks.every(root=source):
        if notebook.path.exists():
            target = made / FOLDER / f"{notebook}.ipynb"
            target.parent.mkdir(parents=True, exist_ok=True)
            # nbformat's own functions would validate it twice and indent it, in six times the time
            carried = first_cell.put(v4.reads(notebook.path.read_text(encoding="utf-8")), carrying)
            carried.metadata["edition"] = {"version": stamp.VERSION, "day": str(stamp.day())}
            target.write_text(json.dumps(carried, ensure_ascii=False), encoding="utf-8")
