"""Typeset text output of cells: sentences like prose, aligned lines with scrolling, the rest as code.

A sentence wraps in the text font. Lines with columns aligned by spaces keep them and scroll if they are wider
than the page. Everything else is code and wraps. In sentences and in the cells of tables, 3.8e+25 becomes
3.8 × 10²⁵.
"""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx

_OF_CELL = {"text_plain", "stream", "exercise-output"}  # the last: of a cell that an exercise shows
_ALIGNED = re.compile(r"^ |\S {2,}\S", re.MULTILINE)
_CODE = re.compile(r"[\[\]{}@\\]|%\w|\w\(|\w_\w|->|^\W", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z]{2,}")
_POWER = re.compile(r"(?<![\w.+-])(?P<digits>-?\d+(?:\.\d+)?)e(?P<sign>[+-]?)0*(?P<power>\d+)(?!\w)")
_CELL = re.compile(rf"(?<=<td>){_POWER.pattern}(?=</td>)")


def kind(text: str) -> str:
    """Return the class of an output: "sentence", "aligned", or "" for code."""
    if _ALIGNED.search(text):
        return "aligned"
    return "" if _CODE.search(text) or not _WORD.search(text) else "sentence"


def parts(text: str) -> list[str]:
    """Return the parts of an output, split at blank lines if it mixes sentences and aligned lines."""
    found = [part for part in re.split(r"\n\s*\n", text.strip("\n")) if part.strip()]
    return found if "sentence" in map(kind, found) and len(set(map(kind, found))) > 1 else [text]


def powers(line: str) -> Iterator[nodes.Node]:
    """Yield a line with its powers of ten typeset: 3.8e+25 as 3.8 × 10²⁵."""
    at = 0
    for found in _POWER.finditer(line):
        yield nodes.Text(f"{line[at : found.start()]}{found['digits']}\u00a0×\u00a010")
        yield nodes.superscript("", _exponent(found))
        at = found.end()
    yield nodes.Text(line[at:])


def powers_of_cells(html: str) -> str:
    """Return the HTML of a table, its cells that are such numbers typeset."""
    return _CELL.sub(lambda found: f"{found['digits']}\u00a0×\u00a010<sup>{_exponent(found)}</sup>", html)


def _exponent(found: re.Match[str]) -> str:
    return f"{'−' * (found['sign'] == '-')}{found['power']}"


def write(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Typeset sentences as paragraphs and mark aligned outputs."""
    for block in list(doctree.findall(nodes.literal_block)):
        if _OF_CELL & set(block["classes"]):
            block.replace_self([_set(block, part) for part in parts(block.astext())])
    for block in doctree.findall(nodes.raw):
        if '<table class="dataframe"' in block.astext():
            block[0] = nodes.Text(powers_of_cells(block.astext()))


def _set(block: nodes.literal_block, text: str) -> nodes.Element:
    named = kind(text)
    if named == "sentence":
        lines = (nodes.paragraph("", "", *powers(line)) for line in text.splitlines() if line)
        return nodes.container("", *lines, classes=[*block["classes"], named])
    same = nodes.literal_block(text, text, **block.attributes)
    same["classes"] = [*block["classes"], *[named] * bool(named)]
    return same


def setup(app: Sphinx) -> None:
    """Run before a page is written."""
    app.connect("doctree-resolved", write)
