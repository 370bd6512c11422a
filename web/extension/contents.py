"""How does the table of contents beside a page look? All pages by part, the branch of the page itself open.

The theme draws it from Sphinx's trees anew for each page, which took a third of a build.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

TOGGLE = '<span class="toctree-toggle" role="presentation"><i class="fa-solid fa-chevron-down"></i></span>'


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the contents, with the pages below it."""

    page: str
    title: str
    below: tuple["Entry", ...]

    def has(self, page: str) -> bool:
        """Is the page this one, or below it?"""
        return page == self.page or any(one.has(page) for one in self.below)


Parts = list[tuple[str, tuple[Entry, ...]]]


def parts(app: Sphinx) -> Parts:
    """The parts of the book: the caption of each, and its pages."""
    trees = app.env.tocs[app.config.root_doc].findall(addnodes.toctree)
    return [(tree.get("caption") or "", tuple(_entries(app, tree))) for tree in trees]


def _entries(app: Sphinx, tree: addnodes.toctree) -> Iterable[Entry]:
    for title, page in tree["entries"]:
        trees = app.env.tocs[page].findall(addnodes.toctree)
        below = tuple(entry for one in trees for entry in _entries(app, one))
        yield Entry(page, title or app.env.titles[page].astext(), below)


def drawn(contents: Parts, page: str, address: Callable[[str], str]) -> str:
    """The contents as they stand beside a page; `address` is that of another page, seen from it."""
    return "".join(
        f"{_heading(caption)}{_list(entries, page, address, 1)}\n" for caption, entries in contents
    )


def _heading(caption: str) -> str:
    said = f'<span class="caption-text">{escape(caption)}</span>'
    return f'<p aria-level="2" class="caption" role="heading">{said}</p>\n' if caption else ""


def _list(entries: tuple[Entry, ...], page: str, address: Callable[[str], str], level: int) -> str:
    current = ["current"] * any(entry.has(page) for entry in entries)
    classes = " ".join([*current, "nav bd-sidenav"] if level == 1 else current)
    rows = "\n".join(_row(entry, page, address, level) for entry in entries)
    return f"<ul{f' class="{classes}"' * bool(classes)}>\n{rows}\n</ul>"


def _row(entry: Entry, page: str, address: Callable[[str], str], level: int) -> str:
    here, title = entry.has(page), escape(entry.title, quote=False)
    classes = f"toctree-l{level}{' current active' * here}{' has-children' * bool(entry.below)}"
    link = f'class="{"current " * (entry.page == page)}reference internal" href="{address(entry.page)}"'
    row = f'<li class="{classes}"><a {link}>{title}</a>'
    if entry.below:
        named = f'<summary aria-label="Pages below {escape(entry.title)}">{TOGGLE}</summary>'
        below = _list(entry.below, page, address, level + 1)
        row += f"<details{' open="open"' * here}>{named}{below}\n</details>"
    return row + "</li>"


def show(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Give the page its contents."""
    if not hasattr(app, "book_contents"):
        app.book_contents = parts(app)  # type: ignore[attr-defined]
    context["book_contents"] = drawn(app.book_contents, page, context["pathto"])  # type: ignore[attr-defined]


def setup(app: Sphinx) -> None:
    """Run before the theme looks at the page's sidebar."""
    app.connect("html-page-context", show, priority=100)
