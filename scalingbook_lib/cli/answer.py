"""What does a command answer, and how is it given?

A sentence, tables, values for programs, and how they were derived; as tables or as JSON, errors in one
sentence. A derivation writes its numbers so that a reader can type them into a calculator.
"""

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import click

from scalingbook_lib.cli import FAILED, INTERRUPTED
from scalingbook_lib.units import binary, percent, si

STOPPED = "Interrupted: this is the best of what was judged until then, not the end of the search."


@dataclass(frozen=True, slots=True)
class TextTable:
    """Rows of text under a title; columns in `words` are left-justified, those of numbers right."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True)
class DerivationLine:
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
    tables: tuple[TextTable, ...] = ()
    values: Mapping[str, object]
    steps: tuple[DerivationLine, ...] = ()
    refused: bool = False

    @property
    def stopped(self) -> bool:
        """Whether it is of a search that did not come to its end."""
        search = self.values.get("search")
        return isinstance(search, dict) and search["stopped"]


def picked(result: object, *names: str) -> dict[str, object]:
    """The values of a result that programs get under its own names."""
    return {name: getattr(result, name) for name in names}


def listed(title: str, rows: Iterable[tuple[str, ...]], columns: tuple[str, ...] = ("", "")) -> TextTable:
    """A table of names and what each has."""
    return TextTable(title, columns, tuple(rows))


SHARE = "share"  # of one, printed in percent


def figure(value: float) -> str:
    """All digits of a count, six significant figures of any other number: 8,192 and 1.97e14."""
    short = f"{value:.6g}".replace("e+", "e").replace("e0", "e").replace("e-0", "e-")
    if float(value).is_integer() and abs(value) < 1e15 and (isinstance(value, int) or abs(value) < 1e6):
        return f"{int(value):,}"
    return short


def product(*values: float) -> str:
    """'2 · 64 · 8,192'."""
    return " · ".join(map(figure, values))


def added(terms: Iterable[str]) -> str:
    """'a · b + c · d', and 0 for nothing."""
    return " + ".join(terms) or "0"


def told(value: float, unit: str) -> str:
    """A result with its unit, as a person reads it: bytes in both kinds of prefix."""
    if unit in ("FLOPs", "tokens", "parameters") and abs(value) >= 1e21:
        return f"{value:.3g} {unit}".replace("e+", "e")
    if unit == "B":
        return nbytes(value)
    if unit == "USD":
        return f"{value:,.3g} USD"
    if unit == SHARE:
        return percent(value, 3)
    if unit == "s" and abs(value) >= 1e4:  # nobody counts kiloseconds
        return f"{value:,.0f} s"
    return si(value, unit) if math.isfinite(value) else f"infinitely many {unit}"


def nbytes(value: float) -> str:
    """'141 GB = 131.4 GiB'; a small or a round number once."""
    decimal, power = si(value, "B"), binary(value)
    return decimal if value < 1000 else f"{decimal} = {power}"


def answering(command: Callable[..., Answer]) -> Callable[..., None]:
    """A command that hands the answer to whoever asks: what prints it, or a page."""

    @click.option("--explain", is_flag=True, help="Print how it is derived: formulas, then numbers.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON for programs; units are in the names.")
    @click.pass_context
    @functools.wraps(command)
    def run(ctx: click.Context, as_json: bool, explain: bool, **given: object) -> None:
        try:
            answer = command(**given)
        except (ValueError, OverflowError) as error:
            raise click.UsageError(str(error), ctx) from error
        ctx.obj(answer, as_json=as_json, explain=explain)
        if answer.stopped:
            click.echo(STOPPED, err=True)
            ctx.exit(INTERRUPTED)
        if answer.refused:
            ctx.exit(FAILED)

    return run


def sentence(error: click.ClickException) -> str:
    """An error on one line, and without what would steer the terminal."""
    text = " ".join(error.format_message().split())
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
