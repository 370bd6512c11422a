"""Which number has a figure, a table, a formula? Its chapter's, then its own: Figure 2.3.

Chapters count in reading order, and the first page below chapter 2 is 2A. Numbers move with the text;
anchors are made from names, and stay. Exercises count on each page for themselves, as figures do: the worked
solutions and the notebook, which hold those of all pages of a chapter, have the same titles.
A text refers to them by their anchors, on another page after its name: {ref}`fig-tpus-cycle` reads
Figure 3.1, and {eq}`the time of both <rooflines#eq-t>` reads the time of both (2.4).
"""

import re
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

from web.extension.noted import noted

_FIGURE = re.compile(r'<figure class="fig" id="(?P<id>[^"]+)">.*?<figcaption>', re.S)
_EXPLORER = re.compile(r'class="explorer"[^>]* id="(?P<id>[^"]+)".*?<p class="ex-title"[^>]*>', re.S)
_TABLE = re.compile(r'<table class="dataframe">')
_EXERCISE = re.compile(r'(?<= id=")(?P<id>exercise-[\w-]+)">\d+\. (?P<title>.*?)(?= <span)')


def of_pages(root: Path) -> dict[str, str]:
    """The number of every page of a chapter, by its name: 2, and 2A for the first below it."""
    return _numbered_pages((root / "_toc.yml").read_text(encoding="utf-8"))


@cache  # two events of each page ask
def _numbered_pages(contents: str) -> dict[str, str]:
    told = yaml.safe_load(contents)
    ranked = (one for part in told.get("parts", ()) for one in part["chapters"])
    chapters = [one for one in ranked if one["file"].startswith("chapters/")]
    found: dict[str, str] = {}
    for at, one in enumerate(chapters, 1):
        found[one["file"]] = str(at)
        for below, deeper in enumerate(one.get("sections", ())):
            found[deeper["file"]] = f"{at}{chr(ord('A') + below)}"
    return found


class Count:
    """What is numbered on one page: each kind by itself, with the anchor that is linked."""

    def __init__(self, number: str) -> None:
        self.number = number
        self.counted: dict[str, int] = {}
        self.anchors: dict[str, int] = {}
        self.said: dict[str, str] = {}  # by anchor: what a reference reads

    def next(self, kind: str) -> str:
        """The next one's number."""
        own = self.counted[kind] = self.counted.get(kind, 0) + 1
        return f"{self.number}.{own}"

    def anchor(self, name: str) -> str:
        """A name that no other has on this page."""
        times = self.anchors[name] = self.anchors.get(name, 0) + 1
        return name if times == 1 else f"{name}-{times}"

    def raw(self, html: str, section: str) -> str:
        """What cells and exercises have drawn, with its numbers."""
        html = _FIGURE.sub(lambda found: found[0] + self._marked("Figure", found["id"]), html)
        html = _EXPLORER.sub(lambda found: found[0] + self._marked("Explorer", found["id"]), html)
        html = _TABLE.sub(lambda _: self._captioned(section), html)
        return _EXERCISE.sub(self._exercise, html)

    def _marked(self, kind: str, anchor: str) -> str:
        self.said[anchor] = f"{kind} {self.next(kind)}"
        return f'<span class="number">{self.said[anchor]}</span>{link(kind, anchor)} '

    def _captioned(self, section: str) -> str:
        anchor = self.anchor(f"table-{section}")
        return f'<table class="dataframe" id="{anchor}">{self.caption(anchor)}'

    def caption(self, anchor: str) -> str:
        """A table's number; what it says stands in the text before it."""
        return f"<caption>{self._marked('Table', anchor).strip()}</caption>"

    def _exercise(self, found: re.Match[str]) -> str:
        """An exercise has the page's number, then its place on the page."""
        told = self.next("Exercise")
        self.said[found["id"]] = f"Exercise {told}"
        return f'{found["id"]}"><span>{told}. {found["title"]}</span>{link("Exercise", found["id"])}'


