"""Every measured row with its prediction, the errors of leave-one-out fits, and those of simpler rules.

A row is predicted by the recorded fit ("known"), and by fits without its source, its software or its chip.
The reference pages on accuracy group these rows and write them into data files.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean

from scalingbook_lib import evidence
from scalingbook_lib.calibrated.factors import record
from scalingbook_lib.evidence import inference, training
from scalingbook_lib.evidence.reading.cells import Cells as Row
from scalingbook_lib.evidence.reading.cells import text
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scoring import baselines, read_table
from scalingbook_lib.evidence.scoring.baselines import RooflineBaseline
from scalingbook_lib.evidence.scoring.report import RowPrediction, Scored, ScoreReport
from tools import kernel_fits
from tools.environment import ROOT
from tools.published import error_and_coverage, share

TABLES = ("training_runs", "inference_runs", "kernels", "collectives", "model_configs")
BESIDE = {
    "kernels": ("products", "attention", "decode_attention"),
    "collectives": ("added_collectives",),
    "model_configs": ("model_configs",),
}
FITTED = {"kernels": ("products", "attention"), "collectives": ("fabrics",)}  # tables of `kernel_fits`
COLUMNS = {"B": "m", "D": "k", "F": "n"}  # of products.csv, X[B, D] · W[D, F]
USED = "", "held-out"  # runs that are fitted, and runs that no fit may see
WAYS = "source", "software"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The errors of one row, by who predicts it; missing if a predictor gives none.

    `out` are leave-one-out errors without the row's source, software or chip, and `inside` says whether the
    intervals of the first two cover them; `constant` are the errors of the constant baseline without the
    first two.
    """

    id: str
    found: RowPrediction
    out: Mapping[str, float]
    inside: Mapping[str, bool]
    constant: Mapping[str, float | None]
    roofline: float | None
    peers: Mapping[str, float]


@cache
def read(table: str) -> tuple[Row, ...]:
    """Return the rows of one of the library's tables, and the related rows in `data`."""
    own = () if table == "model_configs" else baselines.own_rows(table)
    also = [row for name in BESIDE.get(table, ()) for row in read_table(ROOT / "data" / f"{name}.csv")]
    if table == "kernels":  # each in the columns of the library's
        also = [
            {"op": "gemm"} | {COLUMNS.get(name, name): cell for name, cell in row.items()} for row in also
        ]
    return (*own, *also)


@cache
def scored(table: str) -> ScoreReport:
    """Return the report on the rows that are not excluded."""
    return evidence.score([row for row in read(table) if row.get("use", "") in USED])


def excluded(table: str) -> dict[str, list[Row]]:
    """Return the rows that the table itself excludes, by the reason it gives."""
    return grouped((row for row in read(table) if row.get("use", "") not in USED), lambda row: row["use"])


@cache
def entries(table: str) -> tuple[Entry, ...]:
    """Return all rows of a table that are predicted."""
    rows = [row for row in scored(table).rows if row.found]
    baselines_of = {row.id: baselines.roofline_baseline(row) for row in rows}
    ways = {way: _names(table, rows, way) for way in WAYS}
    fitted = {way: _constants(baselines_of, names) for way, names in ways.items()}
    leave_one_out, covered, said = _leave_one_out(table), _covered(table), _said(table)
    return tuple(
        Entry(
            id=row.id,
            found=own,
            out={
                way: _as(own, ratios[row.id] - 1) for way, ratios in leave_one_out.items() if row.id in ratios
            },
            inside={way: inside[row.id] for way, inside in covered.items() if row.id in inside},
            constant={way: one.constant_error(fitted[way][ways[way][row.id]]) for way in WAYS} if one else {},
            roofline=one.roofline_error if one else None,
            peers={name: _as(own, ratio - 1) for name, ratio in said.get(row.id, {}).items()},
        )
        for row in rows
        for one, own in [(baselines_of[row.id], row.found)]
        if own
    )


def runs(table: str) -> Mapping[str, training.Score | inference.InferenceScore]:
    """Return the published runs of a table by id; none for kernels, collectives and model configurations."""
    rooms = {"training_runs": training, "inference_runs": inference}
    return {s.run.id: s for s in rooms[table].scores()} if table in rooms else {}


def _leave_one_out(table: str) -> Mapping[str, Mapping[str, float]]:
    """Predicted over published by fits without a run's source, software or chip."""
    if table in FITTED:
        return {"chip": dict(kernel_fits.blind(scored(table).rows, *FITTED[table]))}
    return record(table.removesuffix("_runs")).leave_one_out if runs(table) else {}


