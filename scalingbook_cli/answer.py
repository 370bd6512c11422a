"""The answer of a command: at most three short lines, tables, values for programs, and the derivation.

Errors are one sentence. Derivations write numbers so that a reader can type them into a calculator.
"""

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import click

from scalingbook_cli import FAILED, INTERRUPTED, LIMIT_EXCEEDED
from scalingbook_lib.units import binary, count, count_in_words, percent, price, si

NOTES = "scalingbook.notes"  # the key of the context for sentences on how a machine's name was read
_PART_LABELS = {
    "kv": "KV cache",
    "draft kv": "draft KV cache",
    "mlp": "MLP",
}  # of the names in Python and JSON
COLUMN_GAP = 3  # characters between two columns; one is left at each end of a line
TERMINAL_COLUMNS = 100  # the width for which answers are laid out
SUMMARY_LINES = 3  # before the first table
STOPPED = "Interrupted: this is the best plan found so far; the search did not finish."


@dataclass(frozen=True, slots=True)
class TextTable:
    """Rows of text with a title; the columns in `words` are left-aligned, all others right-aligned.

    The columns in `optional` are left out of a table that is too wide, the first of them first.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = (0,)
    optional: tuple[str, ...] = ()

    @property
    def by_column(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The heading and the cells of each column."""
        return tuple((name, tuple(cells)) for name, *cells in zip(self.columns, *self.rows, strict=True))

    @property
    def width(self) -> int:
        """The characters of a line in which no cell is wrapped."""
        lines = (
            [line for cell in (name, *cells) for line in cell.split("\n")] for name, cells in self.by_column
        )
        return sum(max(map(len, column)) + COLUMN_GAP for column in lines) - 1

    def without(self, name: str) -> "TextTable":
        """The table without the column of that name."""
        at = self.columns.index(name)
        return self.only(tuple(n for n in range(len(self.columns)) if n != at))

    def only(self, places: tuple[int, ...]) -> "TextTable":
        """The table with these columns."""
        columns, *rows = (tuple(row[n] for n in places) for row in (self.columns, *self.rows))
        words = tuple(n for n, place in enumerate(places) if place in self.words)
        return TextTable(self.title, columns, tuple(rows), words, self.optional)


@dataclass(frozen=True, slots=True)
class DerivationLine:
    """One line of a derivation: a formula in the book's letters, the same with numbers, and the result.

    `numbers` is an expression that can be computed by hand, or else words that say how the result was
    counted.
    """

    name: str
    formula: str
    numbers: str
    value: float
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a command.

    `summary` has at most three lines of at most 100 characters; `details` are sentences that only `--explain`
    prints, before the derivation in `steps`. The names in `values` contain the unit. `refused` means that
    there is no result, `limit_exceeded` that a result exceeds a limit that the user gave.
    """

    summary: str
    tables: tuple[TextTable, ...] = ()
    values: Mapping[str, object]
    steps: tuple[DerivationLine, ...] = ()
    details: tuple[str, ...] = ()
    refused: bool = False
    limit_exceeded: bool = False

    @property
    def stopped(self) -> bool:
        """Whether it comes from an interrupted search."""
        search = self.values.get("search")
        return isinstance(search, dict) and search["stopped"]


def fields_of(result: object, *names: str) -> dict[str, object]:
    """The named attributes of a result as a dictionary."""
    return {name: getattr(result, name) for name in names}


def name_value_table(
    title: str, rows: Iterable[tuple[str, ...]], columns: tuple[str, ...] = ("", "")
) -> TextTable:
    """A table of names and values."""
    return TextTable(title, columns, tuple(rows))


SHARE = "share"  # the unit of a fraction that is printed in percent


def part_label(name: str) -> str:
    """The name of a part of a model or of a memory as tables and charts print it: 'MLP' for 'mlp'."""
    return _PART_LABELS.get(name, name)


def figure(value: float) -> str:
    """All digits of a count, otherwise six significant digits: '8,192' and '1.97e14'."""
    short = f"{value:.6g}".replace("e+", "e").replace("e0", "e").replace("e-0", "e-")
    if float(value).is_integer() and abs(value) < 1e15 and (isinstance(value, int) or abs(value) < 1e6):
        return f"{int(value):,}"
    return short


def product(*values: float) -> str:
    """'2 · 64 · 8,192'."""
    return " · ".join(map(figure, values))


def added(terms: Iterable[str]) -> str:
    """'a · b + c · d', or '0' for no terms."""
    return " + ".join(terms) or "0"


def format_value(value: float, unit: str) -> str:
    """A result with its unit for people; bytes with decimal and binary prefixes."""
    if unit == "parameters":
        return f"{count_in_words(value)} {unit}"
    if unit in ("FLOPs", "tokens") and abs(value) >= 1e21:
        return f"{value:.3g} {unit}".replace("e+", "e")
    if unit == "B":
        return nbytes(value)
    if unit == "USD":
        return f"{count_in_words(value) if abs(value) >= 1e6 else price(value)} USD"
    if unit == SHARE:
        return percent(value, 3)
    if unit == "s" and abs(value) >= 86_400:
        return f"{count_in_words(value)} s, {count_in_words(value / 86_400)} days"
    if unit == "s" and abs(value) >= 1e4:  # no kiloseconds
        return f"{value:,.0f} s"
    if unit == "FLOPs/B" and 1e3 <= abs(value) < 1e6:  # no kiloFLOPs
        return f"{count(round(value))} {unit}"
    return si(value, unit) if math.isfinite(value) else "infinite"


def nbytes(value: float) -> str:
    """'141 GB = 131.4 GiB'; only one of them for small values."""
    decimal, power = si(value, "B"), binary(value)
    return decimal if value < 1000 else f"{decimal} = {power}"


def answer_command(command: Callable[..., Answer]) -> Callable[..., None]:
    """Decorate a command so that its answer goes to the context's printer, with `--explain` and `--json`.

    A ValueError or OverflowError becomes a usage error.
    """

    @click.option(
        "--explain", is_flag=True, help="Also print the search and the derivation: formulas, then numbers."
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON; the names contain the units.")
    @click.pass_context
    @functools.wraps(command)
    def run(ctx: click.Context, as_json: bool, explain: bool, **given: object) -> None:
        try:
            answer = command(**given)
        except (ValueError, OverflowError) as error:
            raise click.UsageError(str(error), ctx) from error
        if notes := ctx.meta.get(NOTES):  # what the name of a machine was taken to mean
            answer = _with_notes(answer, tuple(notes))
        ctx.obj(answer, as_json=as_json, explain=explain)
        if answer.stopped:
            click.echo(STOPPED, err=True)
            ctx.exit(INTERRUPTED)
        if answer.refused:
            ctx.exit(FAILED)
        if answer.limit_exceeded:
            ctx.exit(LIMIT_EXCEEDED)

    return run


def _with_notes(answer: Answer, notes: tuple[str, ...]) -> Answer:
    """The answer with sentences on the machine: in its summary while that is short, else in a table."""
    values = {**answer.values, "machine_note": "; ".join(notes)}
    lines = (*answer.summary.split("\n"), *notes)
    if len(lines) <= SUMMARY_LINES:
        return replace(answer, summary="\n".join(lines), values=values)
    table = TextTable("Machine", ("",), tuple((note,) for note in notes))
    return replace(answer, tables=(table, *answer.tables), values=values)


def sentence(error: click.ClickException) -> str:
    """The message of an error on one line, without terminal control characters."""
    text = " ".join(error.format_message().split())
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
