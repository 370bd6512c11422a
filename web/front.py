"""The title page and the parts of a volume, shared by `web.pdf` and `web.epub`.

Names come from `CITATION.cff`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from html import escape
from itertools import groupby

from web import stamp
from web.bound import BoundPage, Volume

LICENSES = "The text is under CC BY 4.0, the code under the MIT license."
ON_THE_SITE = (
    "move the sliders of every explorer, have your answers to the exercises checked, search the book, and "
    "open each chapter as a notebook. In this volume an explorer shows its starting values, every answer "
    "stands below its question, and the worked solutions are at the back."
)


@dataclass(frozen=True, slots=True)
class Part:
    """Pages below one heading of the table of contents."""

    title: str
    pages: tuple[BoundPage, ...]


def parts(pages: list[BoundPage]) -> Iterator[Part]:
    """Yield the parts of a volume, in order."""
    for title, own in groupby(pages, key=lambda page: page.part):
        yield Part(title, tuple(own))


def title_page(volume: Volume, day: date) -> str:
    """Return the title page as HTML: title, authors, edition, licenses, and what the site adds."""
    edition = f"Version {stamp.version()}, {day.day} {day:%B %Y}"
    lines = (
        ("front-title", escape(volume.title)),
        ("front-subtitle", escape(volume.subtitle)),
        ("front-authors", escape(stamp.authors())),
        ("front-edition", edition),
        ("front-license", LICENSES),
        ("front-site", f"{_site(stamp.address())} you can {ON_THE_SITE}"),
    )
    shown = "".join(f'<p class="{name}">{text}</p>' for name, text in lines if text)
    return f'<header class="front">{shown}</header>'


def _site(address: str) -> str:
    """Return a phrase that names the site, with a link if it has an address."""
    where = escape(address)
    return f'On the book\'s site, <a href="{where}">{where}</a>,' if address else "On the book's site"
