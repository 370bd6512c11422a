"""The numbers and tables of the accuracy page: one table of scores, grouped in several ways.

Every row of the library's tables is predicted once, and compared with baselines and peer tools. Leave-one-out
values are computed without the row's source or its software, for the baseline too.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean

from scalingbook_cli.score import PARTS
from scalingbook_lib import evidence
from scalingbook_lib.calibrated.factors import record
from scalingbook_lib.evidence import inference, training
from scalingbook_lib.evidence.reading.cells import Cells as Row
from scalingbook_lib.evidence.reading.cells import text
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Summary, signed
from scalingbook_lib.evidence.scoring import baselines, read_table
from scalingbook_lib.evidence.scoring.baselines import RooflineBaseline
from scalingbook_lib.evidence.scoring.report import RowPrediction, Scored, ScoreReport
from tools import cost_report, kernel_fits
from tools.environment import ROOT
from tools.published import Cells, Text, share
from tools.reference import own_rows

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
FEWEST = 3  # rows of a line in the longer tables
PEERS = {
    "aiconfigurator": "aiconfigurator",
    "genz": "GenZ",
    "llm_analysis": "llm-analysis",
    "mlsysim": "mlsysim",
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The errors of one row, by who predicts it; missing if a predictor gives none.

    `out` are leave-one-out errors without the row's source, software or chip; `constant` those of the
    constant baseline without the first two.
    """

    id: str
    found: RowPrediction
    out: dict[str, float]
    constant: dict[str, float | None]
    roofline: float | None
    peers: dict[str, float]


@cache
def read(table: str) -> tuple[Row, ...]:
    """The rows of one of the library's tables, and the related rows in `data`."""
    own = () if table == "model_configs" else baselines.own_rows(table)
    also = [row for name in BESIDE.get(table, ()) for row in read_table(ROOT / "data" / f"{name}.csv")]
    if table == "kernels":  # each in the columns of the library's
        also = [
            {"op": "gemm"} | {COLUMNS.get(name, name): cell for name, cell in row.items()} for row in also
        ]
    return (*own, *also)


@cache
def scored(table: str) -> ScoreReport:
    """The report on the rows that are not excluded."""
    return evidence.score([row for row in read(table) if row.get("use", "") in USED])


def left_out_by_hand(table: str) -> dict[str, list[Row]]:
    """The excluded rows, by the reason in the table."""
    return grouped((row for row in read(table) if row.get("use", "") not in USED), lambda row: row["use"])


@cache
def entries(table: str) -> tuple[Entry, ...]:
    """All rows of a table that are predicted."""
    rows = [row for row in scored(table).rows if row.found]
    baselines_of = {row.id: baselines.roofline_baseline(row) for row in rows}
    ways = {way: _names(table, rows, way) for way in WAYS}
    fitted = {way: _constants(baselines_of, names) for way, names in ways.items()}
    leave_one_out, said = _leave_one_out(table), _said(table)
    return tuple(
        Entry(
            id=row.id,
            found=own,
            out={
                way: _as(own, ratios[row.id] - 1) for way, ratios in leave_one_out.items() if row.id in ratios
            },
            constant={way: one.constant_error(fitted[way][ways[way][row.id]]) for way in WAYS} if one else {},
            roofline=one.roofline_error if one else None,
            peers={name: _as(own, ratio - 1) for name, ratio in said.get(row.id, {}).items()},
        )
        for row in rows
        for one, own in [(baselines_of[row.id], row.found)]
        if own
    )


def _runs(table: str) -> dict[str, training.Score | inference.InferenceScore]:
    rooms = {"training_runs": training, "inference_runs": inference}
    return {s.run.id: s for s in rooms[table].scores()} if table in rooms else {}


def _leave_one_out(table: str) -> Mapping[str, Mapping[str, float]]:
    """Predicted over published by fits without a run's source, software or chip."""
    if table in FITTED:
        return {"chip": dict(kernel_fits.blind(scored(table).rows, *FITTED[table]))}
    return record(table.removesuffix("_runs")).leave_one_out if _runs(table) else {}


