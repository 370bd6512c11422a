"""Where does an old address lead? To the page that has the text now.

`web/addresses.csv` has every section of the book as it stood on 2026-11-22, before chapters got deeper pages:
page, anchor and label. What a page no longer has is looked up where its label stands now; so are exercises
and explorers that stand on another page of their chapter. The script of a page loads the table when it is
asked for something that is not there (`web/page/site/moved.mjs`).
"""

import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from docutils.nodes import make_id
from sphinx.application import Sphinx

from scalingbook_lib.chapters import checks
from tools import pages
from web import vendor
from web.extension import exercises

TABLE = vendor.HERE / "addresses.csv"
SCRIPT = "moved.js"
_ID = re.compile(r'\bid="([^"]+)"')
_EXPLORER = re.compile(r'data-explorer="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Address:
    """A section as it stood: its page, the anchor made of its title, its label or that of what held it."""

    page: str
    anchor: str
    label: str


def old() -> tuple[Address, ...]:
    """Every section of the chapters on 2026-11-22."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(Address(**row) for row in csv.DictReader(file))


def write(app: Sphinx, static: Path, built: dict[str, str]) -> None:
    """Put the table of what has moved beside the other scripts; `built` are the site's files."""
    told = json.dumps(_moved(app, built), separators=(",", ":"), sort_keys=True)
    (static / SCRIPT).write_text(f"globalThis.bookMoved = {told};\n", encoding="utf-8")


def _moved(app: Sphinx, built: dict[str, str]) -> dict[str, dict[str, str]]:
    """By page what is not on it (any more): an anchor, or an explorer behind a question mark; its address."""
    known = sorted(app.env.found_docs, reverse=True)  # of several pages, the chapter's own is the last
    texts = {page: built[f"{page}.html"] for page in known if f"{page}.html" in built}
    ids = {page: set(_ID.findall(text)) for page, text in texts.items()}
    moved: dict[str, dict[str, str]] = defaultdict(dict)
    for page, anchor, to in (*_sections(app), *_exercises(app), *_explorers(texts)):
        if page in ids and anchor not in ids[page]:
            moved[f"{page}.html"][anchor] = to
    return moved


def _sections(app: Sphinx) -> Iterator[tuple[str, str, str]]:
    labels = app.env.get_domain("std").anonlabels  # type: ignore[attr-defined]
    for address in old():
        if address.label in labels:
            page, anchor = labels[address.label][:2]
            for once in (address.anchor, make_id(address.label)):
                yield address.page, once, f"{page}.html#{anchor}"


def _exercises(app: Sphinx) -> Iterator[tuple[str, str, str]]:
    once = {key: ordinal for ordinal, key in checks.ordinals().items()}
    for page, keys in sorted(exercises.shown(app.env).items()):
        for key in keys:
            here = f"{page}.html#{exercises.name(key)}"
            for other in _others(page):
                yield other, exercises.name(key), here
                if key in once:
                    yield other, exercises.name(once[key]), here


def _explorers(texts: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    for page, text in texts.items():
        for key in _EXPLORER.findall(text):
            for other in _others(page) or map(str, pages.of(key.partition(".")[0])):  # notation.md shows some
                if f'data-explorer="{key}"' not in texts.get(other, ""):
                    yield other, f"?{key}", f"{page}.html"


def _others(page: str) -> list[str]:
    """The other pages of the same chapter."""
    chapters = _chapters()
    return [other for other, stem in chapters.items() if stem == chapters.get(page) and other != page]


@cache
def _chapters() -> dict[str, str]:
    """The chapter of each page."""
    return {str(page): page.stem for page in pages.every()}
