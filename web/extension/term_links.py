"""Link the first use of a glossary term in each section of a chapter to its entry.

Only the unambiguous terms in `data/linked_terms.txt` are linked automatically. Other words are linked where
the author marks them with `{term}`. A section that teaches a term does not link it.
"""

import re
from collections.abc import Iterator
from functools import cache

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from tools.reference import links, terms
from web.extension.terms import reference


@cache
def _heads() -> dict[str, str]:
    """Return the entry of every automatically linked form."""
    return {form: forms[0] for forms in terms.entries() for form in forms if form in links.linked()}


@cache
def _pattern() -> re.Pattern[str]:
    forms = sorted(_heads(), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(_spelled, forms))})(?![\w-])")


def _spelled(form: str) -> str:
    """Return a pattern for a term, capitalized or in the plural."""
    first = f"[{form[0].upper()}{form[0]}]" if form[0].islower() else re.escape(form[0])
    return f"{first}{re.escape(form[1:])}(?:e?s)?"


@cache
def _taught() -> dict[str, set[str]]:
    """Return the terms that a section teaches, by its anchor."""
    found: dict[str, set[str]] = {}
    for place in terms.places():
        found.setdefault(nodes.make_id(place.section), set()).add(place.term)
    return found


def link(app: Sphinx, doctree: nodes.document) -> None:
    """Insert the links into a page."""
    if not app.env.docname.startswith("chapters/"):
        return
    app.env.note_dependency(str(links.LINKED))
    for section in doctree.findall(nodes.section):
        known = _marked(section).union(*(_taught().get(anchor, ()) for anchor in section["ids"]))
        for text in _texts(section):
            parts = list(_parts(text.astext(), known, app.env.docname))
            if len(parts) > 1:
                text.parent.replace(text, parts)


def _marked(section: nodes.section) -> set[str]:
    """Return the entries that a section links explicitly."""
    heads = terms.headwords()
    marks = [mark for mark in section.findall(addnodes.pending_xref) if mark["reftype"] == "term"]
    own = [mark["reftarget"] for mark in marks if next(_sections(mark), None) is section]
    return {heads[name.casefold()] for name in own if name.casefold() in heads}


def _texts(section: nodes.section) -> list[nodes.Text]:
    """Return the text directly in a section's own paragraphs, without bold, links, code and headings."""
    return [
        text
        for paragraph in section.findall(nodes.paragraph)
        if next(_sections(paragraph), None) is section
        for text in paragraph.children
        if isinstance(text, nodes.Text)
    ]


def _sections(node: nodes.Node) -> Iterator[nodes.Node]:
    while (node := node.parent) is not None:  # type: ignore[assignment]
        if isinstance(node, nodes.section):
            yield node


def _parts(text: str, known: set[str], page: str) -> Iterator[nodes.Node]:
    """Yield the text with a link at each term that the section has not used before; updates `known`."""
    end = 0
    for found in _pattern().finditer(text):
        head = _heads()[links.singular(found[0], links.linked()) or found[0]]
        if head in known:
            continue
        known.add(head)
        yield nodes.Text(text[end : found.start()])
        yield reference("term", head, page, found[0])
        end = found.end()
    yield nodes.Text(text[end:])


def setup(app: Sphinx) -> None:
    """Run after a page has been read."""
    app.connect("doctree-read", link)
