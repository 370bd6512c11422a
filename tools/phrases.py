"""Find phrases that the book does not use, by the list in data/phrases.csv.

A refused phrase is wrong in any context, and `make lint` fails on it, whether a page, a docstring, a message
or a comment contains it. A reported word is wrong in some contexts only: `python -m tools.phrases` prints how
often it occurs per 10,000 words of the pages, and a person decides.
"""

import csv
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.environment import PACKAGES, ROOT

LIST = ROOT / "data" / "phrases.csv"
PAGES = ("*.md", "chapters/*.md", "solutions/*.md", "docs/*.md", "data/*.md")
CODE = tuple(f"{folder}/**/*.py" for folder in (*PACKAGES, "tools", "web", "benchmarks"))
_WORDS = {tokenize.STRING, tokenize.FSTRING_MIDDLE, tokenize.COMMENT}
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
    """Return the phrases of one kind."""
    with LIST.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == kind]
    return tuple(
        Phrase(kind, _pattern(row["phrase"]), row["instead"], row["wrong"], row["right"]) for row in rows
    )


def _pattern(phrase: str) -> re.Pattern[str]:
    """Return a phrase as a pattern whose spaces also match line breaks, except in brackets."""
    return re.compile(re.sub(r"(?<!\[) ", r"\\s+", phrase), re.IGNORECASE)


def prose(path: Path) -> str:
    """Return the text of a page with its code blanked, so that line numbers stay."""
    text = path.read_text(encoding="utf-8")
    return _CODE.sub(lambda code: "\n" * code[0].count("\n"), text)


def words_of_code(path: Path) -> str:
    """Return the docstrings, messages and comments of a module, on the lines on which they are."""
    source = path.read_text(encoding="utf-8")
    lines = [""] * (source.count("\n") + 2)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _WORDS:
            for line, text in enumerate(token.string.split("\n"), token.start[0] - 1):
                lines[line] += f" {text}"
    return "\n".join(lines)


def texts() -> Iterator[tuple[str, str]]:
    """Yield the prose of every page by path."""
    return ((name, prose(path)) for name, path in _files(PAGES))


def code() -> Iterator[tuple[str, str]]:
    """Yield the docstrings, messages and comments of every module by path."""
    return ((name, words_of_code(path)) for name, path in _files(CODE))


def _files(patterns: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            yield path.relative_to(ROOT).as_posix(), path


def refusals(name: str, text: str) -> Iterator[str]:
    """Yield a sentence for each refused phrase in a text."""
    for phrase in phrases("refused"):
        for found in phrase.pattern.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{name}:{line}: write {phrase.instead!r} instead of {found[0]!r}"


def report() -> Iterator[str]:
    """Yield each reported word with its number of occurrences per 10,000 words, most frequent first."""
    whole = "\n".join(text for _, text in texts())
    words = len(whole.split())
    counts = {phrase: len(phrase.pattern.findall(whole)) for phrase in phrases("reported")}
    for phrase, count in sorted(counts.items(), key=lambda item: -item[1]):
        yield f"{1e4 * count / words:6.1f} per 10,000 words  {phrase.pattern.pattern}  ({phrase.instead})"


def main(words: list[str]) -> int:
    """Print the refused phrases, and the report unless `--refused` is given; 1 if any is refused."""
    refused = [line for name, text in (*texts(), *code()) for line in refusals(name, text)]
    print(*refused, sep="\n", end="\n" if refused else "")
    if "--refused" not in words:
        print(*report(), sep="\n")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
