"""What do all commands share? `--json` and `--explain`, and errors of the library in one sentence."""

import functools
from collections.abc import Callable

import click

from scalingbook_lib.cli import FAILED, printing
from scalingbook_lib.cli.answer import Answer


def answering(command: Callable[..., Answer]) -> Callable[..., None]:
    """A command that prints the answer that the function returns."""

    @click.option("--explain", is_flag=True, help="Print how it is derived: formulas, then numbers.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON for programs; units are in the names.")
    @click.pass_context
    @functools.wraps(command)
    def run(ctx: click.Context, as_json: bool, explain: bool, **given: object) -> None:
        try:
            answer = command(**given)
        except (ValueError, OverflowError) as error:
            raise click.UsageError(str(error), ctx) from error
        printing.show(answer, as_json=as_json, explain=explain)
        if answer.refused:
            ctx.exit(FAILED)

    return run
