"""The command `scalingbook conform`: compares a calculator's numbers with the conformance vectors."""

import click

from scalingbook_cli import reading
from scalingbook_cli.answer import Answer, TextTable, answer_command
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.models.conformance import compared
from scalingbook_lib.models.conformance.compared import Conformance, Difference

MOST_UNKNOWN = 8  # rows that are named in the table


@click.command("conform", short_help="Differences of a calculator's numbers from the conformance vectors.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@answer_command
def command(file: str) -> Answer:
    """Compare the numbers of any calculator in FILE with the conformance vectors of models.

    FILE is a CSV with the columns model, quantity and value, or JSON in the format of the vectors, which are
    in data/vectors/models.json: parameters, active parameters, weight bytes, KV-cache bytes per token by kind
    of layer, recurrent states, and FLOPs of one token at five context lengths. If a known mistake gives a
    value that differs, such as tied embeddings counted twice, it is named. The exit code is 1 if a value
    differs, or if none could be compared.
    """
    found = compared.conform(reading.file(file).read_text(encoding="utf-8-sig"))
    return Answer(
        summary=f"{found}.",
        tables=(*_differing(found), *_unknown(found)),
        values=_values(found),
        refused=not found.conforms,
    )


def _differing(found: Conformance) -> tuple[TextTable, ...]:
    """A table for each model of which a row differs."""
    columns = ("quantity", "given", "right", "factor", "known mistake")
    by_model = grouped(found.differ, lambda one: one.model)
    return tuple(
        TextTable(f"{model}: rows that differ", columns, tuple(map(_row, rows)), words=(4,))
        for model, rows in by_model.items()
    )


def _row(one: Difference) -> tuple[str, ...]:
    numbers = (f"{one.theirs:.6g}", f"{one.right:.6g}", f"{one.factor:.4g}")
    return (one.quantity, *numbers, one.slip or "none known")


def _unknown(found: Conformance) -> tuple[TextTable, ...]:
    rows = found.unknown[:MOST_UNKNOWN]
    more = len(found.unknown) - len(rows)
    told = (*rows, (f"and {more:,} more", "")) if more else rows
    return (
        (TextTable("Rows without a vector", ("model", "quantity"), tuple(told), words=(0, 1)),)
        if rows
        else ()
    )


def _values(found: Conformance) -> dict[str, object]:
    return {
        "models": found.models,
        "agree": found.agree,
        "agree_rounded": found.rounded,
        "differ": [
            {
                "model": one.model,
                "quantity": one.quantity,
                "given": one.theirs,
                "right": one.right,
                "factor": one.factor,
                "slip": one.slip or None,
            }
            for one in found.differ
        ],
        "without_vector": [{"model": model, "quantity": quantity} for model, quantity in found.unknown],
    }
