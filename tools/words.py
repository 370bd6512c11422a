"""Count words, cells and tables of every page: `python -m tools.words [pages]`.

Words are those of text, headings, boxes, tables and figure captions (in the notebook's outputs). Inline
formulas and code count as one word, and so do citations; display formulas, code blocks and numbers in tables
do not count. Exercise questions are not part of the page. A cell is visible if its code is, and folded if a
reader has to open it. Tables are those in the text and those in outputs.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import jupytext
import nbformat
from nbformat import NotebookNode

from tools import pages
from tools.pages import Page

FOLDED = {"hide-input", "hide-cell"}
UNSEEN = {"remove-cell", "remove-input"}
_BLOCK = re.compile(r"^(`{3,}).*?^\1$|\$\$.*?\$\$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"^(\([\w-]+\)=|:::.*|:class:.*|\|[-:| ]+\|)$", re.MULTILINE)
_BOX = re.compile(r"^:::\{admonition\} (.+)$", re.MULTILINE)
_ROLE = re.compile(r"\{[a-z:]+\}`([^`<]*)(?:<[^`]*>)?`")
_ONE = re.compile(r"`[^`]+`|\$[^$]+\$")  # code or a formula within a sentence
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_CAPTION = re.compile(r"<figcaption>(.*?)</figcaption>", re.DOTALL)
_TABLE = re.compile(r"^\|[-:| ]+\|$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """Words of prose; cells with visible code, and including folded ones; tables."""

    words: int
    visible: int = 0
    cells: int = 0
    tables: int = 0


def of(page: Page) -> Length:
    """Return the length of a page as last executed."""
    source = jupytext.read(page.path, fmt="md:myst")
    texts = [cell.source for cell in source.cells if cell.cell_type == "markdown"]
    code = [cell for cell in source.cells if cell.cell_type == "code"]
    shown = list(_shown(page))
    visible = sum(not _tags(cell) & (FOLDED | UNSEEN) for cell in code)
    return Length(
        words=sum(map(words, texts)) + sum(words(said) for html in shown for said in _CAPTION.findall(html)),
        visible=visible,
        cells=visible + sum(bool(_tags(cell) & FOLDED) for cell in code),
        tables=sum(len(_TABLE.findall(text)) for text in texts) + sum(map(_is_table, shown)),
    )


def words(text: str) -> int:
    """Return the number of words in MyST text."""
    text = _MARK.sub("", _BOX.sub(r"\1", _BLOCK.sub("", text)))
    text = _LINK.sub(r"\1", _ONE.sub("x", _ROLE.sub(r"\1", text)))
    return sum(_is_word(word, line.startswith("|")) for line in text.splitlines() for word in line.split())


def _is_word(word: str, in_table: bool) -> bool:
    return any(map(str.isalpha if in_table else str.isalnum, word))


def _shown(page: Page) -> Iterator[str]:
    """Yield the visible HTML outputs of a page's cells."""
    notebook = page.path.with_suffix(".ipynb")
    for cell in nbformat.read(notebook, as_version=4).cells if notebook.exists() else ():
        if cell.cell_type == "code" and not _tags(cell) & {"remove-cell", "remove-output"}:
            yield from (one.data["text/html"] for one in cell.outputs if "text/html" in one.get("data", {}))


def _is_table(html: str) -> bool:
    """Return whether HTML is a table that is not part of an explorer or a figure."""
    return "<table" in html and "data-explorer" not in html and "<figure" not in html


def _tags(cell: NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", ()))


def main(names: list[str]) -> None:
    """Print a line per page, named or all, and totals of main and deeper pages."""
    found = [page for page in pages.every() if not names or {page.name, page.stem} & {*names}]
    lengths = {page: of(page) for page in found}
    print(f"{'page':28}{'words':>8}{'visible':>9}{'with folded':>13}{'tables':>8}")
    for page, one in lengths.items():
        shown = f"  {page.name}" if page.deeper else page.name
        print(f"{shown:28}{one.words:8,}{one.visible:9}{one.cells:13}{one.tables:8}")
    for deeper, told in ((False, "main lanes"), (True, "deeper pages")):
        ranked = [one for page, one in lengths.items() if page.deeper == deeper]
        print(f"{told:28}{sum(one.words for one in ranked):8,}{sum(one.visible for one in ranked):9}")


if __name__ == "__main__":
    main(sys.argv[1:])
