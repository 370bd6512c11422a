"""A page's metadata: description, link-preview card, edition, and how to cite it.

If `html.baseurl` of `_config.yml` is set, also the canonical address. The date is written at the end
(`dated`), so that a new date rebuilds no page.
"""

import re
import shutil
from datetime import date
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from web import stamp, vendor

LENGTH = (60, 200)  # minimum and maximum characters of a description
CARD = "card.png"
_DAY = re.compile(r'(<time class="edition" datetime=")[\d-]*(">)[\d-]*(</time>)')
_NOTE = re.compile(r"(note    = \{Version [^,}]+, )[\d-]*(\})")


def described(doctree: nodes.document | None) -> str:
    """Return the first paragraph of prose without formulas, cut at a word boundary."""
    least, most = LENGTH
    for paragraph in doctree.findall(nodes.paragraph) if doctree else ():
        text = " ".join(paragraph.astext().split())
        if isinstance(paragraph.parent, nodes.section) and len(text) >= least and not _has_formula(paragraph):
            return text if len(text) <= most else text[:most].rpartition(" ")[0].rstrip(",;:") + " …"
    return ""


def _has_formula(node: nodes.Element) -> bool:
    return any(True for _ in node.findall(nodes.math))


def tell(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Add the metadata to the template context."""
    site = app.config.html_baseurl
    context["page_description"] = described(doctree) or str(app.config.book_description)
    context["book_card"] = f"{site.rstrip('/')}/_static/{CARD}" if site else ""
    context["book_version"], context["book_day"] = stamp.version(), day(app)
    context["book_bibtex"] = stamp.bibtex(day(app), site)


def dated(html: str, day: date) -> str:
    """Return a page with the date of this edition."""
    return _NOTE.sub(rf"\g<1>{day}\g<2>", _DAY.sub(rf"\g<1>{day}\g<2>{day}\g<3>", html))


def write_card(app: Sphinx, static: Path) -> None:
    """Copy the link-preview picture, if the site has an address."""
    if app.config.html_baseurl:
        shutil.copyfile(vendor.HERE / "screenshot.png", static / CARD)


def day(app: Sphinx) -> date:
    """Return the date of this edition."""
    return stamp.day(Path(app.srcdir))


def setup(app: Sphinx) -> None:
    """Run after the theme has written its own description."""
    app.add_config_value("book_description", "", "html")
    app.connect("html-page-context", tell, priority=950)
