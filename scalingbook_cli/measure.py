"""The command `scalingbook measure`: benchmarks of the reader's own device; the only one that needs JAX."""

from collections.abc import Iterator
from pathlib import Path

import click

from scalingbook_book.reader import draw
from scalingbook_book.reader.explorers.view import Chart, Points, RefLine, Scale
from scalingbook_cli.answer import Answer, TextTable, answer_command
from scalingbook_lib.evidence.local_benchmark import PRODUCT, PROMPT, TOKEN, DeviceBenchmark, TimedOperation
from scalingbook_lib.evidence.reading import chip as reading
from scalingbook_lib.units import percent, si

LABELS = {PRODUCT: "matmul", PROMPT: "prefill attention", TOKEN: "decode attention"}
"""The operations of a record by the names that people read."""


@click.command("measure", short_help="Benchmarks of this machine's devices, compared with predictions.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write the benchmark record to this file, as JSON."
)
@click.option(
    "--drawing",
    type=click.Path(path_type=Path),
    help="Plot measured against predicted times to this file, as SVG.",
)
@click.option(
    "--calibrate", is_flag=True, help="Also print the measured shares of the device's documented peaks."
)
@answer_command
def command(*, out: Path | None, drawing: Path | None, calibrate: bool) -> Answer:
    """Time matmuls, attention and collectives on this machine's devices, and compare with predictions.

    This takes one or two minutes on a TPU or GPU, and seconds on a CPU. Collectives need several devices.
    `plan` and `serve` accept the record that --out writes instead of the published efficiencies, as in
    --efficiency mine.json. A CPU has no documented peaks in the catalog, so its predictions are the roofline
    of its own best measured rates, and its record also serves as a machine, as in plan gpt-2 mine.json.
    """
    survey = _surveyed()
    shares = _shares(survey) if calibrate else {}
    if out:
        out.write_text(survey.json(), encoding="utf-8")
    if drawing:
        drawing.write_text(draw.panel(_chart(survey), draw.WIDE), encoding="utf-8")
    rows = tuple(_told(row) for row in survey.rows)
    tables = [
        TextTable("", ("operation", "dtype", "sizes", "measured", "predicted", "ratio"), rows, (0, 1, 2))
    ]
    if shares:
        found = tuple((name, percent(share)) for name, share in shares.items())
        tables.append(TextTable("Measured shares of the documented peaks", ("", ""), found))
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
        raise ValueError(f"measure needs JAX ({error}); run make lab, which installs it") from None
    return survey(lambda row: click.echo(row, err=True))


def _shares(survey: DeviceBenchmark) -> dict[str, float]:
    return survey.shares_of_peak(reading.chip(survey.chip) if survey.chip else survey.as_chip())


def _told(row: TimedOperation) -> tuple[str, ...]:
    sizes = " × ".join(f"{size:,}" for size in row.sizes)
    return (
        LABELS.get(row.what, row.what),
        row.dtype,
        sizes,
        si(row.seconds, "s"),
        si(row.predicted_s, "s"),
        f"{row.ratio:.2f}",
    )


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
        Scale("measured / predicted", "×", "log", 0.25, 4),
        (RefLine("", 1.0, "y"), *_dots(survey)),
        f"{survey.device}, {survey.date}",
    )


def _dots(survey: DeviceBenchmark) -> Iterator[Points]:
    for color, what in enumerate(dict.fromkeys(row.what for row in survey.rows)):
        own = [row for row in survey.rows if row.what == what]
        yield Points(
            LABELS.get(what, what), [row.predicted_s for row in own], [row.ratio for row in own], color=color
        )
