"""Write files for machines and lost readers: a sitemap, robots.txt, an Atom feed of changes, and a 404 page.

The sitemap needs absolute addresses, so it is written only if `html.baseurl` is set.
"""

import re
import uuid
from collections.abc import Iterator
from datetime import date
from html import escape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit
from xml.sax.saxutils import quoteattr

from sphinx.application import Sphinx

from web import stamp
from web.extension import head

LOST, OFFLINE, FEED = "404", "offline", "feed.xml"
_VERSION = re.compile(r"^## (?P<title>\S+(?: \((?P<day>[^)]*)\))?)\n(?P<body>.*?)(?=^## |\Z)", re.M | re.S)
_CHANGE = re.compile(r"^- (.*?)(?=^- |^#|\Z)", re.M | re.S)


class Release(NamedTuple):
    """A version in the changelog: its heading, its date, and its changes."""

    title: str
    day: date
    changes: list[str]


def releases(changelog: str, today: date) -> Iterator[Release]:
    """Yield each version; an unreleased one has today's date."""
    for found in _VERSION.finditer(changelog):
        told = re.fullmatch(r"\d{4}-\d\d-\d\d", found["day"] or "")
        day = date.fromisoformat(found["day"]) if told else today
        changes = [" ".join(change.split()) for change in _CHANGE.findall(found["body"])]
        yield Release(found["title"], day, changes)


def feed(title: str, address: str, changelog: str, today: date) -> str:
    """Return the changelog as an Atom feed."""
    entries = [_entry(one, address) for one in releases(changelog, today)]
    itself = f'<link rel="self" href={quoteattr(urljoin(address, FEED))}/>' if address else ""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
        f"<title>{escape(title)}: changes</title><id>{_name(address or title)}</id>{itself}"
        f"<updated>{_moment(today)}</updated><author><name>{escape(stamp.authors())}</name></author>\n"
        + "\n".join(entries) + "\n</feed>\n"
    )  # fmt: skip


def _entry(release: Release, address: str) -> str:
    listed = "".join(f"<li>{escape(change)}</li>" for change in release.changes)
    link = f"<link href={quoteattr(address)}/>" if address else ""
    return (
        f"<entry><title>{escape(release.title)}</title><id>{_name(release.title.split()[0])}</id>{link}"
        f"<updated>{_moment(release.day)}</updated>"
        f'<content type="html">{escape(f"<ul>{listed}</ul>")}</content></entry>'
    )


def _name(text: str) -> str:
    """Return a permanent identifier that does not depend on the site's address."""
    return f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'scalingbook {text}')}"


def _moment(day: date) -> str:
    return f"{day}T00:00:00Z"


def site_map(address: str, pages: list[str], day: date) -> str:
    """Return the sitemap of all pages."""
    rows = "".join(
        f"<url><loc>{escape(urljoin(address, page))}</loc><lastmod>{day}</lastmod></url>\n" for page in pages
    )
    kind = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="{kind}">\n{rows}</urlset>\n'


def lost(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the 404 page, which needs a base address because it shows at any depth, and the offline page."""
    base = urlsplit(app.config.html_baseurl).path.rstrip("/") + "/"
    yield LOST, {"title": "Not here", "book_base": base}, "lost.html"
    yield OFFLINE, {"title": "No network"}, "offline.html"  # the service worker gives it a base


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the sitemap, robots.txt and the feed."""
    if error or app.builder.format != "html":
        return
    folder, day = Path(app.outdir), head.day(app)
    site = app.config.html_baseurl and app.config.html_baseurl.rstrip("/") + "/"
    text = stamp.CHANGES.read_text(encoding="utf-8")
    (folder / FEED).write_text(feed(app.config.html_title, site, text, day), encoding="utf-8")
    rules = "User-agent: *\nAllow: /\n" + (f"Sitemap: {urljoin(site, 'sitemap.xml')}\n" if site else "")
    (folder / "robots.txt").write_text(rules, encoding="utf-8")
    if site:
        pages = [f"{page}.html" for page in sorted(app.env.found_docs)]
        (folder / "sitemap.xml").write_text(site_map(site, pages, day), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Add the pages and the files."""
    app.connect("html-collect-pages", lost)
    app.connect("build-finished", write)
