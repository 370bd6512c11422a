"""Extract the pages of a printed volume: the pages of the site in reading order, solutions last.

A browser opens each page without its scripts, and `bound.mjs` reduces it to its article; `web.pdf` and
`web.epub` bind the articles. `python -m web.bound pdf rooflines` binds one chapter; without a name it binds
the whole book and offers it on the site's cover.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from playwright.sync_api import Browser, Page

from tools import pages
from tools.environment import ROOT
from web import stamp
from web.extension import numbers

TURN = (
    Path(__file__).with_name("bound.mjs").read_text(encoding="utf-8").replace("export function", "function")
)
BACK = "solutions/"
SOLUTIONS, REFERENCE = "Solutions", "Reference"  # parts of a volume after those of the chapters
PATIENCE_MS = 600_000  # the whole book is one document, which a busy machine takes minutes to lay out
ONLY_ON_SCREEN = ("index", "workbench")  # the map of the site, for which a volume has contents; the live page


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundPage:
    """A page in a volume: its file name or id prefix, its title, and its article as XHTML.

    `sections` and `figures` are (anchor, text) pairs for the table of contents.
    """

    name: str
    title: str
    html: str
    number: str = ""
    part: str = ""  # the heading above it in the contents
    sections: tuple[tuple[str, str], ...] = ()
    figures: tuple[tuple[str, str], ...] = ()

    @property
    def contents_title(self) -> str:
        """Return its entry in the table of contents."""
        return f"{self.number} {self.title}".strip()


@dataclass(frozen=True, kw_only=True, slots=True)
class Volume:
    """A bound volume: its file name, its titles, and the addresses of its pages below the site."""

    name: str
    title: str
    subtitle: str = ""
    pages: tuple[str, ...]

    @property
    def whole_title(self) -> str:
        """Return title and subtitle as a library catalog lists them."""
        stop = "" if self.title.endswith(("?", "!")) else "."
        return f"{self.title}{stop} {self.subtitle}" if self.subtitle else self.title

    def names(self) -> dict[str, str]:
        """Return the internal name of each page, by its address."""
        return {f"{page}.html": page.replace("/", "-") for page in self.pages}


def order() -> dict[str, str]:
    """Return every page of the table of contents in printed order, with its part.

    The order is chapters, reference, solutions.
    """
    told = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = {
        page: _part(page, part["caption"])
        for part in told["parts"]
        for page in _files([part])
        if page not in ONLY_ON_SCREEN
    }
    rank = {REFERENCE: 1, SOLUTIONS: 2}
    return dict(sorted(listed.items(), key=lambda one: rank.get(one[1], 0)))


def _part(page: str, caption: str) -> str:
    if page.startswith(BACK):
        return SOLUTIONS
    return caption if page.startswith("chapters/") else REFERENCE


def _files(entry: Any) -> Iterator[str]:
    for one in entry:
        if "file" in one:
            yield one["file"]
        yield from _files(one.get("chapters", one.get("sections", ())))


def volume(stem: str = "") -> Volume:
    """Return the whole book, or a chapter with its deeper pages and solutions; exit if it is unknown."""
    title, subtitle = stamp.titles()
    if not stem:
        return Volume(name=f"book-{stamp.VERSION}", title=title, subtitle=subtitle, pages=tuple(order()))
    own = {str(page) for page in pages.of(stem)} | {f"{BACK}{stem}"}
    if not (found := tuple(page for page in order() if page in own)):
        raise SystemExit(f"no chapter is called {stem[:40]}")
    book = f"A chapter of {stamp.cited()['title']}"
    return Volume(name=f"{stem}-{stamp.VERSION}", title=_heading(found[0]), subtitle=book, pages=found)


def _heading(page: str) -> str:
    """Return the title of a page, read from its source."""
    lines = (ROOT / f"{page}.md").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("# ")).removeprefix("# ")


def script_free_page(browser: Browser) -> Page:
    """Return a browser page in which no script of the site runs."""
    context = browser.new_context(bypass_csp=True, color_scheme="light")
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.route("**/*.js", lambda route: route.abort())
    page.route("**/*.mjs", lambda route: route.abort())
    return page


def read_pages(page: Page, address: str, bound: Volume, *, joined: bool) -> Iterator[BoundPage]:
    """Yield every page of a volume as a `BoundPage`; `joined` if all of them form one document."""
    names, numbered, parts = bound.names(), numbers.of_pages(ROOT), order()
    for path, name in names.items():
        page.goto(f"{address}/{path}", wait_until="domcontentloaded")
        asked = {"name": name, "pages": names, "joined": joined}
        told = page.evaluate(f"(asked) => {{ {TURN}\nreturn bound(asked); }}", asked)
        yield BoundPage(
            name=name,
            title=told["title"],
            html=told["html"],
            number=numbered.get(path.removesuffix(".html"), ""),
            part=parts[path.removesuffix(".html")],
            sections=_places(told["sections"]),
            figures=_places(told["figures"]),
        )


def _places(told: list[dict[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((one["anchor"], one["said"]) for one in told)


def main() -> None:
    """Parse the command line and bind the volumes."""
    from web import epub, pdf, serve, site, volumes
    from web.browser import chromium

    parser = argparse.ArgumentParser(prog="python -m web.bound", description=__doc__)
    parser.add_argument("kind", choices=("pdf", "epub"))
    parser.add_argument("stems", nargs="*", help="chapters; none for the whole book")
    parser.add_argument("--site", type=Path, default=site.BUILD / "html")
    parser.add_argument("--to", type=Path, default=ROOT / "dist")
    given = parser.parse_args()
    if not given.site.is_dir():
        raise SystemExit(f"no site in {given.site}: run `make site`")
    given.to.mkdir(parents=True, exist_ok=True)
    bind = {"pdf": pdf.bind, "epub": epub.bind}[given.kind]
    with serve.running(given.site) as address, chromium() as browser:
        for stem in given.stems or [""]:
            path = bind(script_free_page(browser), address, volume(stem), given.to)
            if not stem:
                volumes.offer(given.site, path)
            print(path)


if __name__ == "__main__":
    main()
