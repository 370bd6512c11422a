"""Join numbers and units with no-break spaces when a page is written.

Only text is changed: not code, formulas, pictures, or what scripts rewrite. Explorers are changed here and,
when a reader moves their controls, by `Explorer.render`.
"""

import re

from sphinx.application import Sphinx

from scalingbook_lib.words import joined_units
from web.extension import finished

_TAG = re.compile(r"(<[^>]*>)")
_OPENED = re.compile(r"<(?P<name>[a-z][a-z0-9]*)(?P<rest>[^>]*)>", re.IGNORECASE)
_WHOLE = {"code", "pre", "script", "style", "svg", "math", "textarea", "select", "button"}
_PARTS = re.compile(r'class="(?:[^"]* )?(?:katex|answer-box|guess)[" ]')
_VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}


def join(html: str) -> str:
    """Return the page with its numbers and units joined."""
    pieces, inside, depth = _TAG.split(html), "", 0
    for at, piece in enumerate(pieces):
        if not piece.startswith("<"):
            if not inside:
                pieces[at] = joined_units(piece)
        elif inside:
            depth += _step(piece, inside)
            inside = inside if depth else ""
        elif (tag := _OPENED.match(piece)) and _apart(tag):
            inside, depth = tag["name"], 1
    return "".join(pieces)


def _apart(tag: re.Match[str]) -> bool:
    """Return whether the element that a tag opens is left alone."""
    if tag["name"] in _VOID or tag["rest"].endswith("/"):
        return False
    return tag["name"] in _WHOLE or bool(_PARTS.search(tag["rest"]))


def _step(piece: str, name: str) -> int:
    if re.match(rf"</{name}\b", piece):
        return -1
    return int(bool(re.match(rf"<{name}\b(?![^>]*/>)", piece)))


def setup(app: Sphinx) -> None:
    """Run after everything that writes into a page."""
    finished.connect(app, join, priority=870)
