"""Write the downloadable notebooks, which carry the library in their first cell and run alone in Colab.

Pictures are PNG, which every front end shows in an untrusted notebook. Rendering all of them would make the
build a fifth longer, so local builds leave them out, and the local server renders them on download.
"""

import json
from pathlib import Path

from nbformat import NotebookNode, v4

from tools import first_cell, notebooks, wheel
from web import rasters, stamp

FOLDER = "notebooks"
KAGGLE = "kernel-metadata.json"


def write(made: Path, source: Path, *, pictures: bool) -> None:
    """Write every notebook of the book below `source` into the site."""
    carrying = first_cell.carrying(wheel.carried())
    for notebook in notebooks.every(root=source):
        if notebook.path.exists():
            target = made / FOLDER / f"{notebook}.ipynb"
            target.parent.mkdir(parents=True, exist_ok=True)
            text = carried(notebook, carrying)
            target.write_text(drawn(text) if pictures else text, encoding="utf-8")
    if (made / FOLDER).exists():  # a test's site has no notebook
        (made / FOLDER / KAGGLE).write_text(kaggle("chapters/sharding.ipynb") + "\n", encoding="utf-8")


def kaggle(notebook: str) -> str:
    """Return the file with which `kaggle kernels push` runs a notebook on a TPU v5e-8."""
    return json.dumps(
        {
            "id": "YOUR-KAGGLE-NAME/how-fast-can-it-run",
            "title": "How fast can it run",
            "code_file": notebook,
            "language": "python",
            "kernel_type": "notebook",
            "is_private": True,
            "enable_internet": True,
            "enable_tpu": True,
            "machine_shape": "TpuV5E8",
        },
        indent=2,
    )


def carried(notebook: notebooks.Notebook, carrying: str) -> str:
    """Return the text of a notebook whose first cell carries the library."""
    made = first_cell.put(v4.reads(notebook.path.read_text(encoding="utf-8")), carrying)
    made.cells[0].metadata["_kg_hide-input"] = (
        True  # because JupyterLab's and Colab's metadata do not fold a cell on Kaggle
    )
    made.metadata["edition"] = {"version": stamp.VERSION, "day": str(stamp.day())}
    return _written(made)


def drawn(notebook: str) -> str:
    """Return the text of a downloadable notebook with its pictures as PNG."""
    return _written(rasters.with_png(v4.reads(notebook)))


def _written(notebook: NotebookNode) -> str:
    # nbformat's own function would validate the notebook twice and indent it, in six times the time
    return json.dumps(notebook, ensure_ascii=False)
