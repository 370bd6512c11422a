"""Add navigation to the glossary: letters, a filter box, and links to where each term is taught.

The sections come from `data/terms.csv`. The box is shown only if scripts run.
"""

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from tools.reference import terms

GLOSSARY = "glossary"
_BOX = (
    '<div class="glossary-find"><p class="glossary-filter js-only"><label>Find a word '
    '<input type="search" autocomplete="off" spellcheck="false"></label> <span role="status"></span></p>'
    '<nav aria-label="First letters">{letters}</nav></div>'
)


def complete(app: Sphinx, doctree: nodes.document) -> None:
    """Add the letters and the box above the list, and a link below each definition."""
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
    """Return a reference from a page to a section or term; without `said` it takes the section's title."""
    shown = nodes.inline("", said or target, classes=["xref", "std", f"std-{kind}"])
    asked = {"refdomain": "std", "reftype": kind, "reftarget": target, "refexplicit": bool(said)}
    return addnodes.pending_xref("", shown, refdoc=page, refwarn=True, **asked)


def _box(doctree: nodes.document) -> str:
    """Links to the first term of each letter."""
    first: dict[str, str] = {}
    for term in doctree.findall(nodes.term):
        letter = term.astext()[0].upper()
        first.setdefault(letter if letter.isalpha() else "0–9", term["ids"][0])
    return _BOX.format(letters=" ".join(f'<a href="#{first[one]}">{one}</a>' for one in sorted(first)))


def setup(app: Sphinx) -> None:
    """Run after the page has been read."""
    app.connect("doctree-read", complete)
