"""Replace the plain Markdown of a notebook by the MyST of its source when Sphinx reads it."""

import json
import re
from pathlib import Path

import jupytext
from sphinx.application import Sphinx

_SHOWS = re.compile(r'show\.explorer\("[\w.]+"\)')


def read(app: Sphinx, docname: str, content: list[str]) -> None:
    """Put the source's text into a notebook; code and outputs stay the notebook's."""
    notebook = Path(app.env.doc2path(docname))
    source = notebook.with_suffix(".md")
    if notebook.suffix != ".ipynb" or not source.exists():
        return
    app.env.note_dependency(str(source))
    content[0] = with_text(content[0], source)


def with_text(notebook: str, source: Path) -> str:
    """Return the notebook's JSON with the text cells of its source.

    Raises a ValueError if their numbers differ.
    """
    book = json.loads(notebook)
    shown = [cell for cell in book["cells"] if cell["cell_type"] == "markdown"]
    written = [c for c in jupytext.read(source, fmt="md:myst").cells if c.cell_type == "markdown"]
    if len(shown) != len(written):
        raise ValueError(
            f"{source.name} has {len(written)} text cells, its notebook {len(shown)}: make execute"
        )
    for cell, told in zip(shown, written, strict=True):
        cell["source"] = told.source
    for cell in book["cells"]:
        if cell["cell_type"] == "code" and _SHOWS.fullmatch("".join(cell["source"])):
            cell["metadata"].setdefault("tags", []).append("remove-input")
    return json.dumps(book)


def setup(app: Sphinx) -> None:
    """Run before everything else that reads a page."""
    app.connect("source-read", read, priority=0)