def _names(table: str, rows: Sequence[Scored], way: str) -> dict[str, str]:
    """The group that is left out with a row: its source, or its software."""
    names = {row.id: text(row.row, "source") for row in rows}
    for id, s in _runs(table).items():
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
    """An error of a rate converted to that of a time, if the score is in seconds."""
    rates = found.kind.startswith(("serving prefill", "serving decode"))
    return 1 / (1 + error) - 1 if rates else error


@cache
def _peers() -> tuple[dict[str, str], ...]:
    with (ROOT / "data" / "peers.csv").open(newline="") as file:
        return tuple(csv.DictReader(file))


def _said(table: str) -> dict[str, dict[str, float]]:
    """For each run, each peer's prediction over the published value."""
    answers = grouped((row for row in _peers() if row["predicted"]), lambda row: row["run_id"])
    return {
        id: {row["peer"]: float(row["predicted"]) / s.published for row in answers.get(id, [])}
        for id, s in _runs(table).items()
    }


def _mean(errors: Iterable[float | None]) -> str:
    sizes = [abs(error) for error in errors if error is not None]
    return share(mean(sizes)) if sizes else ""


def _line(name: str, group: list[Entry]) -> tuple[str, ...]:
    errors = Summary.of(name, [one.found.error for one in group])
    held = share(sum(one.found.in_interval for one in group) / len(group), 0)
    sizes = (share(errors.mean), share(errors.median), share(errors.p90), signed(errors.bias), held)
    beside = [_mean(told(one).get(way) for one in group) for way in WAYS for told in (_out, _constant)]
    chip, bare = _mean(one.out.get("chip") for one in group), _mean(one.roofline for one in group)
    return name, f"{len(group):,}", *sizes, *beside, chip, bare


def _out(one: Entry) -> Mapping[str, float | None]:
    return one.out


def _constant(one: Entry) -> Mapping[str, float | None]:
    return one.constant


def _by(part: str, *tables: str, fewest: int = FEWEST) -> Callable[[], Cells]:
    """A function that lists the rows of these tables by class and one more property."""

    def lines() -> Iterator[tuple[str, ...]]:
        for table in tables:
            named = [
                (f"{one.found.kind}, {name}".removesuffix(", "), one)
                for one in entries(table)
                for name in PARTS[part](one.found)
            ]
            for name, pairs in sorted(grouped(named, lambda pair: pair[0]).items()):
                if len(pairs) >= fewest:
                    yield _line(name, [one for _, one in pairs])

    return lines


def _beside_peers() -> Cells:
    """Each peer by class on the rows that it predicts, and the library on the same rows."""
    runs = (*entries("training_runs"), *entries("inference_runs"))
    asked = [one for one in runs if one.out]
    for name, called in PEERS.items():
        for kind, group in grouped(asked, lambda one: one.found.kind).items():
            own = [one for one in group if name in one.peers]
            if own:
                errors = Summary.of(kind, [one.peers[name] for one in own])
                theirs = (f"{len(own)} of {len(group)}", share(errors.mean), signed(errors.bias))
                ours = (_mean(one.found.error for one in own), _mean(one.out["source"] for one in own))
                yield called, kind, *theirs, *ours


def _refused() -> Cells:
    """The reasons why rows are not predicted, with counts."""
    for table in TABLES:
        reasons = left_out_by_hand(table) | scored(table).refused
        for reason, rows in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
            yield table, str(len(rows)), reason


def numbers() -> dict[str, str]:
    """The numbers that the page's text quotes."""
    rows = [len(scored(table).rows) + sum(map(len, left_out_by_hand(table).values())) for table in TABLES]
    versions = {row["peer"]: row["version"] for row in _peers()}
    return {
        "rows": f"{sum(rows):,}",
        "predicted": f"{sum(len(scored(table).found) for table in TABLES):,}",
        "asked": f"{max(row['date'] for row in _peers())}",
        **{f"{name}_version": versions[name] for name in PEERS},
        **cost_report.page_values(),
        **own_rows.memory(),
        **own_rows.served(),
    }


PAGE = Text(
    name="fidelity",
    values=numbers,
    tables={
        "classes": _by("class", *TABLES, fewest=1),
        "chips": _by("chip", *TABLES),
        "software": _by("software", *TABLES),
        "sizes": _by("size", *TABLES),
        "causes": _by("cause", *TABLES),
        "peers": _beside_peers,
        "bills": cost_report.rows,
        "own": own_rows.rows,
        "refused": _refused,
    },
)
