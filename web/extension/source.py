"""What text does a page have that is made from a notebook? Its source's: the notebook has plain Markdown."""

import json
import re
from pathlib import Path

import jupytext
from sphinx.application import Sphinx

_SHOWS = re.compile(r'explore\.show\("[\w.]+"\)')


def read(app: Sphinx, docname: str, content: list[str]) -> None:
    """Put the MyST of a notebook's source into it; code and outputs stay the notebook's."""
    notebook = Path(app.env.doc2path(docname))
    source = notebook.with_suffix(".md")
    if notebook.suffix != ".ipynb" or not source.exists():
        return
    app.env.note_dependency(str(source))
    content[0] = with_text(content[0], source)


def with_text(notebook: str, source: Path) -> str:
    """A notebook's JSON with the text cells of a source, which has as many; explorers without their line."""
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
    """Read before anything else does."""
    app.connect("source-read", read, priority=0)
