"""How is a volume printed? As one document, by Chromium: links lead inside, headings are the outline.

Chromium counts pages and tells a document nothing of it. So it prints twice: the second time the contents say
the pages on which the first had the places of their links.
"""

import re
from datetime import date
from html import escape
from pathlib import Path

from playwright.sync_api import Page

from web import stamp
from web.bound import Bound, Volume, read

PRINT = {"prefer_css_page_size": True, "format": "A4", "outline": True, "tagged": True}
FILL = """(pages) => document.querySelectorAll(".front-contents li").forEach((line) => {
  line.lastElementChild.textContent = pages[line.firstElementChild.hash.slice(1)] ?? "";
})"""
_CELL = re.compile(rb"(?<=\(node)\d{8}(?=\))")
PLACE = "volume.html"  # an address that nothing else has: styles and pictures are found from it


def bind(page: Page, address: str, bound: Volume, folder: Path) -> Path:
    """Write the volume into a folder."""
    text = document(bound, list(read(page, address, bound, joined=True)), stamp.day())
    page.route(f"**/{PLACE}", lambda route: route.fulfill(body=text, content_type="text/html; charset=utf-8"))
    page.goto(f"{address}/{PLACE}", wait_until="load")
    page.evaluate("() => document.fonts.ready.then(() => true)")
    path = folder / f"{bound.name}.pdf"
    page.evaluate(FILL, places(page.pdf(**PRINT)))
    path.write_bytes(settled(page.pdf(**PRINT), stamp.day()))
    return path


def settled(pdf: bytes, day: date) -> bytes:
    """Equal pages give equal bytes: Chromium dates a PDF, and numbers its cells from where it happens to be.

    Nothing gets longer or shorter, so the table of places at the end of the file stays true.
    """
    dated = re.sub(rb"\(D:\d{14}[+-]\d\d'\d\d'", f"(D:{day:%Y%m%d}000000+00'00'".encode(), pdf)
    rank = {name: b"%08d" % at for at, name in enumerate(sorted(set(_CELL.findall(dated))))}
    return _CELL.sub(lambda found: rank[found[0]], dated)


def places(pdf: bytes) -> dict[str, int]:
    """On which page of a PDF, as Chromium writes it, each place stands that links name."""
    leaves = re.findall(rb"^(\d+) 0 obj\s*<</Type /Page$", pdf, re.M)
    number = {leaf: at for at, leaf in enumerate(leaves, 1)}
    named = re.findall(rb"/([\w-]+) \[(\d+) 0 R /XYZ", pdf)
    return {name.decode(): number[leaf] for name, leaf in named}


def document(bound: Volume, pages: list[Bound], day: date) -> str:
    """Title page, contents, figures, and every article."""
    listed = _listed("Contents", [(one.name, one.listed) for one in pages])
    drawn = _listed("Figures", [figure for one in pages for figure in one.figures])
    edition = f"Version {stamp.VERSION}, {day}. {stamp.authors()}. Text CC BY 4.0, code MIT."
    title = escape(bound.title)
    front = f'<header class="front"><p class="front-title">{title}</p><p>{escape(edition)}</p></header>'
    return (
        '<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        f"<title>{title}</title>"
        '<link rel="stylesheet" href="_static/site.css"></head><body class="volume">'
        '<main class="bd-main"><div class="bd-content"><div class="bd-article-container">'
        + front
        + listed
        + drawn
        + "\n".join(one.html for one in pages)
        + "</div></div></main></body></html>"
    )


def _listed(title: str, places: list[tuple[str, str]]) -> str:
    """A list of places, each with room for its page; nothing where there is none."""
    lines = "".join(
        f'<li><a href="#{place}">{escape(said)}</a> <span>000</span></li>' for place, said in places
    )
    return lines and f'<nav class="front-contents"><h1>{title}</h1><ol>{lines}</ol></nav>'
