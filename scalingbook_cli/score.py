"""The command `scalingbook score`: the accuracy of predictions for a table of measurements."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import click

from scalingbook_cli import reading
from scalingbook_cli.answer import Answer, TextTable, answer_command
from scalingbook_lib import evidence
from scalingbook_lib.evidence.scores import Summary, signed
from scalingbook_lib.evidence.scoring import baselines
from scalingbook_lib.evidence.scoring.report import RowGroup, RowPrediction, ScoreReport
from scalingbook_lib.units import percent

MOST_IDS = 4  # listed ids per reason of refusal
SIZES = {"below 10 G": 10e9, "10 to 100 G": 100e9, "from 100 G": float("inf")}  # parameters
PARTS: dict[str, Callable[[RowPrediction], Iterable[str]]] = {
    "class": lambda found: [""],
    "chip": lambda found: [found.chip] * bool(found.chip),
    "software": lambda found: [found.stack] * bool(found.stack),
    "size": lambda found: (
        [next(name for name, most in SIZES.items() if found.params < most)] * (found.params > 0)
    ),
    "cause": lambda found: found.assumed,
}
"""The properties by which errors are grouped; causes are what a row left open."""


@click.command("score", short_help="Predictions beside a table of measured runs, of any software.")
@click.argument("table", type=click.Path(exists=True, dir_okay=False))
@answer_command
def command(table: str) -> Answer:
    """Predict every row of TABLE, a CSV of measurements, and print how near that comes.

    A row is a training run, a serving run, a kernel, a collective or a model's configuration: TABLE has the
    columns of training_runs.csv, inference_runs.csv, kernels.csv, collectives.csv or model_configs.csv of the
    book's data, and is known by them. Whatever the software, a row is read by its own columns; what they
    leave open widens its band. Rows that are refused are told with the reason. Beside it stand a bare
    roofline, and one constant (an MFU, a share) for each chip and type, fitted on the book's own rows.
    """
    report = evidence.score(reading.file(table))
    beside = baselines.compared(report)
    simpler = [{name: errors.values for name, errors in one.items()} for one in beside]
    tables = (*_tables(report), *_beside(beside), *_refused(report))
    values = report.values | {"baselines": simpler}
    return Answer(summary=str(report), tables=tables, values=values, refused=not report.found)


def _tables(report: ScoreReport) -> Iterator[TextTable]:
    columns = ("", "rows", "mean", "median", "90 in 100", "bias", "band", "within")
    for part, names in PARTS.items():
        if groups := report.by(names):
            yield TextTable(f"By {part}", columns, tuple(map(_row, groups)))


def _beside(found: Iterable[Mapping[str, Summary]]) -> Iterator[TextTable]:
    """Mean errors on the rows that the library and both baselines predict."""
    rows = [
        (one["here"].name, f"{one['here'].runs:,}", *(percent(e.mean) for e in one.values())) for one in found
    ]
    if rows:
        yield TextTable(
            "Beside simpler rules, mean errors",
            ("", "rows", "here", "bare roofline", "one constant"),
            tuple(rows),
        )


def _refused(report: ScoreReport) -> Iterator[TextTable]:
    refused = tuple((why, f"{len(ids):,}", ", ".join(ids[:MOST_IDS])) for why, ids in report.refused.items())
    if refused:
        yield TextTable("Refused", ("reason", "rows", "the first of them"), refused, words=(0, 2))


def _row(group: RowGroup) -> tuple[str, ...]:
    e = group.errors
    sizes = (percent(e.mean), percent(e.median), percent(e.p90), signed(e.bias))
    return e.name, f"{e.runs:,}", *sizes, f"× {group.factor:.2f}", percent(group.in_interval)
