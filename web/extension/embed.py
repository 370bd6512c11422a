"""How does an explorer stand on somebody else's page? Alone, as `embed/rooflines-roofline.html`.

Only these pages may be framed (`web.serve` says so). Each has its licence, and a link to where the
explorer is explained; the address carries the values of its controls.
"""

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from scalingbook_lib.chapters import explorers

FOLDER = "embed"
_SHOWN = re.compile(r'data-explorer="([^"]+)" id="([^"]+)"')


def shown(app: Sphinx) -> dict[str, tuple[str, str]]:
    """The page and the anchor of every explorer: the first where it stands twice."""
    found: dict[str, tuple[str, str]] = {}
    for page in sorted(app.env.found_docs):
        if page.startswith("chapters/"):
            for raw in app.env.get_doctree(page).findall(nodes.raw):
                for key, anchor in _SHOWN.findall(raw.astext()):
                    found.setdefault(key, (page, anchor))
    return found


def collect(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each."""
    places = shown(app)
    for key, explorer in explorers.catalogue().items():
        if key in places:
            page, anchor = places[key]
            told = {
                "title": explorer.title, "explorer": explorer.html(), "home": page, "anchor": anchor,
                "chapter": app.env.titles[page].astext(), "book_alone": True,
            }  # fmt: skip
            yield f"{FOLDER}/{key.replace('.', '-')}", told, "embed.html"


def setup(app: Sphinx) -> None:
    """Run when all pages stand."""
    app.connect("html-collect-pages", collect)
