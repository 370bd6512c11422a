"""The command `scalingbook measure`: benchmarks of the reader's own device; the only one that needs JAX."""

from collections.abc import Iterator
from pathlib import Path

import click

from scalingbook_book.reader import draw
from scalingbook_book.reader.explorers.view import Chart, Points, RefLine, Scale
from scalingbook_cli.answer import Answer, TextTable, answer_command
from scalingbook_lib.evidence.local_benchmark import DeviceBenchmark, TimedOperation
from scalingbook_lib.evidence.reading import chip as reading
from scalingbook_lib.units import percent, si


@click.command("measure", short_help="Time this machine's devices, beside what is predicted of them.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the record here, as JSON.")
@click.option("--drawing", type=click.Path(path_type=Path), help="Draw it over the predictions, as SVG.")
@click.option("--calibrate", is_flag=True, help="What shares of its peaks this is, for plan and serve.")
@answer_command
def command(*, out: Path | None, drawing: Path | None, calibrate: bool) -> Answer:
    """Products, copies, attention and, of several devices, collectives: measured beside predicted.

    A TPU or GPU takes a minute or two, a CPU seconds. `plan` and `serve` take the record that --out writes in
    place of published efficiencies: --efficiency mine.json. For a CPU, which the book has no peaks of,
    predictions are the roofline of its own best rates, and its record is a machine: plan gpt-2 mine.json.
    """
    survey = _surveyed()
    shares = _shares(survey) if calibrate else {}
    if out:
        out.write_text(survey.json(), encoding="utf-8")
    if drawing:
        drawing.write_text(draw.panel(_chart(survey), draw.WIDE), encoding="utf-8")
    rows = tuple(_told(row) for row in survey.rows)
    tables = [
        TextTable("", ("operation", "type", "sizes", "measured", "predicted", "ratio"), rows, (0, 1, 2))
    ]
    if shares:
        found = tuple((name, percent(share)) for name, share in shares.items())
        tables.append(TextTable("shares of documented peaks", ("", ""), found))
    values = {"device": survey.device, "chip": survey.chip or None, "date": survey.date, "jax": survey.jax}
    return Answer(
        summary=str(survey),
        tables=tuple(tables),
        values=values | {"rows": [_values(row) for row in survey.rows], "shares": shares or None},
    )


def _surveyed() -> DeviceBenchmark:
    try:
        from scalingbook_lab.devices.survey import survey
    except ImportError as error:
        raise ValueError(f"measuring needs JAX ({error}); install the library with its extra, lab") from None
    return survey(lambda row: click.echo(row, err=True))


def _shares(survey: DeviceBenchmark) -> dict[str, float]:
    return survey.shares_of_peak(reading.chip(survey.chip) if survey.chip else survey.as_chip())


def _told(row: TimedOperation) -> tuple[str, ...]:
    sizes = " × ".join(f"{size:,}" for size in row.sizes)
    return row.what, row.dtype, sizes, si(row.seconds, "s"), si(row.predicted_s, "s"), f"{row.ratio:.2f}"


def _values(row: TimedOperation) -> dict[str, object]:
    return {
        "what": row.what,
        "dtype": row.dtype,
        "sizes": list(row.sizes),
        "measured_s": row.seconds,
        "predicted_s": row.predicted_s,
    }


def _chart(survey: DeviceBenchmark) -> Chart:
    """Measured over predicted, each kind of operation in its own color."""
    times = [row.predicted_s for row in survey.rows]
    return Chart(
        Scale("predicted", "s", "log", min(times), max(times)),
        Scale("measured over predicted", "×", "log", 0.25, 4),
        (RefLine("", 1.0, "y"), *_dots(survey)),
        f"{survey.device}, {survey.date}",
    )


def _dots(survey: DeviceBenchmark) -> Iterator[Points]:
    for color, what in enumerate(dict.fromkeys(row.what for row in survey.rows)):
        own = [row for row in survey.rows if row.what == what]
        yield Points(what, [row.predicted_s for row in own], [row.ratio for row in own], color=color)
