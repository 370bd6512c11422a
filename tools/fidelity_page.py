"""What is filled into the page on how right the library is: one table of scores, cut in several ways.

Each row of the library's tables is predicted once, and held beside what simpler rules and other tools say of
it. Left out: by figures that never saw the row's source, as the constant beside it.
"""

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import log
from statistics import mean

from scalingbook_lib import evidence
from scalingbook_lib.cli.score import PARTS
from scalingbook_lib.evidence import inference, resources, training
from scalingbook_lib.evidence.bills import bill
from scalingbook_lib.evidence.measured.whole_runs import LLAMA3_STOPS
from scalingbook_lib.evidence.reading.cells import text
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import HOLDS, Score, Summary, signed
from scalingbook_lib.evidence.scoring import baselines
from scalingbook_lib.evidence.scoring.baselines import Bare
from scalingbook_lib.evidence.scoring.report import Found, Report
from scalingbook_lib.units import si
from tools import bills
from tools.environment import ROOT
from tools.published import Cells, Text, share

TABLES = ("training_runs", "inference_runs", "kernels", "collectives", "model_configs")
USED = "", "held-out"  # runs that are fitted, and runs that no fit may see
FEWEST = 3  # rows of a line in the longer tables
PEERS = {
    "aiconfigurator": "aiconfigurator",
    "genz": "GenZ",
    "llm_analysis": "llm-analysis",
    "mlsysim": "mlsysim",
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is said of a row: errors, by whom they are made; None where somebody says nothing.

    `out` is the library's by figures that never saw the source, and so is `constant`.
    """

    id: str
    found: Found
    out: float | None
    roofline: float | None
    constant: float | None
    peers: dict[str, float]

    @property
    def out_in_band(self) -> bool:
        """Whether the band holds it, though its source was left out."""
        return self.out is not None and abs(log(1 + self.out)) <= log(self.found.factor)


@cache
def scored(table: str) -> Report:
    """The rows of one of the library's tables that are not left out by hand."""
    if table == "model_configs":
        return evidence.score(ROOT / "data" / "model_configs.csv")
    return evidence.score([row for row in resources.rows(table) if row.get("use", "") in USED])


def left_out_by_hand(table: str) -> dict[str, list[resources.Row]]:
    """The others, by the reason that stands in the table."""
    rows = () if table == "model_configs" else resources.rows(table)
    return grouped((row for row in rows if row.get("use", "") not in USED), lambda row: row["use"])


@cache
def entries(table: str) -> tuple[Entry, ...]:
    """All rows of a table that are predicted."""
    rows = [row for row in scored(table).rows if row.found]
    left_out = _left_out(table)
    bares = {row.id: baselines.bare(table, row) for row in rows}
    sources = {row.id: text(row.row, "source") for row in rows}
    sources |= {id: s.source for id, s in left_out.items()}  # of a run, all that one fit leaves out
    without = _constants(bares, sources)
    return tuple(
        _entry(row.id, row.found, left_out.get(row.id), bares[row.id], without[sources[row.id]])
        for row in rows
        if row.found
    )


def _entry(id: str, found: Found, run: Score | None, one: Bare | None, fitted: baselines.Shares) -> Entry:
    constant_s = baselines.constant_s(one, fitted) if one else None
    said = _said().get(id, {}) if run else {}
    return Entry(
        id=id,
        found=found,
        out=_as(found, run.left_out_error) if run else None,
        roofline=one.error(one.roofline_s) if one else None,
        constant=one.error(constant_s) if one and constant_s else None,
        peers={name: _as(found, value / run.published - 1) for name, value in said.items() if run},
    )


def _constants(bares: dict[str, Bare | None], sources: dict[str, str]) -> dict[str, baselines.Shares]:
    """The constants by the source that they never saw."""
    pairs = [(sources[id], one) for id, one in bares.items() if one]
    return {
        name: baselines.shares(one for source, one in pairs if source != name)
        for name in set(sources.values())
    }


def _left_out(table: str) -> dict[str, Score]:
    rooms = {"training_runs": training, "inference_runs": inference}
    return {s.run.id: s for s in rooms[table].scores()} if table in rooms else {}


def _as(found: Found, error: float) -> float:
    """An error of a rate as that of the time, where the score is in seconds."""
    rates = found.kind.startswith(("serving prefill", "serving decode"))
    return 1 / (1 + error) - 1 if rates else error


@cache
def _peers() -> tuple[dict[str, str], ...]:
    with (ROOT / "data" / "peers.csv").open(newline="") as file:
        return tuple(csv.DictReader(file))


@cache
def _said() -> dict[str, dict[str, float]]:
    """What each peer says of a run, by its id."""
    answers = grouped((row for row in _peers() if row["predicted"]), lambda row: row["run_id"])
    return {id: {row["peer"]: float(row["predicted"]) for row in rows} for id, rows in answers.items()}


def _mean(errors: Iterable[float | None]) -> str:
    sizes = [abs(error) for error in errors if error is not None]
    return share(mean(sizes)) if sizes else ""


def _line(name: str, group: list[Entry]) -> tuple[str, ...]:
    errors = Summary.of(name, [one.found.error for one in group])
    held = share(sum(one.found.in_band for one in group) / len(group), 0)
    out = [one for one in group if one.out is not None]
    held_out = share(sum(one.out_in_band for one in out) / len(out), 0) if out else ""
    sizes = (share(errors.mean), share(errors.median), share(errors.p90), signed(errors.bias))
    beside = (_mean(one.constant for one in group), _mean(one.roofline for one in group))
    return (name, f"{len(group):,}", *sizes, held, _mean(one.out for one in group), held_out, *beside)


def _by(part: str, *tables: str, fewest: int = FEWEST) -> Callable[[], Cells]:
    """The rows of these tables by class and one thing more."""

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
    """Each peer by class, on the rows that it answers, and the library on the same."""
    runs = (*entries("training_runs"), *entries("inference_runs"))
    asked = [one for one in runs if one.out is not None]
    for name, called in PEERS.items():
        for kind, group in grouped(asked, lambda one: one.found.kind).items():
            own = [one for one in group if name in one.peers]
            if own:
                errors = Summary.of(kind, [one.peers[name] for one in own])
                theirs = (f"{len(own)} of {len(group)}", share(errors.mean), signed(errors.bias))
                ours = (_mean(one.found.error for one in own), _mean(one.out for one in own))
                yield called, kind, *theirs, *ours


def _refused() -> Cells:
    """Why rows of the library's tables are not predicted, and how many."""
    for table in TABLES:
        reasons = left_out_by_hand(table) | scored(table).refused
        for reason, rows in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
            yield table, str(len(rows)), reason


def numbers() -> dict[str, str]:
    """What the words of the page quote."""
    rows = [len(scored(table).rows) + sum(map(len, left_out_by_hand(table).values())) for table in TABLES]
    versions = {row["peer"]: row["version"] for row in _peers()}
    return {
        "rows": f"{sum(rows):,}",
        "predicted": f"{sum(len(scored(table).found) for table in TABLES):,}",
        "asked": f"{max(row['date'] for row in _peers())}",
        **{f"{name}_version": versions[name] for name in PEERS},
        **_bill(),
    }


def _bill() -> dict[str, str]:
    """What bills of whole runs add to plans."""
    told, runs = bill(), bills.planned()
    parts = [one.hours / one.run.chip_hours for one in runs]
    return {
        "bill_runs": str(told.runs),
        "bill_low": share(min(parts), 0),
        "bill_high": share(max(parts), 0),
        "bill_both": str(sum(one.steps_hours is not None for one in runs)),
        "bill_stops": f"{LLAMA3_STOPS.between_s / 3600:.1f}",
        "bill_left_out": share(told.left_out),
        "bill_without": share(mean(abs(part - 1) for part in parts)),
        "holds": share(HOLDS, 0),
        **{f"bill_{name}": f"{getattr(told, name):.2f}" for name in ("factor", "steps", "besides", "within")},
    }


def _bills() -> Cells:
    """Each whole run beside its plan."""
    errors = bills.left_out()
    for one in bills.planned():
        hours = one.run.chip_hours
        steps = f"{hours / one.steps_hours:.2f}" if one.steps_hours else ""
        over, error = f"{hours / one.hours:.2f}", signed(errors[one.run.name], 0)
        yield one.run.name, si(hours), si(one.hours), over, steps, error


PAGE = Text(
    name="fidelity",
    told=numbers,
    tables={
        "classes": _by("class", *TABLES, fewest=1),
        "chips": _by("chip", *TABLES),
        "software": _by("software", *TABLES),
        "sizes": _by("size", *TABLES),
        "causes": _by("cause", *TABLES),
        "peers": _beside_peers,
        "bills": _bills,
        "refused": _refused,
    },
)
