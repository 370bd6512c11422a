"""Finds phrases that the book does not use, by the list in data/phrases.csv.

A refused phrase is wrong in any context, and `make lint` fails on it. A reported word is wrong in some
contexts only: `python -m tools.phrases` prints how often it occurs per 10,000 words, and a person decides.
"""

import csv
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.environment import ROOT

LIST = ROOT / "data" / "phrases.csv"
FOLDERS = ("chapters", "solutions")
_CODE = re.compile(r"^(`{3,}).*?^\1$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A row of the list: a pattern, what to write instead, and an example of each."""

    kind: str  # refused or reported
    pattern: re.Pattern[str]
    instead: str
    wrong: str
    right: str


@cache
def phrases(kind: str) -> tuple[Phrase, ...]:
    """The phrases of one kind."""
    with LIST.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == kind]
    return tuple(
        Phrase(kind, re.compile(row["phrase"], re.IGNORECASE), row["instead"], row["wrong"], row["right"])
        for row in rows
    )


def prose(path: Path) -> str:
    """The text of a page with its code blanked, so that line numbers stay."""
    text = path.read_text(encoding="utf-8")
    return _CODE.sub(lambda code: "\n" * code[0].count("\n"), text)


def texts() -> Iterator[tuple[str, str]]:
    """The chapters, deeper pages and solutions by path."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).glob("*.md")):
            yield path.relative_to(ROOT).as_posix(), prose(path)


def refusals(name: str, text: str) -> Iterator[str]:
    """A sentence for each refused phrase in a text."""
    for phrase in phrases("refused"):
        for found in phrase.pattern.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{name}:{line}: write {phrase.instead!r} instead of {found[0]!r}"


def report() -> Iterator[str]:
    """Each reported word with its number of occurrences per 10,000 words, most frequent first."""
    whole = "\n".join(text for _, text in texts())
    words = len(whole.split())
    counts = {phrase: len(phrase.pattern.findall(whole)) for phrase in phrases("reported")}
    for phrase, count in sorted(counts.items(), key=lambda item: -item[1]):
        yield f"{1e4 * count / words:6.1f} per 10,000 words  {phrase.pattern.pattern}  ({phrase.instead})"


def main(words: list[str]) -> int:
    """Print the refused phrases, and the report unless `--refused` is given; 1 if any is refused."""
    refused = [line for name, text in texts() for line in refusals(name, text)]
    print(*refused, sep="\n", end="\n" if refused else "")
    if "--refused" not in words:
        print(*report(), sep="\n")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
