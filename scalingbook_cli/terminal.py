"""Prints an answer to the terminal, as tables or as JSON."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict

import click
from rich import box
from rich.console import Console
from rich.table import Table as Drawn
from rich.text import Text

from scalingbook_cli.answer import TERMINAL_COLUMNS, Answer, DerivationLine, TextTable, format_value
from scalingbook_cli.table_width import fitted


def show(answer: Answer, *, as_json: bool, explain: bool) -> None:
    """Print an answer, with its derivation if `explain`."""
    lines = answer.steps if explain else ()
    if as_json:
        values = dict(answer.values) | ({"derivation": [asdict(line) for line in lines]} if explain else {})
        click.echo(json.dumps(_plain(values), indent=2, allow_nan=False))
        return
    console = _console()
    console.print(Text(answer.summary))
    for table in answer.tables:
        for part in fitted(table, console.width):
            console.print()
            console.print(_drawn(part))
    if explain and answer.details:
        console.print(Text("\nSearch", "bold"))
        console.print(Text("\n".join(answer.details)))
    if lines:
        console.print(Text("\nDerivation", "bold"))
    for line in lines:
        console.print(_written(line))


def _console() -> Console:
    probe = Console(markup=False, highlight=False, emoji=False)
    width = None if probe.is_terminal or "COLUMNS" in probe._environ else TERMINAL_COLUMNS
    return Console(markup=False, highlight=False, emoji=False, width=width)


def _drawn(table: TextTable) -> Drawn:
    title = Text(table.title, "bold") if table.title else None
    drawn = Drawn(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    drawn.show_header = any(table.columns)
    for number, column in enumerate(table.columns):
        drawn.add_column(
            Text(column),
            justify="left" if number in table.words else "right",
            overflow="fold",  # of a word that is longer than a line
        )
    for row in table.rows:
        drawn.add_row(*map(Text, row))
    return drawn


def _written(line: DerivationLine) -> Text:
    """Formula, numbers and result on separate lines with aligned equality signs."""
    text = [Text.assemble((line.name, "bold"), f" = {line.formula}")]
    if line.numbers:
        text.append(Text(f"  = {line.numbers}"))
    text.append(Text.assemble("  = ", (format_value(line.value, line.unit), "green")))
    return Text("\n").join(text)


def _plain(value: object) -> object:
    """A value that JSON can represent; null for infinite or unknown numbers."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
