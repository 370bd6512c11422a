"""Where is a glossary's word used? Its first use in each section of a chapter links to its entry.

Words that mean something else as often as not are left alone, and so is a section that teaches the word.
"""

import re
from collections.abc import Iterator
from functools import cache

from docutils import nodes
from sphinx.application import Sphinx

from tools.reference import terms
from web.extension.terms import reference

_ORDINARY = {
    "Auto", "Explicit", "FLOP", "GPU", "Manual", "OPs", "TPU", "axis", "band", "block", "bucket",
    "bundle", "capacity", "ceiling", "chip", "copies", "cube", "dense", "device", "domain", "dropped",
    "duality", "efficiency", "embedding", "exposed", "gate", "gated", "greedy", "head", "hidden",
    "host", "knee", "lane", "leaf", "level", "line", "link", "node", "overlap", "packed", "packing",
    "padding", "paged", "pair", "peak", "policy", "product", "race", "rail", "reduced", "replica",
    "resident", "reuse", "slot", "spine", "stage", "thread", "tied", "token", "trace", "tray", "varies",
    "varying", "wave", "ways",
}  # fmt: skip


@cache
def _heads() -> dict[str, str]:
    """The entry of every form that is looked for; small letters where it has no capital."""
    return {form: forms[0] for forms in terms.entries() for form in forms if form not in _ORDINARY}


@cache
def _pattern() -> re.Pattern[str]:
    forms = sorted(_heads(), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(_spelled, forms))})(?![\w-])")


def _spelled(form: str) -> str:
    """A form as it may stand in a sentence: at its beginning, and as more than one."""
    first = f"[{form[0].upper()}{form[0]}]" if form[0].islower() else re.escape(form[0])
    return f"{first}{re.escape(form[1:])}(?:e?s)?"


def _head(said: str) -> str | None:
    """The entry of a word as it stands in a sentence."""
    for bare in (said, said[:1].lower() + said[1:]):
        for form in (bare, bare.removesuffix("s"), bare.removesuffix("es")):
            if form in _heads():
                return _heads()[form]
    return None


def link(app: Sphinx, doctree: nodes.document) -> None:
    """Put the links in."""
    if not app.env.docname.startswith("chapters/"):
        return
    taught = {(nodes.make_id(place.section), place.term) for place in terms.places()}
    for section in doctree.findall(nodes.section):
        known = {term for name in section["ids"] for anchor, term in taught if anchor == name}
        for text in _texts(section):
            parts = list(_parts(text.astext(), known, app.env.docname))
            if len(parts) > 1:
                text.parent.replace(text, parts)


def _texts(section: nodes.section) -> list[nodes.Text]:
    """What stands directly in a section's own paragraphs: no bold, no link, no code, no heading."""
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
    """A text with a link at each word that the section has not used before; those are noted as known."""
    end = 0
    for found in _pattern().finditer(text):
        head = _head(found[0])
        if head is None or head in known:
            continue
        known.add(head)
        yield nodes.Text(text[end : found.start()])
        yield reference("term", head, page, found[0])
        end = found.end()
    yield nodes.Text(text[end:])


def setup(app: Sphinx) -> None:
    """Run when a page has been read."""
    app.connect("doctree-read", link)
