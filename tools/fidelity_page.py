"""The numbers, tables, figure and data files of the page on prediction accuracy, the entry to the others."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from scalingbook_cli.score import PARTS
from scalingbook_lib.calibrated import records
from scalingbook_lib.calibrated.factors import record
from scalingbook_lib.evidence import accuracy, inference, training
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import COVERAGE, Summary, signed
from tools import cost_report, fitted_constants, plan_regrets, training_compared
from tools.published import Cells, Page, Records, error_and_coverage, in_words, share
from tools.reference import own_rows
from tools.scatter import Group, Scatter
from tools.scored_rows import (
    TABLES,
    Entry,
    data,
    entries,
    excluded,
    fitted,
    line,
    mean_size,
    peers,
    read,
    scored,
    share_of,
    which,
)

TRUSTED = 0.15  # mean error below which the page advises to use a number itself
EXAMPLE = "llama3-405b-h100-sxm-16384-bf16-01"  # the run whose prediction the page follows
FEWEST = 3  # rows of a line in the data file of groups
PEERS = {
    "aiconfigurator": "aiconfigurator",
    "genz": "GenZ",
    "llm_analysis": "llm-analysis",
    "mlsysim": "mlsysim",
}
KERNELS = "products", "attention", "copies"  # how the classes of kernels begin
CLASSES: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "Training step, dense": ("training_runs", ("training, dense",), "training_dense"),
    "Training step, experts": ("training_runs", ("training, experts",), "training_experts"),
    "Saturated server, dense": ("inference_runs", ("serving saturated, dense",), "serving_dense"),
    "Saturated server, experts": ("inference_runs", ("serving saturated, experts",), "serving_experts"),
    "Prefill or decode of one batch": (
        "inference_runs",
        ("serving prefill", "serving decode"),
        "serving_batch",
    ),
    "Kernels: matmul, attention": ("kernels", KERNELS, "kernels"),
    "Collectives": ("collectives", ("collectives",), "collectives"),
}
"""The rows of the page's table: their source table, their classes, and their name in the text."""
SAID_TRUSTED = {
    "Training step, dense",
    "Saturated server, dense",
    "Saturated server, experts",
    "Prefill or decode of one batch",
    "Kernels: matmul, attention",
    "Peak memory of a training step",
}
"""The rows that the text below the table says you can trust."""


@cache
def _rows_of(name: str) -> list[Entry]:
    table, kinds, _ = CLASSES[name]
    rows = which(entries(table), *kinds)
    return fitted(rows) or rows


def _classes() -> Cells:
    yield from (line(name, _rows_of(name)) for name in CLASSES)
    none, hours, held, own = share(None), cost_report.accuracy(), training_compared.held(), own_rows.kernels()
    bill = error_and_coverage(hours.error, hours.inside)
    yield "GPU-hours of a whole run", str(hours.runs), none, bill, none, none, none, share(hours.without, 0)
    memory = share(training_compared.size(held))
    yield "Peak memory of a training step", str(len(held)), none, memory, memory, memory, none, none
    unseen = error_and_coverage(mean_size(one.error for one in own), share_of(one.in_interval for one in own))
    yield "Kernels on our own H100 and H200", str(len(own)), none, none, unseen, none, none, none


def _trust() -> Cells:
    """What the page advises to use, with an error unless the text names the same classes."""
    rows = [*_advised()]
    trusted = {name for name, *_, use in rows if use == "the number"}
    if trusted != SAID_TRUSTED:
        raise ValueError(f"the text says to trust {sorted(SAID_TRUSTED)}, the table {sorted(trusted)}")
    yield from rows


def _advised() -> Cells:
    """The number, or its band where the error of a new source is large."""
    for name in CLASSES:
        group = _rows_of(name)
        unseen = mean_size(one.out.get("source", one.out.get("chip")) for one in group)
        yield _advice(name, len(group), mean_size(one.found.error for one in group), unseen)
    held, own = training_compared.held(), own_rows.kernels()
    yield _advice("GPU-hours of a whole run", cost_report.accuracy().runs, None, cost_report.accuracy().error)
    yield _advice("Peak memory of a training step", len(held), None, training_compared.size(held))
    yield _advice("Kernels on our own H100 and H200", len(own), None, mean_size(one.error for one in own))


def _advice(name: str, count: int, known: float | None, unseen: float | None) -> tuple[str, ...]:
    if unseen is None:
        raise ValueError(f"{name}: no error of rows that the fit has not seen")
    use = "the number" if unseen < TRUSTED else "the band"
    return name, f"{count:,}", share(known), share(unseen), use


