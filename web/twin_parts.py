"""What a Markdown twin has instead of a directive that the site computes, such as a table of all chips.

Each function gets the argument and the body of the directive, and returns Markdown.
"""

import re
from collections.abc import Callable, Iterator

from scalingbook_book.chapters import checks, explorers, figures
from scalingbook_book.chapters.intro.explorers.book_map import PATHS
from scalingbook_lib import models
from scalingbook_lib.machines import chips, instances
from tools import plain
from tools.environment import ROOT
from web.extension import course, cover, side_by_side
from web.extension.exercises import LEVELS


def quoted(text: str) -> str:
    """Return a description of a figure or an explorer as a quote."""
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _explorer(key: str, body: str) -> str:
    return quoted(explorers.find(key).text())


def _drawing(key: str, body: str) -> str:
    return quoted(str(figures.find(key)))


def _chips(argument: str, body: str) -> str:
    return _table("chips", side_by_side.markdown(side_by_side.CHIPS, tuple(chips.ALL.values())))


def _instances(argument: str, body: str) -> str:
    return _table("instances", side_by_side.markdown(side_by_side.INSTANCES, instances.every()))


def _models(argument: str, body: str) -> str:
    return _table("models", side_by_side.markdown(side_by_side.MODELS, models.CATALOG))


def _table(name: str, table: str) -> str:
    return f"{table}\n\nThe same table in base units, with its sources: [{name}.csv](data/{name}.csv)."


def _inside(argument: str, body: str) -> str:
    return "\n\n".join(
        f"**{caption}**\n\n" + "\n".join(map(_line, chapters))
        for caption, chapters in cover.contents().items()
    )


def _line(chapter: cover.Chapter) -> str:
    main, deeper = chapter.minutes
    more = f", and {deeper} min for its deeper pages" if deeper else ""
    return f"- {_linked(chapter)}: {chapter.question} ({main} min{more})"


def _linked(chapter: cover.Chapter) -> str:
    return f"[{chapter.title}]({chapter.page}.md)"


def _paths(argument: str, body: str) -> str:
    listed = {chapter.stem: chapter for part in cover.contents().values() for chapter in part}
    lines = (line.split("|") for line in body.splitlines() if line)
    return "\n".join(
        f"- **{title.strip()}**: {whom.strip()} "
        + ", ".join(_linked(listed[one.stem]) for one in PATHS[name.strip()] if one.stem in listed)
        for name, title, whom in lines
    )


def _weeks(argument: str, body: str) -> str:
    return "\n\n".join((course.effort(), *map(_week, course.weeks())))


def _week(week: course.Week) -> str:
    read = ", ".join(_linked(course.chapter(page)) for page in week.pages)
    optional = ", ".join(course.section(label)[1] for label in week.skip)
    solved = (checks.find(key) for key in week.exercises)
    solve = ", ".join(f"{one.title} ({LEVELS[one.difficulty]})" for one in solved)
    return (
        f"**Week {week.number}: {read}.** {week.asks} Reading: {week.reading_minutes} min, or about "
        f"{cover.duration(week.studying_minutes)} with code and explorers. Optional: {optional}. "
        f"{len(week.exercises)} exercises, about {cover.duration(week.solving_minutes)}: {solve}."
    )


def _bibliography(argument: str, body: str) -> str:
    return "\n".join(sorted(_works(), key=str.casefold))


def _works() -> Iterator[str]:
    text = (ROOT / "references.bib").read_text(encoding="utf-8")
    titles = plain.titles(text)
    for key, (authors, year, url) in plain.works(text).items():
        title = f"[{titles[key]}]({url})" if url else titles[key]
        dated = f" ({year})" if year else ""
        yield f"- {authors}{dated}. {title}." if authors != titles[key] else f"- {title}{dated}."


PARTS: dict[str, Callable[[str, str], str]] = {
    "explorer": _explorer,
    "drawing": _drawing,
    "chips-table": _chips,
    "instances-table": _instances,
    "models-table": _models,
    "inside": _inside,
    "paths": _paths,
    "weeks": _weeks,
    "bibliography": _bibliography,
}
"""The directives that have a form in Markdown; the others stay on the page."""


def linked_files(text: str) -> Iterator[str]:
    """Yield the files of the repository that a twin links, relative to its root."""
    yield from dict.fromkeys(re.findall(r"\]\(((?:data|jobs)/[\w./-]+)\)", text))
