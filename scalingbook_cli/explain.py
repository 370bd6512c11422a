"""The command `scalingbook explain`: a term of the field, as the book's glossary defines it."""

import textwrap

import click

from scalingbook_cli import glossary
from scalingbook_cli.answer import TERMINAL_COLUMNS, Answer


def _names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the headwords that begin like a word, for completion."""
    return [name for name in glossary.names() if name.casefold().startswith(incomplete.casefold())]


@click.command("explain", short_help="The definition of a term, and where the book teaches it.")
@click.argument("term", nargs=-1, required=True, shell_complete=_names)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, term: tuple[str, ...], as_json: bool) -> None:
    """Define TERM, such as "KV cache" or FSDP, and name the section of the book that teaches it."""
    try:
        found = glossary.find(" ".join(term))
    except glossary.UnknownTerm as error:
        raise click.UsageError(str(error), ctx) from error
    also = f" (also: {', '.join(found.also)})" if found.also else ""
    taught = f"Taught in: {found.chapter}, section {found.section}" if found.section else ""
    definition = "\n".join(textwrap.wrap(found.definition, TERMINAL_COLUMNS))
    values = {name: getattr(found, name) for name in ("definition", "also", "section", "chapter")}
    answer = Answer(
        summary="\n".join(filter(None, (f"{found.name}{also}", definition, taught))),
        values={"term": found.name, **values},
    )
    ctx.obj(answer, as_json=as_json, explain=False)
