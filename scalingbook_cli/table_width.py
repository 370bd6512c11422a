"""Fit a table into the width of a terminal without breaking a word, or a number from its unit.

A table that is too wide first loses its optional columns, then wraps cells between words, and then continues
in further tables, which repeat its first column.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from scalingbook_cli.answer import COLUMN_GAP, TextTable

KEPT = "\N{NO-BREAK SPACE}"  # between a number and its unit, while a cell is wrapped
WHOLE_COLUMN = "flags"  # its cells are copied into commands, so that their lines are never wrapped
_BEHIND_NUMBER = re.compile(r"(?<=\d) (?=\S)|(?<=\d [kMGTPmµn]) (?=\S)")  # as in '26.4 s', '1.27 M tokens/s'


def fitted(table: TextTable, limit: int) -> Iterator[TextTable]:
    """The table with at most `limit` characters per line, as several tables where one is too wide."""
    if table.width <= limit:
        yield table
        return
    whole = [max(map(_longest_line, (name, *cells))) for name, cells in table.by_column]
    least = [_longest_piece(name, cells, limit) for name, cells in table.by_column]
    headed = [  # if only headings are wrapped
        max(piece, _of_two_lines(name), *map(_longest_line, ("", *cells)))
        for piece, (name, cells) in zip(least, table.by_column, strict=True)
    ]
    optional = [name for name in table.optional if name in table.columns]
    if optional and _total(headed) > limit:
        yield from fitted(table.without(optional[0]), limit)
        return
    for number, places in enumerate(_groups(least, limit)):
        widths, *narrower = ([column[n] for n in places] for column in (whole, headed, least))
        for narrow in narrower:
            widths = _shrunk(widths, narrow, limit)
        part = _wrapped(table.only(places), widths)
        yield replace(part, title="") if number else part


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + COLUMN_GAP * len(widths) - 1


def _longest_line(cell: str) -> int:
    return max(map(len, cell.split("\n")))


def _of_two_lines(heading: str) -> int:
    """The least width in which a heading takes at most two lines."""
    words = heading.split()
    return min(max(len(" ".join(words[:n])), len(" ".join(words[n:]))) for n in range(len(words) + 1))


def _longest_piece(name: str, cells: Sequence[str], limit: int) -> int:
    """The width of a column whose heading and cells are wrapped wherever they can be."""
    if name == WHOLE_COLUMN:
        return max(map(_longest_line, (name, *cells)))
    longest = max(len(piece) for cell in (name, *cells) for piece in re.split("[ \n]", _joined(cell)))
    return min(longest, 2 * limit // 3)  # a longer one, as a name in a program, may be broken


def _joined(text: str) -> str:
    return _BEHIND_NUMBER.sub(KEPT, text)


def _groups(least: Sequence[int], limit: int) -> list[tuple[int, ...]]:
    """The columns of each table: as many as fit, behind the first column."""
    groups: list[tuple[int, ...]] = [(0,)]
    for n in range(1, len(least)):
        longer = (*groups[-1], n)
        if len(longer) > 2 and _total([least[place] for place in longer]) > limit:
            groups.append((0, n))
        else:
            groups[-1] = longer
    return groups


def _shrunk(widths: list[int], least: list[int], limit: int) -> list[int]:
    """The widths after the widest columns got narrower, until they fit or none is wider than in `least`."""
    while _total(widths) > limit and widths != least:
        widest = max((n for n in range(len(widths)) if widths[n] > least[n]), key=widths.__getitem__)
        widths[widest] -= 1
    return widths


def _wrapped(table: TextTable, widths: Sequence[int]) -> TextTable:
    columns, *rows = (
        tuple(_wrap(cell, width) for cell, width in zip(row, widths, strict=True))
        for row in (table.columns, *table.rows)
    )
    return TextTable(table.title, columns, tuple(rows), table.words)


def _wrap(cell: str, width: int) -> str:
    """The cell in lines of at most so many characters."""
    lines = cell.split("\n")
    if max(map(len, lines)) <= width:
        return cell
    wrapped = (
        textwrap.wrap(_joined(line), width, break_on_hyphens=False, replace_whitespace=False) or [""]
        for line in lines
    )
    return "\n".join(line for part in wrapped for line in part).replace(KEPT, " ")
