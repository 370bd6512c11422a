"""The numbers and tables of the page "Dated predictions"."""

import re
from collections.abc import Iterator
from functools import cache

from scalingbook_lib import evidence
from scalingbook_lib.evidence import scoring
from scalingbook_lib.evidence.predictions import COVERAGE, Prediction, predictions
from scalingbook_lib.evidence.reading.cells import Cells as Row
from scalingbook_lib.evidence.scores import signed
from scalingbook_lib.evidence.scoring.report import Scored
from scalingbook_lib.units import rounded
from tools.environment import ROOT
from tools.published import MISSING, Cells, Page, share

MARKS = r"\*", "†", "‡"
MEASURED = ROOT / "data" / "measured_predictions.csv"


def measured_rows() -> list[Row]:
    """The rows of measured values, in the order in which they arrived."""
    return scoring.read_table(MEASURED)


@cache
def _scored() -> tuple[Scored, ...]:
    """The predictions that were measured, with their errors; a row that cannot be scored is an error."""
    rows = measured_rows()
    report = evidence.score(rows) if rows else None
    if report and report.refused:
        raise ValueError(f"{MEASURED.name}: {'; '.join(report.refused)}")
    return report.rows if report else ()


def numbers() -> dict[str, str]:
    """The numbers that the page's text quotes."""
    found, scored = list(predictions().values()), _scored()
    inside = sum(row.found.in_interval for row in scored if row.found)
    return {
        "predictions": str(len(found)),
        "first": min(one.date for one in found),
        "coverage": share(COVERAGE, 0),
        "training_assumed": _assumed("training"),
        "serving_assumed": _assumed("serving"),
        "example": found[0].command,
        "example_id": found[0].id,
        "example_unit": found[0].unit,
        "result": _result(len(scored), inside),
    }


def _result(measured: int, inside: int) -> str:
    if not measured:
        return "None of them has been measured yet."
    have = "has" if measured == 1 else "have"
    return f"{measured} of them {have} been measured; the band contains {inside} of the measured values."


def _machine(one: Prediction) -> str:
    """The machine, without the rates that were assumed for it."""
    return re.sub(r" with (\S+=\S+ ?)+", " ", one.machine).strip()


def _marks(kind: str) -> dict[str, str]:
    """Return a mark for each assumption behind the predictions of a kind, in their order."""
    texts = dict.fromkeys(text for one in predictions().values() if one.kind == kind for text in one.assumed)
    return dict(zip(texts, MARKS, strict=False))


def _assumed(kind: str) -> str:
    """Return the notes below a table: what is assumed because it has not been published."""
    return "\n\n".join(
        f"{mark} Assumed, because it has not been published: {text}." for text, mark in _marks(kind).items()
    )


def _figure(value: float) -> str:
    return f"{rounded(value, 2):,.0f}"


def _rows(kind: str) -> Cells:
    """The predictions of a kind, each with its measured value and error where there is one."""
    marks = _marks(kind)
    for one in predictions().values():
        if one.kind != kind:
            continue
        yield (
            f"[{one.model}](data/predictions/{one.id}.json)",
            _machine(one) + "".join(marks[text] for text in one.assumed),
            _figure(one.value),
            f"{_figure(one.low)} to {_figure(one.high)}",
            "; ".join(_results(one.id)) or MISSING,
            one.date,
        )


def _results(id: str) -> Iterator[str]:
    for row in _scored():
        if row.found and row.row["prediction"] == id:
            source = f"[{row.row['source']}]({row.row['source_url']})"
            yield f"{_figure(row.found.measured.middle)} ({source}): {signed(row.found.error)}"


PAGE = Page(
    name="predictions",
    stem="predictions",
    values=numbers,
    tables={"training": lambda: _rows("training"), "serving": lambda: _rows("serving")},
    figure=None,
    data={},
)