def link(kind: str, anchor: str) -> str:
    """The quiet sign beside a number."""
    said = f"Link to this {kind.lower()}"
    return f'<a class="headerlink" href="#{escape(anchor)}" title="{said}" aria-label="{said}">#</a>'


def write(app: Sphinx, doctree: nodes.document) -> None:
    """Number all of a page."""
    page, known = app.env.docname, of_pages(Path(app.srcdir))
    _of(app.env)[page] = {}
    _follow(app, doctree)
    if page not in known:
        return
    app.env.note_dependency(str(Path(app.srcdir) / "_toc.yml"))
    count = Count(known[page])
    for node, section in _numbered(doctree):
        if isinstance(node, nodes.raw):
            node[0] = nodes.Text(count.raw(node.astext(), section))
        elif isinstance(node, nodes.table):
            _table(node, count, section)
        else:
            _formula(node, count)
    _of(app.env)[page] = count.said


def _numbered(doctree: nodes.document) -> Iterator[tuple[Any, str]]:
    """What may have a number, in the order of the page, and the anchor of its section."""
    for node in list(doctree.findall(nodes.Element)):
        is_html = isinstance(node, nodes.raw) and "html" in node.get("format", "")
        if is_html or isinstance(node, nodes.table | nodes.math_block):
            above = node.parent
            while not isinstance(above, nodes.section | nodes.document):
                above = above.parent
            yield node, above["ids"][-1] if above["ids"] else "page"


def _table(table: nodes.table, count: Count, section: str) -> None:
    anchor = count.anchor(f"table-{section}")
    table["ids"].append(anchor)
    table.insert(0, nodes.raw("", count.caption(anchor), format="html"))


def _formula(formula: nodes.math_block, count: Count) -> None:
    """Its anchor is what stands before its sign of equality: `eq-t-math`."""
    bare = re.sub(r"\\(?:text|mathrm|operatorname|mathbf)\b", "", re.split(r"=|\\[lg]e", formula.astext())[0])
    anchor = count.anchor(f"eq-{nodes.make_id(bare) or 'formula'}")
    formula["ids"].append(anchor)
    formula["said"] = count.next("Formula")
    count.said[anchor] = f"Formula {formula['said']}"
    formula["anchor"] = anchor


def name_page(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """A chapter says its number above its title."""
    if number := of_pages(Path(app.srcdir)).get(page):
        said = f'<p class="page-number">Chapter {number}</p>\n<h1>'
        context["body"] = context.get("body", "").replace("<h1>", said, 1)


def _of(env: BuildEnvironment) -> dict[str, dict[str, str]]:
    """What references read, by page and anchor; it stays with what Sphinx has read."""
    return noted(env, "numbers")


def refer(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.Element
) -> nodes.Element | None:
    """The link of a reference to what has a number."""
    here = node["refdoc"]
    page, _, anchor = node["reftarget"].rpartition("#")
    to = _named(env, page) if page else here
    said = _of(env).get(to, {}).get(anchor)
    if said is None or node["reftype"] not in ("ref", "eq"):
        return None  # Sphinx says what it does not know
    if node["refexplicit"]:
        said = f"{shown.astext()} ({said.split()[-1]})"
    return make_refnode(app.builder, here, to, anchor, nodes.inline("", said))


def _named(env: BuildEnvironment, page: str) -> str:
    """A chapter's page as Sphinx names it, or a page beside the chapters."""
    return f"chapters/{page}" if f"chapters/{page}" in env.found_docs else page


def _follow(app: Sphinx, doctree: nodes.document) -> None:
    """What a page refers to by number may be numbered anew: then it is read again."""
    for node in doctree.findall(pending_xref):
        page, found, _ = node.get("reftarget", "").rpartition("#")
        if found and (other := _named(app.env, page)) in app.env.found_docs:
            app.env.note_dependency(app.env.doc2path(other))


def setup(app: Sphinx) -> None:
    """Run when a page was read."""
    app.connect("doctree-read", write, priority=900)
    app.connect("missing-reference", refer)
    app.connect("html-page-context", name_page, priority=850)
