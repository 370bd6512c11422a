"""The previous and next links: chapters in order, deeper pages in a chain that leads back.

Solutions are separate. Reference pages follow the last chapter, wherever the table of contents lists them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from web.extension import contents

Links = tuple[str | None, str | None]
_APART = "solutions/"
_CHAPTER = "chapters/"


def neighbors(below: dict[str, list[str]], root: str) -> dict[str, Links]:
    """Return the previous and the next page of each page; `below` has the pages under each page."""
    listed = _read(below.get(root, []))
    first = [root, *sorted(listed, key=lambda page: not page.startswith(_CHAPTER))]
    found: dict[str, Links] = _chain(first)
    for page in first[1:]:
        deeper = _read(below.get(page, []))
        chain = _chain([page, *deeper])
        found |= {one: (chain[one][0], chain[one][1] or found[page][1]) for one in deeper}
    answers = (page for pages in below.values() for page in pages if page.startswith(_APART))
    return found | {page: (page.replace(_APART, _CHAPTER), None) for page in answers}


def _read(pages: Iterable[str]) -> list[str]:
    """Return the pages that are read in sequence, without solutions."""
    return [page for page in pages if not page.startswith(_APART)]


def _chain(pages: Sequence[str]) -> dict[str, Links]:
    behind = [*pages[1:], None]
    return {page: (before, after) for before, page, after in zip([None, *pages], pages, behind, strict=False)}


def relate(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Set the links of a page to the reading order instead of the order of the table of contents."""
    found = neighbors(app.env.toctree_includes, app.config.root_doc).get(page)
    if found is None:
        return
    listed = contents.titles(app)
    for name, other in zip(("prev", "next"), found, strict=True):
        context[name] = other and {
            "link": app.builder.get_relative_uri(page, other),  # type: ignore[attr-defined]
            "title": listed.get(other) or app.env.titles[other].astext(),
        }


def setup(app: Sphinx) -> None:
    """Run before the page is written."""
    app.connect("html-page-context", relate)
