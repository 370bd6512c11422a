"""Number figures, tables, formulas, explorers and exercises by chapter: Figure 2.3.

Chapters count in reading order, and the first page below chapter 2 is 2A. Numbers change with the text;
anchors are made from names and stay. An exercise has the number of its worked solution on every page.
References use anchors, on another page after its name: {ref}`fig-tpus-cycle` reads "Figure 3.1", and
{eq}`the time of both <rooflines#eq-t>` reads "the time of both (2.4)". On pages without a number, such as the
glossary, tables have titles only.
"""

import re
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import yaml
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

from tools import pages
from tools.environment import ROOT
from web.extension import readable
from web.extension.page_data import page_data

LOG = logging.getLogger(__name__)
_FIGURE = re.compile(r'<figure class="fig" id="(?P<id>[^"]+)">.*?<figcaption>', re.S)
_EXPLORER = re.compile(r'class="explorer"[^>]* id="(?P<id>[^"]+)".*?<p class="ex-title"[^>]*>', re.S)
_TABLE = re.compile(r'<table class="dataframe">(?:<caption>(?P<title>.*?)</caption>)?')
_TITLE = "Table: "  # the beginning of the paragraph above a Markdown table
_EXERCISE = re.compile(
    r'(?<= id=")(?P<id>exercise-(?P<stem>[a-z0-9_]+)-[\w-]+)">(?P<own>\d+)\. (?P<title>.*?)(?= <span)'
)


_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)


def of_pages(root: Path) -> dict[str, str]:
    """Return the number of every chapter page by its name: "2", and "2A" for the first page below it."""
    return _numbered_pages((root / "_toc.yml").read_text(encoding="utf-8"))


@cache  # two events of each page call this
def _numbered_pages(contents: str) -> dict[str, str]:
    told = yaml.safe_load(contents)
    ranked = (one for part in told.get("parts", ()) for one in part["chapters"])
    chapters = [one for one in ranked if one["file"].startswith("chapters/")]
    found: dict[str, str] = {}
    for at, one in enumerate(chapters, 1):
        found[one["file"]] = str(at)
        files = (deeper["file"] for deeper in one.get("sections", ()))
        deeper_pages = (file for file in files if file.startswith("chapters/"))
        found |= {file: f"{at}{letter}" for letter, file in zip(ascii_uppercase, deeper_pages, strict=False)}
    return found


def rank(page: str) -> int:
    """Return the position of a chapter page in the table of contents."""
    return list(of_pages(ROOT)).index(f"chapters/{page}")


def title(page: str) -> str:
    """Return the title of a page in the table of contents."""
    return _titles((ROOT / "_toc.yml").read_text(encoding="utf-8")).get(page) or heading(page)


def named(page: str) -> str:
    """Return the number and title of a chapter page: "2A Narrow layers"."""
    return f"{of_pages(ROOT)[f'chapters/{page}']} {title(f'chapters/{page}')}"


@cache
def _titles(contents: str) -> dict[str, str]:
    return dict(_listed(yaml.safe_load(contents)["parts"]))


