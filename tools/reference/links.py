"""List the words that authors link to the glossary: `python -m tools.reference.links`.

It writes data/ambiguous_links.csv. The terms of `data/linked_terms.txt` have only one sense, and the site
links them automatically. Every other word is linked only where its author marks it with `{term}`. The file
lists these links, each with its sentence, so that a person can check that the definition has the sense of the
sentence.
"""

import csv
import io
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tools.environment import ROOT
from tools.reference import terms

LINKED = ROOT / "data" / "linked_terms.txt"
TABLE = ROOT / "data" / "ambiguous_links.csv"
_BLOCK = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_ROLE = re.compile(r"\{term\}`(?P<said>[^`<]+?)(?: <(?P<name>[^`>]+)>)?`")
_PARAGRAPH = re.compile(r"\n\s*\n|^:+.*\n|\n(?=\s*(?:[-*]|\d+\.) )", re.MULTILINE)
_END = re.compile(r"(?<=[.?!])\s+(?=[^a-z\s])")


class Link(NamedTuple):
    """A marked link: its entry, its page, its words, and their sentence with the words in brackets."""

    entry: str
    page: str
    said: str
    sentence: str


@cache
def linked() -> frozenset[str]:
    """Return the terms that are linked automatically."""
    return frozenset(LINKED.read_text(encoding="utf-8").splitlines())


def singular(said: str, names: frozenset[str]) -> str | None:
    """Return the name among `names` that words of a sentence stand for, capitalized or plural."""
    for bare in (said, said[:1].lower() + said[1:]):
        for form in (bare, bare.removesuffix("s"), bare.removesuffix("es")):
            if form in names:
                return form
    return None


def ambiguous() -> list[Link]:
    """Return every marked link whose words are not on the list of unambiguous terms, by entry and page."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("chapters/*.md"), *ROOT.glob("solutions/*.md")]
    found = [link for page in sorted(pages) for link in _marked(page)]
    return sorted(found, key=lambda link: (link.entry.casefold(), link.page))


def _marked(page: Path) -> Iterator[Link]:
    name = page.relative_to(ROOT).with_suffix("").as_posix()
    for paragraph in _PARAGRAPH.split(_BLOCK.sub("", page.read_text(encoding="utf-8"))):
        text = " ".join(paragraph.split())
        for role in _ROLE.finditer(text):
            if singular(role["said"], linked()) is None:
                meant = (role["name"] or role["said"]).casefold()
                yield Link(terms.headwords().get(meant, meant), name, role["said"], _sentence(text, role))


def _sentence(text: str, role: re.Match[str]) -> str:
    start = max([0, *(end.end() for end in _END.finditer(text, 0, role.start()))])
    end = next((end.start() for end in _END.finditer(text, role.end())), len(text))
    before, after = (
        _ROLE.sub(r"\g<said>", part) for part in (text[start : role.start()], text[role.end() : end])
    )
    return f"{before}[{role['said']}]{after}"


def table() -> str:
    """Return the file that lists the ambiguous links."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([Link._fields, *ambiguous()])
    return file.getvalue()


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
