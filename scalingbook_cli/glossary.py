"""The book's glossary as plain text: every term with its definition and the section that teaches it.

The wheel contains `glossary.md` and `data/terms.csv`; a copy of the book has them at its root.
"""

import csv
import difflib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FOLDERS = (Path(__file__).with_name("book"), Path(__file__).parents[1], Path(__file__).parents[1] / "data")
_ENTRY = re.compile(r"^(?P<forms>(?:\S.*\n)+)(?P<meaning>(?:  .+\n)+)", re.MULTILINE)
_ROLE = re.compile(r"\{[a-z:]+\}`(?P<words>[^`<]+?)(?: <[^`>]+>)?`")
_BESIDE = {"notation": "Notation and units", "many-hosts": "Training on many hosts"}  # pages outside chapters
CLOSE = 0.6  # similarity of a term that is offered for an unknown one, between 0 and 1


class UnknownTerm(ValueError):
    """The glossary has no such term."""


@dataclass(frozen=True, slots=True)
class GlossaryTerm:
    """An entry: its headword, its other forms, its definition, and where the book teaches it."""

    name: str
    also: tuple[str, ...]
    definition: str
    section: str  # the label of a section
    chapter: str  # the title of its chapter


def find(words: str) -> GlossaryTerm:
    """Return the entry for a term in any case, or for its plural; raises UnknownTerm with similar terms."""
    key = " ".join(words.split()).casefold()
    known = _by_form()
    for form in (key, key.removesuffix("s"), key.removesuffix("es")):
        if form in known:
            return known[form]
    joined = {_joined(form): term for form, term in known.items()}
    if _joined(key) in joined:
        return joined[_joined(key)]
    near = difflib.get_close_matches(key, known, 3, CLOSE) or sorted(f for f in known if key and key in f)[:3]
    names = ", ".join(dict.fromkeys(known[form].name for form in near))
    advice = f"write one of {names}" if names else "see the page Glossary for all terms"
    raise UnknownTerm(f"{words[:60]!r} is not in the glossary; {advice}")


def names() -> tuple[str, ...]:
    """Return the headwords."""
    return tuple(dict.fromkeys(term.name for term in _by_form().values()))


@cache
def _by_form() -> dict[str, GlossaryTerm]:
    with _file("terms.csv").open(encoding="utf-8", newline="") as file:
        sections = {row["term"]: row["section"] for row in csv.DictReader(file)}
    found: dict[str, GlossaryTerm] = {}
    for entry in _ENTRY.finditer(_file("glossary.md").read_text(encoding="utf-8").partition(":sorted:")[2]):
        name, *also = entry["forms"].strip().split("\n")
        meaning = " ".join(_ROLE.sub(r"\g<words>", entry["meaning"]).split())
        section = sections.get(name, "")
        term = GlossaryTerm(name, tuple(also), meaning, section, _chapter(section))
        found |= {form.casefold(): term for form in (*also, name)}
    return found


def _joined(form: str) -> str:
    """Return a form without spaces and hyphens: 'all-gather' is AllGather."""
    return re.sub(r"[\s-]+", "", form)


def _file(name: str) -> Path:
    return next(path for folder in _FOLDERS if (path := folder / name).exists())


def _chapter(section: str) -> str:
    """Return the title of the chapter or page whose labels begin like this one."""
    from scalingbook_book.chapters.intro.explorers.book_map import CHAPTERS  # it computes a number for each

    label = re.sub(r"^moe\b", "transformers", section)  # sections of its page have a prefix of their own
    beside = next((title for name, title in _BESIDE.items() if label.startswith(name)), "")
    fitting = [one for one in CHAPTERS if label.startswith(one.stem)]
    return max(fitting, key=lambda one: len(one.stem)).title if fitting else beside
