"""What does a reader download? Each notebook with the library inside: it runs in an empty Colab as it is.

Its pictures are PNG, which every front end shows before the notebook is run. Drawing all of them would make
the build a fifth longer, so a site that is only read or tested on this machine is built without them: its
server draws the pictures of a notebook when it is downloaded.
"""

import json
from pathlib import Path

from nbformat import NotebookNode, v4

from tools import first_cell, notebooks, wheel
from web import rasters, stamp

FOLDER = "notebooks"


def write(made: Path, source: Path, *, pictures: bool) -> None:
    """Put every notebook of the book below `source` into the site, with what it needs in its first cell."""
    carrying = first_cell.carrying(wheel.carried())
    for notebook in notebooks.every(root=source):
        if notebook.path.exists():
            target = made / FOLDER / f"{notebook}.ipynb"
            target.parent.mkdir(parents=True, exist_ok=True)
            text = carried(notebook, carrying)
            target.write_text(drawn(text) if pictures else text, encoding="utf-8")


def carried(notebook: notebooks.Notebook, carrying: str) -> str:
    """The text of a notebook with the cell that carries the library."""
    made = first_cell.put(v4.reads(notebook.path.read_text(encoding="utf-8")), carrying)
    made.cells[0].metadata["_kg_hide-input"] = True  # Kaggle folds no cell by JupyterLab's or Colab's word
    made.metadata["edition"] = {"version": stamp.VERSION, "day": str(stamp.day())}
    return _written(made)


def drawn(notebook: str) -> str:
    """The text of a notebook of the site, with its pictures as PNG."""
    return _written(rasters.shown(v4.reads(notebook)))


def _written(notebook: NotebookNode) -> str:
    # nbformat's own function would validate it twice and indent it, in six times the time
    return json.dumps(notebook, ensure_ascii=False)
