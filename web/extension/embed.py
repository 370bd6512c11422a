"""Standalone pages of explorers for other sites, such as `embed/rooflines-roofline.html`.

Only these pages may be framed (`web.serve` sets the policy). Each shows its license and links to where the
explorer is explained; the address carries the values of its controls.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from scalingbook_book.chapters import explorers
from tools import wheel
from web.extension.page_data import page_data

FOLDER = "embed"
_SHOWN = re.compile(r'data-explorer="([^"]+)" id="([^"]+)"')


def note(app: Sphinx, doctree: nodes.document) -> None:
    """Record the explorers of a chapter's page and their anchors."""
    if app.env.docname.startswith("chapters/"):
        texts = [raw.astext() for raw in doctree.findall(nodes.raw)]
        page_data(app.env, "explorers")[app.env.docname] = [
            one for text in texts for one in _SHOWN.findall(text)
        ]


def shown(app: Sphinx) -> dict[str, tuple[str, str]]:
    """Return the page and the anchor of every explorer, by key; the first if it appears twice."""
    found: dict[str, tuple[str, str]] = {}
    for page, explorers_of_page in sorted(page_data(app.env, "explorers").items()):
        for key, anchor in explorers_of_page:
            found.setdefault(key, (page, anchor))
    return found


def collect(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a page for each explorer, unless the last build wrote the same one."""
    kept = Path(app.doctreedir, "embedded.json")
    before = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    library = hashlib.sha256(repr(sorted(wheel.core().items())).encode()).hexdigest()
    made = {}
    for key, (page, anchor) in shown(app).items():
        told = {"home": page, "anchor": anchor, "chapter": app.env.titles[page].astext()}
        made[key] = told | {"library": library}
        name = f"{FOLDER}/{key.replace('.', '-')}"
        if made[key] != before.get(key) or not Path(app.outdir, f"{name}.html").exists():
            explorer = explorers.find(key)
            drawn = {"title": explorer.title, "explorer": explorer.html()}
            yield name, told | drawn | {"book_alone": True, "sidebars": []}, "embed.html"
    kept.write_text(json.dumps(made), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Record explorers while pages are read, and write their pages at the end."""
    app.connect("doctree-read", note, priority=950)
    app.connect("html-collect-pages", collect)
