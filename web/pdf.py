"""Print a volume as one PDF with Chromium, with internal links and the headings as outline.

Chromium does not tell a document its page numbers, so it prints twice: the second time, the table of contents
has the page numbers of the first.
"""

import re
from datetime import date
from html import escape
from io import BytesIO
from pathlib import Path

import pikepdf
from playwright.sync_api import Page

from web import front, stamp
from web.bound import BoundPage, Volume, read_pages

PRINT = {"prefer_css_page_size": True, "format": "A4", "outline": True, "tagged": True}
FILL = """(pages) => {
  const page = (link) => pages[link.hash.slice(1)] ?? "000"; // which leaves room for it
  for (const line of document.querySelectorAll(".front-contents li:has(a)")) {
    line.lastElementChild.textContent = page(line.firstElementChild);
  }
  for (const link of document.querySelectorAll("a.answer-solution[href^='#']")) {
    link.textContent = `Worked solution, page ${page(link)}`;
  }
}"""
SHORT = 12  # pages; the contents of a shorter volume also list sections
HEADS = """
@page { margin: 23mm 22mm 17mm; @bottom-center { content: none; } @top-right { content: counter(page); } }
@page contents { @top-left { content: "Contents"; } }
@page figures { @top-left { content: "Figures"; } }
@page :first { margin-top: 17mm; @top-right { content: none; } }
"""
_CELL = re.compile(rb"(?<=\(node)\d{8}(?=\))")
PLACE = "volume.html"  # an otherwise unused address, from which styles and pictures are resolved


def bind(page: Page, address: str, bound: Volume, folder: Path) -> Path:
    """Write the volume into a folder and return its path."""
    text = document(bound, list(read_pages(page, address, bound, joined=True)), stamp.day())
    page.route(f"**/{PLACE}", lambda route: route.fulfill(body=text, content_type="text/html; charset=utf-8"))
    page.goto(f"{address}/{PLACE}", wait_until="load")
    page.evaluate("() => document.fonts.ready.then(() => true)")
    path = folder / f"{bound.name}.pdf"
    page.evaluate(FILL, {})
    page.evaluate(FILL, places(page.pdf(**PRINT)))
    path.write_bytes(packed(settled(page.pdf(**PRINT), stamp.day())))
    return path


def settled(pdf: bytes, day: date) -> bytes:
    """Return the PDF with a fixed date and renumbered cell ids, so that equal pages give equal bytes.

    No length changes, so the cross-reference table at the end of the file stays valid.
    """
    dated = re.sub(rb"\(D:\d{14}[+-]\d\d'\d\d'", f"(D:{day:%Y%m%d}000000+00'00'".encode(), pdf)
    rank = {name: b"%08d" % at for at, name in enumerate(sorted(set(_CELL.findall(dated))))}
    return _CELL.sub(lambda found: rank[found[0]], dated)


def packed(pdf: bytes) -> bytes:
    """Return the PDF with compressed object streams, a third of the size: most of it is uncompressed tags."""
    written = BytesIO()
    with pikepdf.open(BytesIO(pdf)) as opened:
        opened.docinfo["/Author"] = stamp.authors()  # Chromium writes only the title
        opened.docinfo["/Creator"] = f"{stamp.cited()['title']}, version {stamp.version()}"
        opened.save(written, object_stream_mode=pikepdf.ObjectStreamMode.generate, deterministic_id=True)
    return written.getvalue()


def places(pdf: bytes) -> dict[str, int]:
    """Return the page number of every named destination in a PDF that Chromium wrote."""
    leaves = re.findall(rb"^(\d+) 0 obj\s*<</Type /Page$", pdf, re.M)
    number = {leaf: at for at, leaf in enumerate(leaves, 1)}
    named = re.findall(rb"/([\w-]+) \[(\d+) 0 R /XYZ", pdf)
    return {name.decode(): number[leaf] for name, leaf in named}


def document(bound: Volume, pages: list[BoundPage], day: date) -> str:
    """Return the whole volume as one HTML document: title page, contents, figures, and every article."""
    drawn = [figure for page in pages for figure in page.figures]
    return (
        '<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        f'<title>{escape(bound.whole_title)}</title><meta name="author" content="{escape(stamp.authors())}">'
        f'<link rel="stylesheet" href="_static/site.css"><style>{running_heads(pages)}</style></head>'
        '<body class="volume"><main class="bd-main"><div class="bd-content">'
        '<div class="bd-article-container">'
        + front.title_page(bound, day)
        + _listed("Contents", _contents(pages))
        + _listed("Figures", "".join(_line(place, said) for place, said in drawn))
        + "\n".join(page.html for page in pages)
        + "</div></div></main></body></html>"
    )


def running_heads(pages: list[BoundPage]) -> str:
    """CSS rules that print the title of a page above each of its sheets."""
    return HEADS + "".join(_sheets(at, page) for at, page in enumerate(pages))


def _sheets(at: int, page: BoundPage) -> str:
    """Return the CSS page rules of one page, and of its tables that are printed in landscape."""
    head = f"@top-left {{ content: {_quoted(page.contents_title)}; }}"
    upright = f"@page text-{at} {{ {head} }} #{page.name} {{ page: text-{at}; }}\n"
    if 'class="side-by-side"' not in page.html:
        return upright
    return (
        f"{upright}@page wide-{at} {{ size: A4 landscape; {head} }} "
        f"#{page.name} .side-by-side .table-wrapper {{ page: wide-{at}; }}\n"
    )


def _quoted(text: str) -> str:
    """Return a CSS string that is safe within a `style` element."""
    return '"' + re.sub(r'["\\<&\n]', lambda found: f"\\{ord(found[0]):x} ", text) + '"'


def _contents(pages: list[BoundPage]) -> str:
    """Return the entries of the table of contents, with sections if the volume is short."""
    short = len(pages) <= SHORT
    return "".join(
        f'<li class="front-part">{escape(part.title)}</li>'
        + "".join(_entry(page, with_sections=short) for page in part.pages)
        for part in front.parts(pages)
    )


def _entry(page: BoundPage, *, with_sections: bool) -> str:
    level = "front-deeper" if page.number[-1:].isalpha() else "front-chapter"
    sections = page.sections if with_sections else ()
    return _line(page.name, page.contents_title, level) + "".join(
        _line(place, said, "front-section") for place, said in sections
    )


def _line(place: str, said: str, level: str = "") -> str:
    """Return one entry with room for its page number."""
    named = f' class="{level}"' if level else ""
    return f'<li{named}><a href="#{place}">{escape(said)}</a> <span></span></li>'


def _listed(title: str, lines: str) -> str:
    """Return a titled list of entries, or "" if there are none."""
    head = f'<nav class="front-contents" style="page: {title.lower()}"><h1>{title}</h1>'
    return lines and f"{head}<ol>{lines}</ol></nav>"
