"""Let a long name of code break at its dots and parentheses in the cell of a table.

The stylesheet keeps such names whole, because a line that breaks anywhere is hard to read. But a table with
several long names would be wider than the page, although a reader expects breaks at these places.
"""

import re

from sphinx.application import Sphinx

from web.extension import finished

SHORTEST = 20  # characters; a shorter name stays whole
_CELL = re.compile(r"<(?P<tag>t[dh])\b[^>]*>.*?</(?P=tag)>", re.DOTALL)
_NAME = re.compile(rf'(?<=<span class="pre">)[^<]{{{SHORTEST},}}(?=</span>)')
_PLACE = re.compile(r"(?<=[.(,=/])(?=[A-Za-z])")


def breakable(html: str) -> str:
    """Return the page with possible line breaks in the long names of its tables."""

    def name(found: re.Match[str]) -> str:
        return _PLACE.sub("<wbr>", found[0])

    return _CELL.sub(lambda cell: _NAME.sub(name, cell[0]), html)


def setup(app: Sphinx) -> None:
    """Run on the finished page."""
    finished.connect(app, breakable, priority=920)
