"""Keep a formula and the punctuation beside it on one line when a page is written.

A browser treats a formula as a box and may break the line on both sides of it: a parenthesis would end one
line, and a comma would begin the next.
"""

import re

from sphinx.application import Sphinx

from web.extension import finished

_FORMULA = re.compile(r'(?P<before>[(\[“‘]*)<span class="math">')
_SPAN = re.compile(r"<(?P<closing>/?)span\b")
_AFTER = re.compile(r"[),.;:!?\]”’'-]+")
_PART = '<span class="base">'  # KaTeX's parts of a formula: a line may break between two of them


def join(html: str) -> str:
    """Return the page with formulas and their punctuation in elements that break only inside a formula."""
    pieces, at = [], 0
    while formula := _FORMULA.search(html, at):
        start = formula.end("before")
        end = _end(html, start)
        after = _AFTER.match(html, end)
        pieces.append(html[at : formula.start()])
        if formula["before"] or after:
            stop = after.end() if after else end
            typeset = _breakable(html[start:end])
            pieces.append(f'<span class="unbroken">{formula["before"]}{typeset}{html[end:stop]}</span>')
        else:
            stop = end
            pieces.append(html[start:end])
        at = stop
    return "".join([*pieces, html[at:]])


def _end(html: str, start: int) -> int:
    """Return where the span ends that starts at `start`."""
    depth = 0
    for tag in _SPAN.finditer(html, start):
        depth += -1 if tag["closing"] else 1
        if not depth:
            return html.index(">", tag.start()) + 1
    raise ValueError(f"a formula is not closed: {html[start : start + 80]!r}")


def _breakable(formula: str) -> str:
    """Return the formula with a possible line break before each of its parts but the first."""
    first, *rest = formula.split(_PART)
    return _PART.join([first, *rest[:1]]) + "".join(f"<wbr>{_PART}{part}" for part in rest[1:])


def setup(app: Sphinx) -> None:
    """Run after column headings have been rewritten as text."""
    finished.connect(app, join, priority=910)
