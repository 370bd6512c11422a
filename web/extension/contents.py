"""The table of contents in the sidebar: all pages by part, with the current page's branch open.

The theme would render it from Sphinx's toctrees for each page, which took a third of a build.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from tools import pages
from web.extension import numbers

TOGGLE = '<span class="toctree-toggle" role="presentation"><i class="fa-solid fa-chevron-down"></i></span>'


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the table of contents, with the pages below it."""

    page: str
    title: str
    below: tuple["Entry", ...] = ()
    number: str = ""  # of a chapter's page, as the page shows it

    def has(self, page: str) -> bool:
        """Return whether the page is this one or below it."""
        return page == self.page or any(one.has(page) for one in self.below)


Parts = list[tuple[str, tuple[Entry, ...]]]


def parts(app: Sphinx) -> Parts:
    """Return the parts of the book: the caption of each, and its pages."""
    trees = app.env.tocs[app.config.root_doc].findall(addnodes.toctree)
    return [
        (tree.get("caption") or "", tuple(_with_solutions(app, entry) for entry in _entries(app, tree)))
        for tree in trees
    ]


def titles(app: Sphinx) -> dict[str, str]:
    """Return the title of every page in the table of contents, with a chapter's number."""

    def listed(entries: Iterable[Entry]) -> Iterable[Entry]:
        for entry in entries:
            yield from (entry, *listed(entry.below))

    found = (entry for _, entries in _of(app) for entry in listed(entries))
    return {entry.page: f"{entry.number} {entry.title}".strip() for entry in found}


def _of(app: Sphinx) -> Parts:
    """Return the parts, computed once per build."""
    if not hasattr(app, "book_contents"):
        app.book_contents = parts(app)  # type: ignore[attr-defined]
    return app.book_contents  # type: ignore[attr-defined]


def _with_solutions(app: Sphinx, entry: Entry) -> Entry:
    """Return the second half of a split chapter also lists the solutions below the first half."""
    name = PurePosixPath(entry.page).name
    solutions = f"solutions/{pages.chapter(name, Path(app.srcdir))}"
    missing = entry.page == f"chapters/{name}" and not any(one.page == solutions for one in entry.below)
    if not missing or solutions not in app.env.found_docs:
        return entry
    return replace(entry, below=(*entry.below, Entry(solutions, "Solutions")))


def _entries(app: Sphinx, tree: addnodes.toctree) -> Iterable[Entry]:
    known = numbers.of_pages(Path(app.srcdir))
    for title, page in tree["entries"]:
        trees = app.env.tocs[page].findall(addnodes.toctree)
        below = tuple(entry for one in trees for entry in _entries(app, one))
        yield Entry(page, title or app.env.titles[page].astext(), below, known.get(page, ""))


def drawn(contents: Parts, page: str, address: Callable[[str], str]) -> str:
    """Return the sidebar's HTML for a page; `address` gives the relative address of another page."""
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
    number = f'<span class="toc-number">{entry.number}</span> ' if entry.number else ""
    said = f'{number}<span class="toc-title">{title}</span>'
    classes = f"toctree-l{level}{' current active' * here}{' has-children' * bool(entry.below)}"
    link = f'class="{"current " * (entry.page == page)}reference internal" href="{address(entry.page)}"'
    row = f'<li class="{classes}"><a {link}>{said}</a>'
    if entry.below:
        named = f'<summary aria-label="Pages below {escape(entry.title)}">{TOGGLE}</summary>'
        below = _list(entry.below, page, address, level + 1)
        row += f"<details{' open="open"' * here}>{named}{below}\n</details>"
    return row + "</li>"


def show(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Add the table of contents to a page's template context."""
    context["book_contents"] = drawn(_of(app), page, context["pathto"])


def setup(app: Sphinx) -> None:
    """Run before the theme builds the page's sidebar."""
    app.connect("html-page-context", show, priority=100)
