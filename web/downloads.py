"""What does a reader download? Each notebook with the library inside: it runs in an empty Colab as it is."""

from pathlib import Path

import nbformat

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
            carried = first_cell.put(notebook.committed(), carrying)
            carried.metadata["edition"] = {"version": stamp.VERSION, "day": str(stamp.day())}
            nbformat.write(carried, target)
