"""Show a table: as HTML in a page or notebook, as aligned text elsewhere."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

_LETTERS = re.compile(r"\b(?P<divided>[A-Z]/)?(?P<letter>[A-Z])_(?P<index>[a-z]+|P)\b")  # W_hbm, C/W_hbm, A_P


@dataclass(frozen=True, slots=True)
class Table:
    """A title, column headings, and rows of the same length; cells may contain HTML.

    With a `summary`, the HTML shows only that line until a reader opens it.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    summary: str = ""

    def _repr_html_(self) -> str:
        lines = [("th", map(_typeset, self.heads)), *(("td", row) for row in self.rows)]
        body = "".join(
            f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>" for tag, cells in lines
        )
        html = f'<table class="dataframe"><caption>{escape(self.title)}</caption>{body}</table>'
        return f"<details><summary>{escape(self.summary)}</summary>{html}</details>" if self.summary else html

    def __repr__(self) -> str:
        lines = (self.heads, *self.rows)
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        aligned = (
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )
        return "\n".join((self.title, *aligned))


def _typeset(head: str) -> str:
    """Return a heading as HTML: the letters of a formula are italic, and an index is lowered."""

    def lowered(found: re.Match[str]) -> str:
        divided = f"<i>{found['divided'][0]}</i>/" if found["divided"] else ""
        return f"{divided}<i>{found['letter']}</i><sub>{found['index']}</sub>"

    return _LETTERS.sub(lowered, head)


def table(head: str, rows: Iterable[Sequence[object]], *, title: str, summary: str = "") -> Table:
    """Return a table: `table("chip, bf16", [("TPU v5e", 197), ...], title="Peaks")`.

    `head` has the column headings, separated by commas. With a `summary`, the table is folded under it.
    """
    heads = tuple(head.split(", "))
    lines = tuple(tuple(map(str, row)) for row in rows)
    for line in lines:
        if len(line) != len(heads):
            raise ValueError(f"{len(heads)} heads ({head}) and a row of {len(line)}: {', '.join(line)}")
    return Table(title, heads, lines, summary)
