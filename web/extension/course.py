"""The ten-week course: `data/course.csv` has the weeks, and the directive `{weeks}` lists them.

A week's pages are chapters' main pages, and its exercises are among those on these pages.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from scalingbook_book.chapters import checks
from tools import exercises, pages
from tools.environment import ROOT
from web.extension import cover
from web.extension.exercises import LEVELS, name

SOURCE = ROOT / "data" / "course.csv"
MINUTES = {1: 5, 2: 15, 3: 30}  # planned for an exercise, by difficulty; not measured
CELL, EXPLORER, GUESS = (
    1,
    3,
    1,
)  # minutes planned for visible code, an explorer and a prediction; not measured
_CODE = re.compile(r"^```\{code-cell\}.*\n(?!:tags: .*(?:hide-|remove-))", re.MULTILINE)
_EXPLORED = re.compile(r"^show\.explorer\(", re.MULTILINE)
_GUESSED = re.compile(r"^:{3,}\{answer\}", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """A week's reading, the sections that may be skipped, its exercises, and its question."""

    number: int
    pages: tuple[str, ...]
    skip: tuple[str, ...]
    exercises: tuple[str, ...]
    asks: str

    @property
    def title(self) -> str:
        """The titles of its chapters."""
        return "; ".join(chapter(page).title for page in self.pages)

    @property
    def reading_minutes(self) -> int:
        """The minutes to read its pages in full."""
        return sum(chapter(page).minutes[0] for page in self.pages)

    @property
    def studying_minutes(self) -> int:
        """The minutes to read its pages, run their code, use their explorers and make their predictions."""
        return self.reading_minutes + sum(map(_active_minutes, self.pages))

    @property
    def solving_minutes(self) -> int:
        """The minutes to solve its exercises."""
        return sum(MINUTES[checks.find(key).difficulty] for key in self.exercises)


@cache
def weeks() -> tuple[Week, ...]:
    """Return the weeks of the course, in order."""
    with SOURCE.open(encoding="utf-8", newline="") as file:
        return tuple(
            Week(
                number=int(row["week"]),
                asks=row["asks"],
                pages=tuple(row["pages"].split()),
                skip=tuple(row["skip"].split()),
                exercises=tuple(row["exercises"].split()),
            )
            for row in csv.DictReader(file)
        )


@cache
def _active_minutes(page: str) -> int:
    """Return the minutes planned for code, explorers and predictions of a page."""
    text = (ROOT / "chapters" / f"{page}.md").read_text(encoding="utf-8")
    explorers = len(_EXPLORED.findall(text))
    cells = len(_CODE.findall(text)) - explorers  # an explorer is a cell too
    return CELL * cells + EXPLORER * explorers + GUESS * len(_GUESSED.findall(text))


@cache
def chapter(page: str) -> cover.Chapter:
    """Return the chapter with that page."""
    listed = (one for chapters in cover.contents().values() for one in chapters)
    return next(one for one in listed if one.stem == page)


@cache
def places() -> dict[str, str]:
    """Return the main page on which each exercise appears, by its key."""
    main = [page for page in pages.every() if not page.deeper]
    found = ((page, one) for page in main for one in exercises.SHOWN.finditer(page.text))
    return {key: page.name for page, one in found for key in _keys(one["stem"], one["names"].split())}


def _keys(stem: str, names: list[str]) -> list[str]:
    """Return the keys of the exercises that a page names, or of those that no page names."""
    return [f"{stem}.{one}" for one in names] or [one.key for one in exercises.shown(stem, names)]


class Weeks(SphinxDirective):
    """The directive that lists the course."""

    def run(self) -> list[nodes.Node]:
        """Return the total effort, then a list of weeks with reading, skippable sections and exercises."""
        for path in (SOURCE, *sorted((ROOT / "chapters").glob("*.md"))):
            self.env.note_dependency(str(path))
        listed = "".join("".join(_told(week)) for week in weeks())
        return [nodes.raw("", f"<p>{effort()}</p><dl>{listed}</dl>", format="html")]


def effort() -> str:
    """Return a sentence on the time that the whole course takes."""
    every, known = [key for week in weeks() for key in week.exercises], len(checks.catalog())
    reading, studying, solving = (
        cover.duration(sum(getattr(week, f"{kind}_minutes") for week in weeks()))
        for kind in ("reading", "studying", "solving")
    )
    warm_up, core, stretch = MINUTES.values()
    return (
        f"The {len(weeks())} weeks take {reading} of reading, or about {studying} with the code, the "
        f"explorers and the predictions, and about {solving} for {len(every)} of {known} exercises. We plan "
        f"{CELL} minute for a visible cell or a prediction, {EXPLORER} minutes for an explorer, {warm_up} "
        f"for a warm-up, {core} for a core exercise and {stretch} for a stretch exercise; these are "
        "estimates, not measurements."
    )


def _told(week: Week) -> Iterator[str]:
    read = ", ".join(
        f'<a href="chapters/{page}.html">{escape(chapter(page).title)}</a>' for page in week.pages
    )
    yield f"<dt>Week {week.number}: {read}</dt>"
    yield f"<dd><p>{escape(week.asks)}</p>"
    studying = cover.duration(week.studying_minutes)
    told = f"Reading: {week.reading_minutes} min, or about {studying} with code and explorers."
    yield f"<p>{told} Optional: {', '.join(map(_section, week.skip))}.</p>"
    solve = ", ".join(map(_exercise, week.exercises))
    minutes = cover.duration(week.solving_minutes)
    yield f"<p>{len(week.exercises)} exercises, about {minutes}: {solve}.</p></dd>"


def _section(label: str) -> str:
    page, title = section(label)
    return f'<a href="chapters/{page}.html#{nodes.make_id(label)}">{escape(title)}</a>'


@cache
def section(label: str) -> tuple[str, str]:
    """Return the page of a label and the title of its section; raises a LookupError for an unknown label."""
    for page in pages.every():
        _, _, after = page.text.partition(f"\n({label})=\n")
        if title := next((line for line in after.splitlines() if line.startswith("#")), ""):
            return page.name, title.lstrip("# ")
    raise LookupError(f"no chapter has a section {label}")


def _exercise(key: str) -> str:
    check, place = checks.find(key), f"chapters/{places()[key]}.html#{name(key)}"
    return f'<a href="{place}">{escape(check.title)}</a> ({LEVELS[check.difficulty]})'


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("weeks", Weeks)