def _listed(entries: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for one in entries:
        if "title" in one:
            yield one["file"], one["title"]
        yield from _listed(one.get("chapters", one.get("sections", [])))


def heading(page: str) -> str:
    """Return the title on a page."""
    found = _HEADING.search((ROOT / f"{page}.md").read_text(encoding="utf-8"))
    return found[1] if found else page


def of_exercise(page: str, stem: str, own: int) -> str:
    """Return the number of an exercise that a page shows: its chapter's number, then its own.

    On a deeper page that is still the chapter's number; on a page of another chapter, the number of the
    exercise's own chapter.
    """
    shown_by = page if pages.chapter(page) == stem else stem
    return f"{of_pages(ROOT)[f'chapters/{shown_by}'].rstrip(ascii_uppercase)}.{own}"


class Count:
    """The counters of one page, by kind, and the anchors that are linked."""

    def __init__(self, number: str, page: str) -> None:
        self.number = number
        self.page = page
        self.counted: dict[str, int] = {}
        self.anchors: dict[str, int] = {}
        self.said: dict[str, str] = {}  # the text of a reference, by anchor

    def next(self, kind: str) -> str:
        """Return the next number of a kind."""
        own = self.counted[kind] = self.counted.get(kind, 0) + 1
        return f"{self.number}.{own}"

    def anchor(self, name: str) -> str:
        """Return an anchor that is unique on this page."""
        times = self.anchors[name] = self.anchors.get(name, 0) + 1
        return name if times == 1 else f"{name}-{times}"

    def raw(self, html: str, section: str) -> str:
        """Return the HTML of cells and exercises, with numbers."""
        html = _FIGURE.sub(lambda found: found[0] + self._marked("Figure", found["id"]), html)
        html = _EXPLORER.sub(lambda found: found[0] + self._marked("Explorer", found["id"]), html)
        html = _TABLE.sub(lambda found: self._captioned(section, found["title"]), html)
        return _EXERCISE.sub(self._exercise, html)

    def _marked(self, kind: str, anchor: str) -> str:
        self.said[anchor] = f"{kind} {self.next(kind)}"
        return f'<span class="number">{self.said[anchor]}</span>{link(kind, anchor)} '

    def _captioned(self, section: str, title: str | None) -> str:
        anchor = self.anchor(f"table-{section}")
        return f'<table class="dataframe" id="{anchor}">{self.caption(anchor, title or "")}'

    def caption(self, anchor: str, title: str) -> str:
        """Return the caption of a table with its number; warns if it has no title."""
        if not title:
            LOG.warning("the table %s has no title: write `Table: ...` above it", anchor, type="numbers")
        return f"<caption>{self._marked('Table', anchor)}{title}</caption>"

    def _exercise(self, found: re.Match[str]) -> str:
        """Return the heading of an exercise with its number."""
        told = of_exercise(self.page, found["stem"], int(found["own"]))
        self.said[found["id"]] = f"Exercise {told}"
        return f'{found["id"]}"><span>{told}. {found["title"]}</span>{link("Exercise", found["id"])}'


def link(kind: str, anchor: str) -> str:
    """Return the link sign next to a number."""
    said = f"Link to this {kind.lower()}"
    return f'<a class="headerlink" href="#{escape(anchor)}" title="{said}" aria-label="{said}">#</a>'


def write(app: Sphinx, doctree: nodes.document) -> None:
    """Number everything on a page."""
    page, known = app.env.docname, of_pages(Path(app.srcdir))
    _of(app.env)[page] = {}
    _follow(app, doctree)
    if page not in known:
        for table in list(doctree.findall(nodes.table)):
            _entitle(table, page)
        return
    app.env.note_dependency(str(Path(app.srcdir) / "_toc.yml"))
    count = Count(known[page], page.removeprefix("chapters/"))
    for node, section in _numbered(doctree):
        if isinstance(node, nodes.raw):
            node[0] = nodes.Text(count.raw(node.astext(), section))
        elif isinstance(node, nodes.table):
            _table(node, count, section)
        else:
            _formula(node, count)
    _of(app.env)[page] = count.said


def _numbered(doctree: nodes.document) -> Iterator[tuple[Any, str]]:
    """Yield the elements that may have a number, in order, with the anchor of their section."""
    for node in list(doctree.findall(nodes.Element)):
        is_html = isinstance(node, nodes.raw) and "html" in node.get("format", "")
        if is_html or isinstance(node, nodes.table | nodes.math_block):
            above = node.parent
            while not isinstance(above, nodes.section | nodes.document):
                above = above.parent
            yield node, readable.section_anchor(above) or "page"


def _table(table: nodes.table, count: Count, section: str) -> None:
    anchor = count.anchor(f"table-{section}")
    table["ids"].append(anchor)
    table.insert(0, nodes.raw("", count.caption(anchor, escape(_title(table))), format="html"))


def _entitle(table: nodes.table, page: str) -> None:
    """Give a table its title, without a number."""
    if title := _title(table):
        caption = f"<caption>{escape(title)}</caption>"
    elif title := _heading_above(table):  # a reader sees it there; a screen reader needs it at the table
        caption = f'<caption class="spoken">{escape(title)}</caption>'
    else:
        if not page.startswith("api/"):  # whose tables autodoc writes
            LOG.warning("a table has no title: write `Table: ...` above it", location=table, type="numbers")
        return
    table.insert(0, nodes.raw("", caption, format="html"))


def _heading_above(table: nodes.table) -> str:
    """Return the heading of a section, or the title of a fold, that stands directly above a table."""
    at = table.parent.index(table)
    above = table.parent[at - 1] if at else None
    return above.astext() if isinstance(above, nodes.title) else ""


def _title(table: nodes.table) -> str:
    """Return the text after `Table: ` in the paragraph above a table, which is removed."""
    at = table.parent.index(table)
    above = table.parent[at - 1] if at else None
    if not isinstance(above, nodes.paragraph) or not above.astext().startswith(_TITLE):
        return ""
    table.parent.remove(above)
    return above.astext().removeprefix(_TITLE)


def _formula(formula: nodes.math_block, count: Count) -> None:
    """Number a formula; its anchor comes from its left-hand side: `eq-t-math`."""
    bare = re.sub(r"\\(?:text|mathrm|operatorname|mathbf)\b", "", re.split(r"=|\\[lg]e", formula.astext())[0])
    anchor = count.anchor(f"eq-{nodes.make_id(bare) or 'formula'}")
    formula["ids"].append(anchor)
    formula["said"] = count.next("Formula")
    count.said[anchor] = f"Formula {formula['said']}"
    formula["anchor"] = anchor


def name_page(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Show a chapter's number above its title."""
    if number := of_pages(Path(app.srcdir)).get(page):
        said = f'<p class="page-number">Chapter {number}</p>\n<h1>'
        context["body"] = context.get("body", "").replace("<h1>", said, 1)


def _of(env: BuildEnvironment) -> dict[str, dict[str, str]]:
    """Return the text of references, by page and anchor, recorded while pages are read."""
    return page_data(env, "numbers")


def refer(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.Element
) -> nodes.Element | None:
    """Resolve a reference to a numbered element; None leaves others to Sphinx."""
    here = node["refdoc"]
    page, _, anchor = node["reftarget"].rpartition("#")
    to = _named(env, page) if page else here
    said = _of(env).get(to, {}).get(anchor)
    if said is None or node["reftype"] not in ("ref", "eq"):
        return None  # Sphinx reports unknown references
    if node["refexplicit"]:
        said = f"{shown.astext()} ({said.split()[-1]})"
    return make_refnode(app.builder, here, to, anchor, nodes.inline("", said))


def _named(env: BuildEnvironment, page: str) -> str:
    """Return a chapter page as Sphinx names it, or a page outside the chapters."""
    return f"chapters/{page}" if f"chapters/{page}" in env.found_docs else page


def _follow(app: Sphinx, doctree: nodes.document) -> None:
    """Rebuild this page when a page whose numbers it refers to changes."""
    for node in doctree.findall(pending_xref):
        page, found, _ = node.get("reftarget", "").rpartition("#")
        if found and (other := _named(app.env, page)) in app.env.found_docs:
            app.env.note_dependency(app.env.doc2path(other))


def setup(app: Sphinx) -> None:
    """Run after a page was read."""
    app.connect("doctree-read", write, priority=900)
    app.connect("missing-reference", refer)
    app.connect("html-page-context", name_page, priority=850)
