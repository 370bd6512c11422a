"""Build the search index: every section, glossary entry, figure and explorer; no code and no solutions.

Sections are recorded while Sphinx reads a page, so that a formula counts once. Headings and defined terms
load with the dialog; the first typed letter loads a full-text index, which Node builds with MiniSearch, and
the text for excerpts. All files are scripts, not data, so that search also works in a book opened from a
folder.
"""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from tools.pages import every
from tools.reference import terms
from web import vendor
from web.extension import readable, scripts
from web.extension.page_data import page_data

FILES = HEADS, WHOLE, TEXTS, SCRIPT = "search-heads.js", "search-whole.js", "search-texts.js", "search.js"
_LEFT_OUT = ("solutions/", "bibliography", "genindex")
_REPORTS = ("training-runs", "serving-runs", "fidelity", "predicted-and-compiled")
_BESIDE = {
    "index": 1.0,
    "errata": 0.1,
    "glossary": 0.2,
    "workbench": 1.0,
    "inspect": 1.0,
    "chips": 1.0,
    "models": 1.0,
    **dict.fromkeys(_REPORTS, 0.3),
}  # next to chapters
_ALIASES = vendor.HERE / "aliases.csv"
_ASKED = vendor.HERE / "asked.csv"
_ABSENT = vendor.HERE / "absent.csv"
_LIBRARY = 'import MiniSearch from "minisearch";\n'
_MAKER = vendor.HERE / "index.mjs"


class Place(NamedTuple):
    """A section or glossary entry of a page; `names` are the labels that links to it may use."""

    anchor: str
    title: str
    text: str
    names: tuple[str, ...] = ()


class Section(NamedTuple):
    """The target of one search result."""

    page: str
    anchor: str
    title: str
    terms: str
    text: str
    asked: str = ""


def note(app: Sphinx, doctree: nodes.document) -> None:
    """Record what can be found on a page."""
    if not app.env.docname.startswith(_LEFT_OUT):
        page_data(app.env, "places")[app.env.docname] = list(places(doctree))


def places(tree: nodes.document) -> Iterator[Place]:
    """Yield every section of a page without its subsections, every glossary entry and every function."""
    for section in tree.findall(nodes.section):
        apart = nodes.section | nodes.title | addnodes.desc
        parts = [child for child in section.children if not isinstance(child, apart)]
        title = readable.text(next(iter(section.findall(nodes.title))))
        outer = section.parent is tree
        yield Place(
            "" if outer else readable.section_anchor(section), title, _all(parts), tuple(section["ids"])
        )
    for entry in tree.findall(addnodes.desc):  # of the API reference
        for signature in entry.findall(addnodes.desc_signature):
            if signature.parent is entry and signature["ids"]:
                told = _all([child for child in entry.children if isinstance(child, addnodes.desc_content)])
                yield Place(signature["ids"][0], signature["ids"][0].removeprefix("scalingbook_lib."), told)
    for item in tree.findall(nodes.definition_list_item):
        for term in item.findall(nodes.term):
            if term["ids"]:
                meaning = _all(list(item.findall(nodes.definition)))
                yield Place(term["ids"][0], readable.text(term), meaning)


def _all(parts: list[nodes.Node]) -> str:
    return " ".join(filter(None, map(readable.text, parts)))


def collected(app: Sphinx) -> list[Section]:
    """Return all sections in reading order, with the terms that they teach."""
    found = page_data(app.env, "places")
    pages = list(found)
    order = [app.config.root_doc, *_below(app, app.config.root_doc)]
    pages.sort(key=lambda page: (order.index(page) if page in order else len(order), page))
    taught, asked = _taught(), questions()
    labels = app.env.domaindata["std"]["labels"]
    titles = {label: str(title) for label, (_, _, title) in labels.items()}
    return [
        Section(
            page,
            one.anchor,
            readable.filled(one.title, titles),
            " / ".join(taught[name] for name in one.names if name in taught),
            readable.filled(one.text, titles),
            asked.get(f"{page}#{one.anchor}", ""),
        )
        for page in pages
        for one in found[page]
    ]


def questions() -> dict[str, str]:
    """Search phrases that the book itself does not use, by the section that answers them."""
    with _ASKED.open(encoding="utf-8", newline="") as file:
        return {row["section"]: row["asked"] for row in csv.DictReader(file)}


