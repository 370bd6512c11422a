"""What does a command answer? A sentence, tables, values for programs, and how they were derived."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under a title; columns in `words` are left-justified, those of numbers right."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a derivation: a formula in the book's letters, the same with numbers, and what it gives.

    `numbers` is an expression that can be computed by hand; where there is none, words that say how it was
    counted.
    """

    name: str
    formula: str
    numbers: str
    value: float
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All that a command has to say. `values` has the unit in the name of every key; `refused` is why not."""

    told: str
    tables: tuple[Table, ...] = ()
    values: Mapping[str, object]
    steps: tuple[Line, ...] = ()
    refused: bool = False


def picked(result: object, *names: str) -> dict[str, object]:
    """The values of a result that programs get under its own names."""
    return {name: getattr(result, name) for name in names}


def listed(title: str, rows: Iterable[tuple[str, ...]], columns: tuple[str, ...] = ("", "")) -> Table:
    """A table of names and what each has."""
    return Table(title, columns, tuple(rows))