def _covered(table: str) -> Mapping[str, Mapping[str, bool]]:
    """Return whether leave-one-out intervals cover the published value, by what is left out."""
    if table == "training_runs":
        return {"source": training.covered("software"), "software": training.covered("")}
    if table == "inference_runs":
        return {"source": inference.covered(known=True), "software": inference.covered(known=False)}
    return {}


def _names(table: str, rows: Sequence[Scored], way: str) -> dict[str, str]:
    """Return the group that is left out with a row: its source, or its software."""
    names = {row.id: text(row.row, "source") for row in rows}
    for id, s in runs(table).items():
        names[id] = s.source if way == "source" else s.run.software[0]
    return names


def _constants(
    baselines_of: dict[str, RooflineBaseline | None], names: dict[str, str]
) -> dict[str, baselines.Shares]:
    """For each group, the constants computed without it."""
    pairs = [(names[id], one) for id, one in baselines_of.items() if one]
    return {
        name: baselines.shares(one for other, one in pairs if other != name) for name in set(names.values())
    }


def _as(found: RowPrediction, error: float) -> float:
    """Return an error of a rate converted to that of a time, if the score is in seconds."""
    rates = found.kind.startswith(("serving prefill", "serving decode"))
    return 1 / (1 + error) - 1 if rates else error


@cache
def peers() -> tuple[dict[str, str], ...]:
    """Return the answers of other tools for the published runs."""
    with (ROOT / "data" / "peers.csv").open(newline="") as file:
        return tuple(csv.DictReader(file))


def _said(table: str) -> dict[str, dict[str, float]]:
    """For each run, each peer's prediction over the published value."""
    answers = grouped((row for row in peers() if row["predicted"]), lambda row: row["run_id"])
    return {
        id: {row["peer"]: float(row["predicted"]) / s.published for row in answers.get(id, [])}
        for id, s in runs(table).items()
    }


# Groups of rows


def mean_size(errors: Iterable[float | None]) -> float | None:
    """Return the mean absolute error of those that are given; None without any."""
    sizes = [abs(error) for error in errors if error is not None]
    return mean(sizes) if sizes else None


def share_of(inside: Iterable[bool]) -> float | None:
    """Return the share that is true; None without any."""
    found = list(inside)
    return sum(found) / len(found) if found else None


def which(rows: Iterable[Entry], *kinds: str, chips: str = "") -> list[Entry]:
    """Return the rows whose class starts with one of `kinds` and whose chip with a word of `chips`."""
    return [
        one
        for one in rows
        if one.found.kind.startswith(kinds) and (not chips or one.found.chip.startswith(tuple(chips.split())))
    ]


def fitted(rows: Iterable[Entry]) -> list[Entry]:
    """Return the rows that the recorded fit has seen: those with a leave-one-out prediction."""
    return [one for one in rows if "source" in one.out]


def line(name: str, group: Sequence[Entry]) -> tuple[str, ...]:
    """Return a row of a table: mean errors and coverage, known and left out, and two simpler rules.

    Of published runs, only those that the fit has seen are counted.
    """
    group = fitted(group) or group
    known = error_and_coverage(
        mean_size(one.found.error for one in group), share_of(one.found.in_interval for one in group)
    )
    out = [
        error_and_coverage(
            mean_size(one.out.get(way) for one in group),
            share_of(one.inside[way] for one in group if way in one.inside),
        )
        for way in WAYS
    ]
    chip = share(mean_size(one.out.get("chip") for one in group))
    constant = share(mean_size(one.constant.get("source") for one in group), 0)
    roofline = share(mean_size(one.roofline for one in group), 0)
    return name, f"{len(group):,}", known, *out, chip, constant, roofline


def data(*tables: str) -> list[dict[str, object]]:
    """Return every predicted row as a line of a data file, without the columns that none of them has.

    Errors are shares: of saturated servers those of rates, of all else those of times.
    """
    found = [_record(one) for table in tables for one in entries(table)]
    kept = [name for name in found[0] if any(row[name] not in (None, "") for row in found)]
    return [{name: row[name] for name in kept} for row in found]


def _record(one: Entry) -> dict[str, object]:
    found = one.found
    return {
        "id": one.id,
        "class": found.kind,
        "chip": found.chip,
        "software": found.stack,
        "unit": "tokens/s" if found.kind.startswith("serving saturated") else "s",
        "measured": found.measured.middle,
        "predicted": found.predicted.middle,
        "error": found.error,
        "band_low": found.interval.low,
        "band_high": found.interval.high,
        "in_band": found.in_interval,
        **{f"error_without_{way}": one.out.get(way) for way in (*WAYS, "chip")},
        **{f"in_band_without_{way}": one.inside.get(way) for way in WAYS},
        "roofline_error": one.roofline,
        "left_open": "; ".join(found.assumed),
    }
