"""Embed the definition of every glossary term that a page links to, for hover cards.

The page's script shows the card next to the pointer or focus; to a screen reader it is the link's
description; without scripts, the link leads to the glossary.
"""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

GLOSSARY = "glossary"
_TERM = re.compile(
    r'<a class="reference internal" href="(?P<href>[^"#]*#(?P<id>term-[^"]+))">'
    r'(?=<span class="xref std std-term">)'
)
_LINK = re.compile(r"</?a\b[^>]*>")


def definitions(app: Sphinx) -> dict[str, str]:
    """Return the HTML of every definition by its term's anchor, without links."""
    if GLOSSARY not in app.env.found_docs:
        return {}
    found: dict[str, str] = {}
    for item in app.env.get_and_resolve_doctree(GLOSSARY, app.builder).findall(nodes.definition_list_item):
        for term in item.findall(nodes.term):
            meaning = next(iter(item.findall(nodes.definition)), None)
            if term["ids"] and meaning is not None:
                found[term["ids"][0]] = _html(app, term, meaning)
    return found


def _html(app: Sphinx, term: nodes.term, meaning: nodes.definition) -> str:
    parts = [app.builder.render_partial(part)["fragment"] for part in meaning.children]  # type: ignore[attr-defined]
    return f"<strong>{term.astext()}</strong>" + _LINK.sub("", "".join(parts))


def attach(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Describe each term's link by its definition, and append the definitions to the text."""
    body = context.get("body")
    if not body or page == GLOSSARY:
        return
    known = _known(app)
    used = dict.fromkeys(m["id"] for m in _TERM.finditer(body) if m["id"] in known)
    if used:
        meanings = "".join(f'<div id="meaning-{name}">{known[name]}</div>' for name in used)
        context["body"] = (
            f'{_TERM.sub(_described(known), body)}<div id="term-definitions" hidden>{meanings}</div>'
        )


def _described(known: dict[str, str]) -> Any:
    def link(match: re.Match[str]) -> str:
        described = f' aria-describedby="meaning-{match["id"]}"' if match["id"] in known else ""
        return f'<a class="reference internal term" href="{match["href"]}"{described}>'

    return link


def _known(app: Sphinx) -> dict[str, str]:
    if not hasattr(app, "book_terms"):
        app.book_terms = definitions(app)  # type: ignore[attr-defined]
    return app.book_terms  # type: ignore[attr-defined]


def before_reading(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Record whether the glossary has changed."""
    app.book_glossary_changed = GLOSSARY in docnames  # type: ignore[attr-defined]


def rewrite(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Return all pages if a definition has changed, because every page may show it."""
    return sorted(env.found_docs) if app.book_glossary_changed else []  # type: ignore[attr-defined]


def setup(app: Sphinx) -> None:
    """Run before a page is written, after everything else has processed it."""
    app.connect("env-before-read-docs", before_reading)
    app.connect("env-updated", rewrite)
    app.connect("html-page-context", attach, priority=800)