def _taught() -> dict[str, str]:
    """Return the terms that a section teaches, in all forms, by its anchor."""
    section = {place.term: nodes.make_id(place.section) for place in terms.places()}
    found: dict[str, str] = {}
    for forms in terms.entries():
        anchor = section[forms[0]]
        found[anchor] = " / ".join(filter(None, (found.get(anchor), *map(terms.bare, forms))))
    return found


def _below(app: Sphinx, page: str) -> Iterator[str]:
    for child in app.env.toctree_includes.get(page, []):
        yield child
        yield from _below(app, child)


def write(app: Sphinx, static: Path) -> None:
    """Write the search script, the headings, the index and the text into a folder."""
    found = collected(app)
    pages = list(dict.fromkeys(one.page for one in found))
    titles = {page: next(one.title for one in found if one.page == page) for page in pages}
    told = {
        HEADS: {
            "pages": _pages(app, titles),
            "sections": [[pages.index(one.page), one.anchor, one.title, one.terms] for one in found],
            "aliases": _rows(_ALIASES),
            "absent": _absent(found),
        },
        WHOLE: {"index": json.loads(_indexed(found, titles)), "asked": [one.asked for one in found]},
        TEXTS: {"texts": [one.text for one in found]},
    }
    for name, data in told.items():
        (static / name).write_text(_told(data), encoding="utf-8")
    (static / SCRIPT).write_text(_script(), encoding="utf-8")


def _pages(app: Sphinx, titles: dict[str, str]) -> list[tuple[str, str, float, str]]:
    """Return each page's address, title and weight, and for a deeper page the title of its chapter."""
    deeper = {str(page) for page in every(Path(app.srcdir)) if page.deeper}
    above = {
        page: titles[chapter] for chapter in titles for page in app.env.toctree_includes.get(chapter, [])
        if page in deeper
    }  # fmt: skip
    weights = _weights(list(titles), deeper)
    return [
        (f"{page}.html", title, weight, above.get(page, ""))
        for (page, title), weight in zip(titles.items(), weights, strict=True)
    ]


def _rows(path: Path) -> list[list[str]]:
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))[1:]


def _absent(found: list[Section]) -> list[tuple[str, int]]:
    """Terms of the field that the book does not cover, each with the nearest section."""
    at = {f"{one.page}#{one.anchor}": number for number, one in enumerate(found)}
    return [(word, at[section]) for word, section in _rows(_ABSENT) if section in at]


def _weights(pages: list[str], deeper: set[str]) -> Iterator[float]:
    """Yield the weight of each page: main pages before deeper and reference pages, earlier ones higher."""
    for at, page in enumerate(pages):
        early = 1.5 - at / len(pages)
        if page.startswith("chapters/"):
            yield round(early * (0.8 if page in deeper else 1.2), 2)
        else:
            yield _BESIDE.get(page, 0.5)


def _told(data: dict[str, object]) -> str:
    return f"bookSearch({json.dumps(data, separators=(',', ':'), ensure_ascii=False)});\n"


def _script() -> str:
    library = (vendor.package("minisearch") / "dist/es/index.js").read_text(encoding="utf-8")
    bare = re.sub(r"/\*.*?\*/|^\s*//[^\n]*\n|^export .*$", "", library, flags=re.M | re.S)
    bare = re.sub(r"^ +|\n(?=\n)", "", bare, flags=re.M)
    own = scripts.joined(scripts.PAGE / "search.mjs").replace(_LIBRARY, "")
    return f"/* MiniSearch, (c) Luca Ongaro, MIT license */\n(() => {{\n{bare}{own}}})();\n"


def _indexed(found: list[Section], titles: dict[str, str]) -> str:
    library = vendor.package("minisearch") / "dist/es/index.js"
    question = json.dumps(
        [{"id": n, "book": titles[one.page], **one._asdict()} for n, one in enumerate(found)]
    )
    return vendor.cached_answer(_MAKER, library, question, "the search index was not made")


def setup(app: Sphinx) -> None:
    """Record each page after everything else has processed it; `assets` writes the index."""
    app.connect("doctree-read", note, priority=990)