def _speeds(rows: Iterable[Entry]) -> Iterator[tuple[float, float]]:
    """Measured speeds, and predictions without the row's source, as fractions of the roofline speed."""
    for one in rows:
        if one.roofline is None or "source" not in one.out:
            continue
        rate = one.found.kind.startswith("serving saturated")
        measured = 1 / (1 + one.roofline) if rate else 1 + one.roofline
        times = 1 + one.out["source"]
        yield measured, measured * times if rate else measured / times


def figure() -> Scatter:
    """Runs of training and of serving, predicted without their source, as fractions of the roofline."""
    train, serve = entries("training_runs"), entries("inference_runs")
    bands = {experts: training.prediction_interval(experts, "software") for experts in (False, True)}
    groups = {
        "training, dense": (which(train, "training, dense"), bands[False]),
        "training, experts": (which(train, "training, experts"), bands[True]),
        "serving, dense": ([one for one in serve if one.found.kind.endswith("dense")], None),
        "serving, experts": ([one for one in serve if one.found.kind.endswith("experts")], None),
    }
    return Scatter(
        conclusion="Predicted speed against measured speed, each as a fraction of the roofline, by class",
        reference="measured",
        quantity="speed (fraction of the roofline)",
        unit="",
        groups=[
            Group(label=label, pairs=list(_speeds(rows)), band=band) for label, (rows, band) in groups.items()
        ],
    )


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
                ours = (
                    share(mean_size(one.found.error for one in own)),
                    share(mean_size(one.out["source"] for one in own)),
                )
                yield called, kind, *theirs, *ours


def _beyond() -> dict[str, str]:
    """The errors of peers with fixed efficiencies or none, over those of the library for a new source."""
    cells = (row for row in _beside_peers() if row[0] != PEERS["aiconfigurator"])
    times = [_percents(theirs) / _percents(new) for *_, theirs, _bias, _known, new in cells]
    return {"peers_least": f"{min(times):.0f}", "peers_most": f"{max(times):.0f}"}


def _of_peers() -> dict[str, str]:
    """The smallest and the largest mean error of each peer among its classes."""
    told: dict[str, str] = {}
    for name, called in PEERS.items():
        errors = sorted((row[3] for row in _beside_peers() if row[0] == called), key=_percents)
        told |= {f"{name}_least": errors[0], f"{name}_most": errors[-1]}
    return told


def _example() -> dict[str, str]:
    """The measured and the predicted step time of the run whose prediction the page follows."""
    (one,) = (row for row in entries("training_runs") if row.id == EXAMPLE)
    (row,) = (row for row in read("training_runs") if row.get("run_id") == EXAMPLE)
    found = one.found
    if one.roofline is None or not found.in_interval or found.error >= 0:
        raise ValueError(f"{EXAMPLE}: the text describes a prediction that is too short and inside its band")
    return {
        "example_chips": f"{int(row['chips']):,}",
        "example_mfu": share(float(row["mfu"]), 0),
        "example_measured": f"{found.measured.middle:.2f} s",
        "example_roofline": f"{found.measured.middle * (1 + one.roofline):.2f} s",
        "example_predicted": f"{found.predicted.middle:.2f} s",
        "example_error": share(-found.error),
        "example_factor": f"{found.factor:.2f}",
        "example_low": f"{found.interval.low:.2f}",
        "example_high": f"{found.interval.high:.2f} s",
    }


def _percents(cell: str) -> float:
    return float(cell.removesuffix("%"))


def _refused() -> Cells:
    """The reasons why rows are not predicted, with counts."""
    for table in TABLES:
        reasons = excluded(table) | scored(table).refused
        for reason, rows in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
            yield table, str(len(rows)), reason


def groups() -> Records:
    """The rows by class, and by class and chip, software, size of the model, and what a row leaves open."""
    for part, names in PARTS.items():
        for table in TABLES:
            named = [(one.found.kind, name, one) for one in entries(table) for name in names(one.found)]
            for (kind, name), found in sorted(grouped(named, lambda row: row[:2]).items()):
                if len(found) >= FEWEST or part == "class":
                    yield {"by": part, "class": kind, "group": name} | _summary([one for *_, one in found])


