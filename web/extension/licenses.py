"""Write the license text of everything that the site ships, and a page that lists them.

Texts come from the installed packages; for packages without one (Pyodide, and what is compiled into it), from
`web/licenses`.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from web import vendor

FOLDER = "licenses"
KEPT = vendor.HERE / FOLDER


@dataclass(frozen=True, kw_only=True, slots=True)
class Shipped:
    """A shipped work: what is included, its license (SPDX), and the package that provides the license text.

    `covers` are patterns of files below `_static`, or names of the theme's style sheets.
    """

    name: str
    use: str
    kind: str
    npm: str
    python: str
    covers: tuple[str, ...]

    @property
    def file(self) -> str:
        """The name of its license file."""
        return f"{self.name.split(',')[0].lower().replace(' ', '-')}.txt"

    def text(self) -> str:
        """Return the license text."""
        return self._path().read_text(encoding="utf-8")

    def _path(self) -> Path:
        if self.npm:
            return next(vendor.package(self.npm).glob("LICENSE*"))
        if self.python:
            files = distribution(self.python).files or ()
            return Path(str(next(f.locate() for f in files if f.name.startswith("LICENSE"))))
        return vendor.ROOT / "LICENSE" if self.name == "The book" else KEPT / self.file


def shipped() -> tuple[Shipped, ...]:
    """Return the works listed in `web/licenses/shipped.csv`."""
    with (KEPT / "shipped.csv").open(encoding="utf-8", newline="") as table:
        return tuple(_read(**row) for row in csv.DictReader(table))


def _read(covers: str, **row: str) -> Shipped:
    return Shipped(covers=tuple(covers.split()), **row)


SHIPPED = shipped()


def listed(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the page that lists the licenses."""
    yield FOLDER, {"title": "Licenses", "shipped": SHIPPED}, "licenses.html"


def write(static: Path) -> None:
    """Write every license text into a folder."""
    folder = static / FOLDER
    folder.mkdir(exist_ok=True)
    for one in SHIPPED:
        (folder / one.file).write_text(one.text(), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Add the page; `assets` writes the texts."""
    app.connect("html-collect-pages", listed)
