"""The pages of the book: which there are, and to which chapter each belongs.

A chapter's page is `chapters/<stem>.md`. Pages below it in `_toc.yml` are its deeper pages,
`chapters/<stem>_<theme>.md`, which share its package, exercises and explorers. A chapter that was split
has several main pages and one package. Solutions, which are below a chapter too, are not among its pages.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tools.environment import ROOT


@dataclass(frozen=True, slots=True)
class Page:
    """A page in `chapters/`: its file name, its chapter's stem, and whether it is a deeper page."""

    name: str
    stem: str
    deeper: bool = False
    root: Path = ROOT

    def __str__(self) -> str:
        return f"chapters/{self.name}"

    @property
    def path(self) -> Path:
        return self.root / "chapters" / f"{self.name}.md"

    @property
    def text(self) -> str:
        """Its source."""
        return self.path.read_text(encoding="utf-8")


def every(root: Path = ROOT) -> tuple[Page, ...]:
    """Return all pages of the chapters, by name."""
    below = _deeper(root)
    names = sorted(path.stem for path in (root / "chapters").glob("*.md"))
    stems = _solved(root)
    return tuple(Page(name, _longest(name, stems), name in below, root) for name in names)


def of(stem: str, root: Path = ROOT) -> tuple[Page, ...]:
    """Return the pages of one chapter, its main page first."""
    return tuple(sorted((p for p in every(root) if p.stem == stem), key=lambda p: (p.deeper, p.name != stem)))


def chapter(name: str, root: Path = ROOT) -> str:
    """Return the chapter of a page: the longest stem with solutions that its name starts with."""
    return _longest(name, _solved(root))


def _solved(root: Path) -> list[str]:
    """Return the chapters that have solutions."""
    return [path.stem for path in (root / "solutions").glob("*.md")]


def _longest(name: str, stems: list[str]) -> str:
    return max((s for s in stems if name == s or name.startswith(f"{s}_")), key=len, default=name)


@cache
def _deeper(root: Path) -> frozenset[str]:
    """Return the names of pages below another page in the table of contents."""
    contents = root / "_toc.yml"
    told = yaml.safe_load(contents.read_text(encoding="utf-8")) if contents.exists() else {}
    return frozenset(Path(file).name for file in _below(told) if file.startswith("chapters/"))


def _below(entry: Any, within: bool = False) -> Iterator[str]:
    if isinstance(entry, list):
        for one in entry:
            yield from _below(one, within)
    elif isinstance(entry, dict):
        if within and "file" in entry:
            yield entry["file"]
        for name, inner in entry.items():
            yield from _below(inner, within or name == "sections")
