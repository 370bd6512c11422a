"""What helps to find a word in the glossary? Its letters, a box that filters, a link to where it is taught.

The sections are those of `data/terms.csv`. The box shows only where the page's script runs.
"""

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from tools.reference import terms

GLOSSARY = "glossary"
_BOX = (
    '<div class="glossary-find"><p class="glossary-filter" hidden><label>Find a word '
    '<input type="search" autocomplete="off" spellcheck="false"></label> <span role="status"></span></p>'
    '<nav aria-label="First letters">{letters}</nav></div>'
)


def complete(app: Sphinx, doctree: nodes.document) -> None:
    """Put the letters and the box above the list, and a link below each meaning."""
    if app.env.docname != GLOSSARY:
        return
    app.env.note_dependency(str(terms.TABLE))
    sections = {place.term: place.section for place in terms.places()}
    for item in doctree.findall(nodes.definition_list_item):
        heads = [term.astext().replace("’", "'") for term in item.findall(nodes.term)]
        *_, last = item.findall(nodes.paragraph)
        last.extend([nodes.Text(" → "), reference("ref", sections[heads[0]], GLOSSARY)])
    listed = next(iter(doctree.findall(addnodes.glossary)))
    listed.parent.insert(listed.parent.index(listed), nodes.raw("", _box(doctree), format="html"))


def reference(kind: str, target: str, page: str, said: str = "") -> nodes.Node:
    """A reference of a page to a section or a term; without words of its own it takes the section's title."""
    shown = nodes.inline("", said or target, classes=["xref", "std", f"std-{kind}"])
    asked = {"refdomain": "std", "reftype": kind, "reftarget": target, "refexplicit": bool(said)}
    return addnodes.pending_xref("", shown, refdoc=page, refwarn=True, **asked)


def _box(doctree: nodes.document) -> str:
    """A link to the first word of each letter, numbers as one."""
    first: dict[str, str] = {}
    for term in doctree.findall(nodes.term):
        letter = term.astext()[0].upper()
        first.setdefault(letter if letter.isalpha() else "0–9", term["ids"][0])
    return _BOX.format(letters=" ".join(f'<a href="#{first[one]}">{one}</a>' for one in sorted(first)))


def setup(app: Sphinx) -> None:
    """Run when the page has been read."""
    app.connect("doctree-read", complete)
