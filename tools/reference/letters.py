"""The tables of symbols in notation.md: `python -m tools.reference.letters` writes them.

`data/letters.csv` has a row per meaning: its table, symbols, meaning, unit, and pages. `*` is the whole book;
a row that names pages (`training*` for the chapter and its deeper pages) takes precedence there. A name
before brackets is an array, and the letters within are its dimensions and mesh axes: `A[I_X, J]` needs no
row.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from tools import pages
from tools.environment import ROOT

TABLE = ROOT / "data" / "letters.csv"
PAGE = ROOT / "notation.md"
WIDE = 30  # signs of TeX
_BLOCK = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`]*`")
_FORMULA = re.compile(r"\$\$(.*?)\$\$|(?<![\\$])\$(?!\s)((?:[^$\\]|\\.)+?)\$", re.DOTALL)
_GREEK = r"\\(?:alpha|beta|gamma|delta|epsilon|eta|lambda|pi|rho|sigma|tau|theta|ell)(?![a-z])"
_BELOW = r"_(?:\\text\{[^}]*\}|\{[^}]*\}|\\[a-z]+|\w)"
_SYMBOL = re.compile(rf"(?:{_GREEK}|[A-Za-z])(?:\^\\star)?(?:{_BELOW})?")
_GRADIENT = re.compile(rf"\\(?:bar|overline) ?(?:\{{[^}}]*\}}+|\w)(?:{_BELOW})?(?=(?P<array>\[)?)")
_ARRAY = re.compile(
    r"(?:\\text\{\w+\}|(?P<name>[A-Za-z](?:_\\text\{\w+\}|_\w)?))?(?:\^\\top|\^T)?(?:\\,)?\[[\w ,\\{}/]*\]"
)
_NO_SYMBOL = re.compile(  # words, operators and what is below them, axes of a partial sum, Euler's number
    r"\\\{U_(?:\{\w+\}|\w)\\\}|\\(?:begin|end)\{\w+\}|\\(?:mathrm|xrightarrow)\{[^{}]*\}(?:_\w)?|\\text\{\w+\}_\w"
    rf"|\\(?:sum|prod|max|min|log)(?:{_BELOW})?|(?<!_)\\text\{{[^}}]*\}}|\be(?=\^)|\bd(?=[A-Z])"
    rf"|(?<!_)\\(?!text\{{|star)(?!{_GREEK[2:]})[a-zA-Z]+"
)
_INDEX = re.compile(
    r"_(?:\{[ijkhXYZ]+\}|[ijkhXYZ]|\d)$"
)  # an element, a copy, or the mesh axes of a dimension


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One meaning: the heading of its table, its symbols in TeX, meaning, unit, pages."""

    table: str
    symbols: str
    meaning: str
    unit: str
    pages: str

    @property
    def each(self) -> list[str]:
        """Its symbols, one by one."""
        return self.symbols.split(", ")

    @property
    def tex(self) -> str:
        """Its symbols in a table cell, which may wrap if they are long."""
        return ", ".join(f"${one}$" for one in self.each) if len(self.symbols) > WIDE else f"${self.symbols}$"

    def names(self, page: str) -> bool:
        """Return whether it names this page, rather than the whole book."""
        return self.pages != "*" and any(fnmatchcase(page, one) for one in self.pages.split())


@cache
def rows() -> tuple[Row, ...]:
    """Return every meaning, in the order of the tables."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(Row(**row) for row in csv.DictReader(file))


def meanings(page: str) -> dict[str, list[Row]]:
    """Return the meanings of symbols on a page; more than one row per symbol is an error."""
    found: dict[str, list[Row]] = {}
    for row in rows():
        for symbol in row.each if row.names(page) else ():
            found.setdefault(symbol, []).append(row)
    for row in rows():
        for symbol in row.each if row.pages == "*" else ():
            found.setdefault(symbol, [row])
    return found


def used(source: str) -> set[str]:
    """Return the symbols for numbers in a page's formulas, with subscripts."""
    formulas = [one or other for one, other in _FORMULA.findall(_CODE.sub("", _BLOCK.sub("", source)))]
    bare = [_GRADIENT.sub(" ", formula) for formula in formulas]  # a bar: the gradient of what is below it
    arrays = {found["name"] for formula in formulas for found in _ARRAY.finditer(formula)}
    symbols = {symbol for formula in bare for symbol in _symbols(formula)}
    return {s for s in symbols if s not in arrays and (s[-1].isdigit() or of(s) not in arrays)}


def of(symbol: str) -> str:
    """Return a symbol without its index."""
    return _INDEX.sub("", symbol)


def _symbols(formula: str) -> Iterator[str]:
    yield from _SYMBOL.findall(_NO_SYMBOL.sub(" ", _ARRAY.sub(" ", formula)))


def table(heading: str) -> str:
    """Return one table of the page, in Markdown."""
    lines = [
        f"| {row.tex} | {row.meaning}{_on(row)} | {row.unit} |" for row in rows() if row.table == heading
    ]
    return "\n".join(["| symbol | meaning | unit |", "|---|---|---|", *lines])


def _on(row: Row) -> str:
    """Return the pages of a row that holds on deeper pages only, as links."""
    names = row.pages.split()
    if row.pages == "*" or any(pages.chapter(name.strip("*")) == name.strip("*") for name in names):
        return ""
    themes = {name: name.removeprefix(pages.chapter(name))[1:].replace("_", " ") for name in names}
    return f" ({', '.join(f'{{ref}}`{theme} <{name}>`' for name, theme in themes.items())})"


def page(text: str) -> str:
    """Return the notation page with every table of symbols rewritten, at the end of its section."""
    for heading in filter(None, dict.fromkeys(row.table for row in rows())):
        place = re.compile(rf"(^#+ {re.escape(heading)}\n)((?:(?!#|\(\w).*\n)*)", re.MULTILINE)
        found = place.search(text)
        if not found:
            raise SystemExit(f"notation.md has no heading {heading!r}")
        said = re.sub(r"^\|.*\n", "", found[2], flags=re.MULTILINE).strip("\n")
        whole = "\n\n".join([found[1].strip("\n"), *[said] * bool(said), table(heading)])
        text = f"{text[: found.start()]}{whole}\n\n{text[found.end() :]}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
