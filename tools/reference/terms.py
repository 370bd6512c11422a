"""The terms of the glossary, and the section that teaches each.

An entry of `glossary.md` may have several forms, one per line; the first is its headword. `data/terms.csv`
has the label of the section for each and, if it differs, the word used there.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tools import pages
from tools.environment import ROOT

TABLE = ROOT / "data" / "terms.csv"
PAGE = ROOT / "glossary.md"
_BLOCK = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"(?P<forms>(?:^\w.*\n)+)  (?P<meaning>.+)", re.MULTILINE)
_HEADING = re.compile(r"(?P<labels>(?:^\([\w-]+\)=\n)+)#+ .+\n", re.MULTILINE)
_LABEL = re.compile(r"^(- |\d\. )?\*\*[^*]+\*\*|\*\*[^*]+\*\*(?=:)", re.MULTILINE)
_SIGNS = re.compile(r"[\d$`{]|[.:]$")
_BOLD = re.compile(r"(?<!\*)\*\*(?!\*)([^*]+?)\*\*(?!\*)")


@dataclass(frozen=True, slots=True)
class Place:
    """A term, the label of the section that teaches it, and the word used there."""

    term: str
    section: str
    said: str


@cache
def places() -> tuple[Place, ...]:
    """Where each entry is taught."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(Place(r["term"], r["section"], r["said"] or r["term"]) for r in csv.DictReader(file))


def entries() -> dict[tuple[str, ...], str]:
    """Return the meaning of every entry by its forms, the headword first."""
    text = PAGE.read_text(encoding="utf-8").partition(":::{glossary}")[2]
    return {tuple(one["forms"].split("\n")[:-1]): one["meaning"] for one in _ENTRY.finditer(text)}


@cache
def headwords() -> dict[str, str]:
    """Return the headword of every form, in lower case."""
    return {form.casefold(): forms[0] for forms in entries() for form in forms}


@cache
def sections() -> dict[str, str]:
    """Return the text of every labeled section of the chapters and the two pages that also teach terms."""
    texts = [page.text for page in pages.every()]
    texts += [(ROOT / name).read_text(encoding="utf-8") for name in ("notation.md", "many-hosts.md")]
    return {label: text for source in texts for label, text in _sections(_BLOCK.sub("", source))}


def _sections(source: str) -> Iterator[tuple[str, str]]:
    found = list(_HEADING.finditer(source))
    ends = [one.start() for one in found[1:]] + [len(source)]
    for heading, end in zip(found, ends, strict=True):
        for label in re.findall(r"\(([\w-]+)\)=", heading["labels"]):
            yield label, source[heading.start() : end]


def bold(source: str) -> set[str]:
    """Return the bold phrases of a text, in lower case."""
    said = _BOLD.findall(_BLOCK.sub("", source))
    return {" ".join(one.split()).rstrip(".:").casefold() for one in said}


def bare(name: str) -> str:
    """Return a name without the sense in parentheses: `chunk (of a prompt)` is a chunk."""
    return name.partition(" (")[0]


def forms(words: str) -> set[str]:
    """Lower-case singular and plural forms of a term."""
    small = words.casefold()
    return {small, f"{small}s", f"{small}es", small.removesuffix("s"), small.removesuffix("es")}


def said_in_bold(source: str) -> set[str]:
    """Return the phrases that a text has in bold within sentences, without paragraph labels and formulas."""
    text = _LABEL.sub("", _BLOCK.sub("", source))
    plain = [" ".join(said.split()).casefold() for said in _BOLD.findall(text) if not _SIGNS.search(said)]
    return {said for said in plain if len(said) > 1 and len(said.split()) < 5}
