"""The command `scalingbook score`: the accuracy of predictions for a table of measurements."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import log
from statistics import mean

import click

from scalingbook_cli import reading
from scalingbook_cli.answer import (
    SHARE,
    Answer,
    DerivationLine,
    TextTable,
    answer_command,
    figure,
    format_value,
)
from scalingbook_lib import evidence
from scalingbook_lib.evidence.scores import Summary, signed
from scalingbook_lib.evidence.scoring import baselines
from scalingbook_lib.evidence.scoring.report import RowGroup, RowPrediction, Scored, ScoreReport
from scalingbook_lib.units import binary, percent
from scalingbook_lib.words import pluralize

MOST_ROWS = 20  # printed rows
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


@click.command("score", short_help="Predictions for a table of measured runs, of any software.")
@click.argument("table", type=click.Path(exists=True, dir_okay=False))
@answer_command
def command(table: str) -> Answer:
    """Predict every row of TABLE, a CSV of measurements, and print how near that comes.

    A row is a training run, the chip-hours of a whole run, a serving run, a kernel, a collective or a model's
    configuration: TABLE has the columns of training_runs.csv, training_gpu_hours.csv, inference_runs.csv,
    kernels.csv, collectives.csv or model_configs.csv of the book's data, and is recognized by them. A table
    with the columns prediction and measured is compared with the dated predictions of the book. Whatever
    the software, a row is read by its own columns; what they leave open widens its band and is listed as a
    cause. Rows that cannot be right as they were read, such as one faster than the roofline, are predicted
    too and listed as findings; rows that cannot be predicted are listed with the reason. For comparison, a
    bare roofline and one constant (an MFU, a share) for each chip and type, fitted to the book's own rows,
    predict the same rows. If a column peak_mem_gib gives the peak memory of training runs, a table of its own
    compares it. --explain shows how the error and the band of each printed row are computed; --json
    has all rows.
    """
    report = evidence.score(reading.file(table))
    beside = baselines.compared(report)
    simpler = [{name: errors.values for name, errors in one.items()} for one in beside]
    shown = _shown(report)
    tables = (
        *_rows(report, shown),
        *_tables(report),
        *_memory(report),
        *_beside(beside),
        *_listed("Findings in rows that are predicted", "finding", report.findings),
        *_listed("Refused", "reason", report.refused),
    )
    return Answer(
        summary=str(report),
        tables=tables,
        values=report.values | {"baselines": simpler},
        steps=tuple(line for row in shown for line in _derived(row)),
        refused=not report.found,
    )


def _shown(report: ScoreReport) -> list[Scored]:
    """The rows to print: all of a short table, else those that are farthest outside their bands."""
    found = [row for row in report.rows if row.found]
    if len(found) <= MOST_ROWS:
        return found
    return sorted(found, key=_distance, reverse=True)[:MOST_ROWS]


def _distance(row: Scored) -> float:
    """The error of a row in half-widths of its band, as logarithms."""
    found = _predicted(row)
    half = log(found.interval.high / found.interval.low) / 2
    return abs(log(1 + found.error)) / half if half else abs(found.error)


def _predicted(row: Scored) -> RowPrediction:
    assert row.found
    return row.found


def _rows(report: ScoreReport, shown: list[Scored]) -> Iterator[TextTable]:
    if not shown:
        return
    title = "Rows" if len(shown) == len(report.found) else f"The {len(shown)} rows farthest from their bands"
    columns = ("row", "class", "predicted", "measured", "error", "band", "inside", "cause")
    rows = []
    for row in shown:
        found = _predicted(row)
        low, high = (format_value(value, found.unit) for value in found.interval)
        rows.append(
            (
                row.id,
                found.kind,
                format_value(found.predicted.middle, found.unit),
                format_value(found.measured.middle, found.unit),
                signed(found.error),
                f"{low} to {high}",
                "yes" if found.in_interval else "no",
                ", ".join(found.assumed),
            )
        )
    yield TextTable(title, columns, tuple(rows), words=(0, 1, 7), optional=("inside", "class"))


def _memory(report: ScoreReport) -> Iterator[TextTable]:
    """The rows that print the peak memory of a chip, the largest errors first."""
    rows = [(row.id, peak) for row in report.with_memory if (peak := _predicted(row).peak_memory)]
    rows = sorted(rows, key=lambda row: abs(log(1 + row[1].error)), reverse=True)
    if rows:
        mean_error = percent(mean(abs(peak.error) for _, peak in rows))
        title = f"Peak memory per chip, {pluralize(len(rows), 'row')}, mean error {mean_error}"
        shown = tuple(
            (id, binary(peak.predicted.middle), binary(peak.measured), signed(peak.error))
            for id, peak in rows[:MOST_ROWS]
        )
        yield TextTable(title, ("row", "predicted", "measured", "error"), shown, words=(0,))


def _derived(row: Scored) -> Iterator[DerivationLine]:
    """How the error and the band of a row follow from the predicted and the measured value."""
    found, name = _predicted(row), row.id
    predicted, measured = figure(found.predicted.middle), figure(found.measured.middle)
    yield DerivationLine(
        f"{name}: error", "predicted / measured - 1", f"{predicted} / {measured} - 1", found.error, SHARE
    )
    wider = found.factor * found.measured.middle / found.measured.low
    of = f"the factor of {found.kind}"
    why = f"{of}, wider by: {', '.join(found.assumed)}" if found.assumed else of
    ends = zip(("low", "high"), ("/", "·"), found.predicted, found.interval, strict=True)
    for end, sign, value, result in ends:
        numbers = f"{figure(value)} {sign} {figure(wider)}"
        yield DerivationLine(f"{name}: {end}", f"predicted {sign} {why}", numbers, result, found.unit)


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


def _listed(title: str, what: str, ids: Mapping[str, list[str]]) -> Iterator[TextTable]:
    """The rows of each finding, or of each reason to refuse them."""
    rows = tuple((why, f"{len(found):,}", ", ".join(found[:MOST_IDS])) for why, found in ids.items())
    if rows:
        yield TextTable(title, (what, "rows", "the first of them"), rows, words=(0, 2))


def _row(group: RowGroup) -> tuple[str, ...]:
    e = group.errors
    sizes = (percent(e.mean), percent(e.median), percent(e.p90), signed(e.bias))
    return e.name, f"{e.runs:,}", *sizes, f"× {group.factor:.2f}", percent(group.in_interval)
