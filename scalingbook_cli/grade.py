"""The command `scalingbook grade`: the exercises that readers' notebooks solve."""

import csv
import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import click

from scalingbook_book.code_exercises import grade
from scalingbook_book.code_exercises.grade import Exercise, Graded
from scalingbook_cli.answer import Answer, TextTable, answer_command
from scalingbook_lib.words import pluralize

COLUMNS = ("notebook", "exercise", "status", "says")
_FORMULA = re.compile(r"^(?=[=+@-])")  # cells that a spreadsheet would evaluate


@click.command("grade", short_help="The exercises that readers' notebooks solve.")
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 86_400),
    default=120.0,
    show_default=True,
    help="Time limit for each notebook.",
)
@click.option(
    "--gib",
    type=click.FloatRange(0.5, 65_536),
    default=16.0,
    show_default=True,
    help="Memory limit for each notebook, in GiB.",
)
@click.option(
    "--csv", "table", type=click.Path(path_type=Path), help="Also write a CSV file with a row per exercise."
)
@answer_command
def command(*, folder: Path, seconds: float, gib: float, table: Path | None) -> Answer:
    """Run every notebook in FOLDER and report which exercises it solves, by the book's own checks.

    FOLDER contains exercise notebooks that readers have filled in; its subfolders are included. Each notebook
    runs in its own process and in an empty folder, and a cell that fails does not stop the others. All
    exercises of a chapter count, even those that a reader has deleted. If an exercise is checked twice, the
    last answer counts.

    This is not a sandbox: a notebook can do whatever you can. Run notebooks from people you do not know in a
    container.
    """
    graded = tuple(grade.folder(folder, seconds=seconds, gib=gib))
    if not graded:
        raise ValueError(f"{folder} contains no notebooks; name a folder with .ipynb files")
    if table:
        _write(graded, table)
    right, of = sum(one.solved for one in graded), sum(len(one.exercises) for one in graded)
    rows = tuple(map(_row, graded))
    return Answer(
        summary=f"{right:,} of {of:,} exercises solved in {pluralize(len(graded), 'notebook')}",
        tables=(TextTable("", ("notebook", "solved", "not solved", "problem"), rows, (0, 2, 3)),),
        values={"notebooks": [asdict(one) | {"solved": one.solved} for one in graded]},
    )


def _row(one: Graded) -> tuple[str, ...]:
    missing = ", ".join(e.key.partition(".")[2] for e in one.exercises if e.status != "right")
    return one.name, f"{one.solved}/{len(one.exercises)}", missing, one.problem


def _write(graded: Iterable[Graded], table: Path) -> None:
    """Write a CSV row per notebook and exercise; an unreadable notebook has one row without a key."""
    found = ((one, e) for one in graded for e in one.exercises or (Exercise("", "", one.problem),))
    rows = ((one.name, e.key, e.status, e.says) for one, e in found)
    with table.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *([_FORMULA.sub("'", cell) for cell in row] for row in rows)])