def _summary(group: list[Entry]) -> dict[str, object]:
    errors = Summary.of("", [one.found.error for one in group])
    out = {
        f"{what}_without_{way}": value
        for way in ("source", "software")
        for what, value in (
            ("mean_error", mean_size(one.out.get(way) for one in group)),
            ("in_band", share_of(one.inside[way] for one in group if way in one.inside)),
            ("constant_error", mean_size(one.constant.get(way) for one in group)),
        )
    }
    return {
        "rows": len(group),
        "mean_error": errors.mean,
        "median_error": errors.median,
        "error_of_90_percent": errors.p90,
        "bias": errors.bias,
        "in_band": share_of(one.found.in_interval for one in group),
        **out,
        "mean_error_without_chip": mean_size(one.out.get("chip") for one in group),
        "roofline_error": mean_size(one.roofline for one in group),
    }


def _quoted() -> dict[str, str]:
    """The errors that the text quotes, by class: known, without the source, without the software."""
    errors: dict[str, Callable[[Entry], float | None]] = {
        "known": lambda one: one.found.error,
        "source": lambda one: one.out.get("source"),
        "software": lambda one: one.out.get("software"),
        "chip": lambda one: one.out.get("chip"),
        "constant": lambda one: one.constant.get("source"),
    }
    found = {}
    for name, (*_, short) in CLASSES.items():
        for what, error in errors.items():
            digits = 0 if what == "constant" else 1
            found[f"{short}_{what}"] = share(mean_size(map(error, _rows_of(name))), digits)
    return found


def _bands() -> dict[str, str]:
    """The factors of the bands: for training and saturated servers, of known and of unknown software."""
    bands = {
        "band_training_dense": training.prediction_interval(False, "software"),
        "band_training_experts": training.prediction_interval(True, "software"),
        "band_training_new": training.prediction_interval(False),
        "band_training_experts_new": training.prediction_interval(True),
        "band_serving_dense": inference.prediction_interval(False, known=True),
        "band_serving_experts": inference.prediction_interval(True, known=True),
        "band_serving_new": inference.prediction_interval(False),
    }
    told = {name: f"{factor:.2f}" for name, factor in bands.items()}
    known, new = told["band_training_experts"], told["band_training_experts_new"]
    same = ", whether or not the software is known"
    other = f" if the software is known, and {new} if it is new"
    return told | {"band_training_experts_if": same if known == new else other}


def numbers() -> dict[str, str]:
    """The numbers that the page's text quotes."""
    rows = [len(read(table)) for table in TABLES]
    versions = {row["peer"]: row["version"] for row in peers()}
    fits = records.record("kernel_fits")
    hours, regrets = cost_report.page_values(), plan_regrets.page_values()
    tpus = fitted(which(entries("inference_runs"), "serving saturated", chips="TPU"))
    unseen = [row.found for row in accuracy.not_fitted() if row.found]
    return {
        "rows": f"{sum(rows):,}",
        "predicted": f"{sum(len(scored(table).found) for table in TABLES):,}",
        "fitted_rows": f"{sum(len(_rows_of(name)) for name in CLASSES):,}",
        "model_rows": str(len(scored("model_configs").found)),
        "series_mean": share(training_compared.size(training_compared.ratios())),
        "asked": max(row["date"] for row in peers()),
        "holds": share(COVERAGE, 0),
        "training_constants": str(len(record("training").values)),
        "serving_constants": str(len(record("inference").values)),
        "product_fits": str(len(fits["products"])),
        "fabric_fits": str(len(fits["fabrics"])),
        "unseen_rows": str(len(unseen)),
        "unseen_error": share(mean_size(one.error for one in unseen), 0),
        "unseen_inside": str(sum(one.in_interval for one in unseen)),
        "tpu_servers": in_words(len(tpus)),
        "tpu_servers_source": share(mean_size(one.out.get("source") for one in tpus)),
        **{f"{name}_version": versions[name] for name in PEERS},
        **_quoted(),
        **_bands(),
        **hours,
        **regrets,
        "hours_both_word": in_words(int(hours["hours_both"])).capitalize(),
        **own_rows.memory(),
        **own_rows.served(),
        **own_rows.quoted(),
        **_beyond(),
        **_of_peers(),
        **_example(),
        "trusted": share(TRUSTED, 0),
        "own_kernels": share(mean_size(one.error for one in own_rows.kernels())),
    }


PAGE = Page(
    name="fidelity",
    stem="fidelity",
    values=numbers,
    tables={
        "trust": _trust,
        "classes": _classes,
        "peers": _beside_peers,
        "gpu_hours": cost_report.rows,
        "regrets": plan_regrets.worst,
        "own": own_rows.rows,
        "refused": _refused,
    },
    figure=figure,
    data={
        "accuracy_by_group": groups,
        "predicted_kernels": lambda: data("kernels", "collectives"),
        "fitted_constants": fitted_constants.of_all,
    },
)
