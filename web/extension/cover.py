"""The directives of the cover: the list of chapters with reading times, reading paths, a figure, an explorer.

`{drawing} KEY` and `{explorer} KEY` show one on a page that is not a notebook. `{inside}` lists the chapters
of `_toc.yml` with their minutes; `{paths}` lists reading paths, one line `name | title | for whom` each.
"""

import posixpath
import re
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective

from scalingbook_book.chapters import explorers, figures
from scalingbook_book.chapters.intro.explorers.book_map import CHAPTERS, PATHS
from tools import pages, words
from tools.environment import ROOT
from web import stamp, vendor
from web.extension.page_data import shows_the_library

WORDS_A_MINUTE = 200  # for prose with numbers in it; exercises are not counted
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
KNOWN = {chapter.stem: chapter for chapter in CHAPTERS}


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter of the table of contents: its page, and the deeper pages below it."""

    page: str
    deeper: tuple[str, ...]
    listed: str = ""  # its title in the contents, if that differs from the page's own

    @property
    def stem(self) -> str:
        """The name of its file without the extension."""
        return posixpath.basename(self.page)

    @property
    def title(self) -> str:
        """Its title in the table of contents, or else on its page."""
        if self.listed:
            return self.listed
        found = _TITLE.search(_source(self.page))
        return found[1] if found else self.stem

    @property
    def minutes(self) -> tuple[int, int]:
        """The minutes to read its page, and all deeper pages."""
        return minutes(self.page), sum(map(minutes, self.deeper))

    @property
    def question(self) -> str:
        """The question that the chapter answers, or ""."""
        return KNOWN[self.stem].question if self.stem in KNOWN else ""


def parts(toc: dict[str, Any]) -> dict[str, tuple[Chapter, ...]]:
    """Return the parts of a table of contents that contain chapters."""
    found = {
        part["caption"]: tuple(
            _chapter(one) for one in part["chapters"] if one["file"].startswith("chapters/")
        )
        for part in toc["parts"]
    }
    return {caption: chapters for caption, chapters in found.items() if chapters}


def _chapter(entry: dict[str, Any]) -> Chapter:
    below = (page["file"] for page in entry.get("sections", ()))
    deeper = tuple(page for page in below if page.startswith("chapters/"))
    return Chapter(entry["file"], deeper, entry.get("title", ""))


@cache
def _source(page: str) -> str:
    return (ROOT / f"{page}.md").read_text(encoding="utf-8")


@cache
def minutes(page: str) -> int:
    """Return the minutes to read a page's prose and captions; cached by the page's content."""
    name = posixpath.basename(page)
    sources = (Path(words.__file__), *(ROOT / f"{page}{ending}" for ending in (".md", ".ipynb")))
    told = b"\0".join(path.read_bytes() for path in sources if path.exists())
    counted = vendor.cached(told, lambda: str(words.of(pages.Page(name, pages.chapter(name))).words))
    return max(round(int(counted) / WORDS_A_MINUTE), 1)


def duration(minutes: int) -> str:
    """Minutes as hours and minutes: '45 min', '2 h', '3 h 10 min'."""
    hours, rest = divmod(minutes, 60)
    return " ".join([f"{hours} h"] * bool(hours) + [f"{rest} min"] * bool(rest))


@cache
def contents() -> dict[str, tuple[Chapter, ...]]:
    """Return the chapters of the book, by part."""
    return parts(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8")))


class Inside(SphinxDirective):
    """The directive that lists the chapters by part, each with a bar proportional to its reading time."""

    def run(self) -> list[nodes.Node]:
        """Return one list of chapters."""
        _depends(self)
        listed = contents()
        longest = max(sum(chapter.minutes) for chapters in listed.values() for chapter in chapters)
        rows = {
            caption: "".join(_row(chapter, longest) for chapter in chapters)
            for caption, chapters in listed.items()
        }
        items = "".join(
            f'<li class="inside-part"><p>{escape(caption)}</p><ol>{row}</ol></li>'
            for caption, row in rows.items()
        )
        return [nodes.raw("", f'<ol class="inside">{items}</ol>', format="html")]


def _row(chapter: Chapter, longest: int) -> str:
    main, deeper = chapter.minutes
    more = f" <span>+ {deeper}</span>" if deeper else ""
    return (
        '<li class="inside-chapter">'
        f'<a href="{chapter.page}.html">{escape(chapter.title)}</a> '
        f'<span class="inside-asks">{escape(chapter.question)}</span>'
        f'<span class="inside-time"><svg viewBox="0 0 {longest} 8" preserveAspectRatio="none" '
        'aria-hidden="true">'
        f'<rect width="{main + deeper}" height="8" rx="1"/><rect width="{main}" height="8" rx="1"/></svg>'
        f" {main} min{more}</span></li>"
    )


class Paths(SphinxDirective):
    """The directive that offers reading paths; the page's script marks the chosen one in the sidebar."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return a group of radio buttons, or without scripts a list."""
        _depends(self)
        rows = "".join(_way(*(part.strip() for part in line.split("|"))) for line in self.content if line)
        told = "The table of contents then highlights its chapters, and the Next button follows it."
        legend = f"<legend>Choose a path. {told}</legend>"
        return [nodes.raw("", f'<fieldset class="paths">{legend}{rows}</fieldset>', format="html")]


def _way(name: str, title: str, whom: str) -> str:
    listed = {chapter.stem: chapter for chapters in contents().values() for chapter in chapters}
    order = [listed[chapter.stem] for chapter in PATHS[name] if chapter.stem in listed]
    pages = " ".join(f"{chapter.page}.html" for chapter in order)
    lasts = duration(5 * round(sum(minutes(chapter.page) for chapter in order) / 5))
    titles = ", ".join(chapter.title for chapter in order)
    which = "All chapters, in order." if len(order) == len(listed) else titles
    return (
        f'<label><input class="js-only" type="radio" name="path" value="{escape(name)}" data-pages="{pages}">'
        f" <strong>{escape(title)}</strong> <span>{lasts} of reading. {escape(whom)}</span>"
        f"<small>{escape(which)}</small></label>"
    )


def _depends(directive: SphinxDirective) -> None:
    """Rebuild the page if a chapter or the table of contents changes."""
    for path in (ROOT / "_toc.yml", *sorted((ROOT / "chapters").glob("*.md"))):
        directive.env.note_dependency(str(path))


class Drawing(SphinxDirective):
    """The directive that shows a figure of the book."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the figure as notebooks show it."""
        shows_the_library(self.env)
        return [nodes.raw("", figures.find(self.arguments[0]).html(), format="html")]


class Live(SphinxDirective):
    """The directive that shows an explorer of the book."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the explorer as notebooks show it."""
        shows_the_library(self.env)
        return [nodes.raw("", explorers.find(self.arguments[0]).html(), format="html")]


def name_the_release(app: Sphinx, config: Config) -> None:
    """Define `{{ version }}` and the other substitutions of the cover."""
    config.myst_substitutions = stamp.substitutions()


def setup(app: Sphinx) -> None:
    """Register the directives and the substitutions."""
    for name, directive in (("inside", Inside), ("paths", Paths), ("drawing", Drawing), ("explorer", Live)):
        app.add_directive(name, directive)
    app.connect("config-inited", name_the_release)
