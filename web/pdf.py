"""How is a volume printed? As one document, by Chromium: links lead inside, headings are the outline."""

from datetime import date
from html import escape
from pathlib import Path

from playwright.sync_api import Page

from web import stamp
from web.bound import Bound, Volume, read

PLACE = "volume.html"  # an address that nothing else has: styles and pictures are found from it


def bind(page: Page, address: str, bound: Volume, folder: Path) -> Path:
    """Write the volume into a folder."""
    text = document(bound, list(read(page, address, bound, joined=True)), stamp.day())
    page.route(f"**/{PLACE}", lambda route: route.fulfill(body=text, content_type="text/html; charset=utf-8"))
    page.goto(f"{address}/{PLACE}", wait_until="load")
    page.evaluate("() => document.fonts.ready.then(() => true)")
    path = folder / f"{bound.name}.pdf"
    path.write_bytes(page.pdf(prefer_css_page_size=True, format="A4", outline=True, tagged=True))
    return path


def document(bound: Volume, pages: list[Bound], day: date) -> str:
    """Title page, contents, and every article."""
    listed = "".join(f'<li><a href="#{one.name}">{escape(one.title)}</a></li>' for one in pages)
    edition = f"Version {stamp.VERSION}, {day}. {stamp.authors()}. Text CC BY 4.0, code MIT."
    title = escape(bound.title)
    front = f'<header class="front"><p class="front-title">{title}</p><p>{escape(edition)}</p></header>'
    contents = f'<nav class="front-contents"><h1>Contents</h1><ol>{listed}</ol></nav>'
    return (
        '<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        f"<title>{title}</title>"
        '<link rel="stylesheet" href="_static/site.css"></head><body class="volume">'
        f'<main class="bd-main"><div class="bd-content"><div class="bd-article-container">{front}{contents}'
        + "\n".join(one.html for one in pages)
        + "</div></div></main></body></html>"
    )
