"""The numbers, tables, figure and data files of the page "Published training runs"."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from statistics import geometric_mean, mean, median

from scalingbook_lib import calibrated, training
from scalingbook_lib.calibrated.factors import record
from scalingbook_lib.calibrated.training_efficiency import FLASH2_ON_HOPPER, ramp
from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence import training as published
from scalingbook_lib.evidence.measured.training_runs import HELD_OUT, REFUSED, RUNS, TrainingRun, find
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import COVERAGE, signed
from scalingbook_lib.evidence.training.candidate_plans import MAX_CANDIDATES
from scalingbook_lib.machines import chips
from scalingbook_lib.units import si
from scalingbook_lib.words import join_and
from tools import fitted_constants
from tools import training_compared as compared
from tools.environment import ROOT
from tools.published import Cells, Page, in_words, share, sources, worst_predicted
from tools.scatter import Group, Scatter
from tools.scored_rows import Entry, data, entries, fitted, line, mean_size, which

SEEN = {"release": "its release", "software": "its software", "": "nothing"}
VALUES = record("training").values
CHIPS = {
    "A100": "A100",
    "H100": "H100",
    "B200, GB200, GB300": "B200 GB200 GB300",
    "TPU v5e to TPU7x": "TPU",
}
"""The kinds of hardware of the page's table, by the words with which the names of their chips begin."""
LEFT_OUT = "source", "software", "chip"
FAR = 0.05  # errors above this within a series are listed


def numbers() -> dict[str, str]:
    """The numbers that the page's text quotes."""
    ratios, orders, held = compared.ratios(), published.plan_pairs(), compared.held()
    crowded = compared.crowded()
    return {
        "date": record("training").date,
        "runs": str(len(published.all_runs())),
        "releases": str(len({run.software for run in published.all_runs()})),
        "fewest_chips": f"{min(run.chips for run in published.all_runs()):,}",
        "most_chips": f"{max(run.chips for run in published.all_runs()):,}",
        "added": str(len(published.all_runs()) - len(RUNS)),
        "added_plans": in_words(MAX_CANDIDATES),
        "refused": str(sum(map(len, REFUSED.values()))),
        "figures": str(len(VALUES)),
        "kernels_most": share(_kernels(), 0),
        "flash2": share(FLASH2_ON_HOPPER, 0),
        "series": str(len(ratios)),
        "series_mean": share(compared.size(ratios)),
        "series_near": str(sum(abs(r.error) <= FAR for r in ratios)),
        "orders": str(len(orders)),
        "right": str(sum(o.agrees for o in orders)),
        "held": str(len(held)),
        "held_source": join_and(dict.fromkeys(one.run.family for one in held)),
        "held_mean": share(compared.size(held)),
        "held_most": share(max(abs(one.error) for one in held)),
        "crowded": str(len(crowded)),
        "crowded_error": signed(mean(one.error for one in crowded)),
        "per_doubling": share(compared.per_doubling()),
        "held_out_mean": share(compared.size(published.held_out())),
        "held_out_zero2": _zero2(),
        "held_out_chunks": join_and({in_words(published.planned(run).plan.chunks) for run in HELD_OUT}),
        "memory_share": share(VALUES["memory"] / VALUES["software"], 0),
        **_quoted(),
        **_band(),
        **_waits("mbridge-26-04-01-b200-256-mxfp8-01"),
        **_alike(),
        **_example("dgxc-llama3-70b-h100-sxm-512-bf16-02"),
    }


def _quoted() -> dict[str, str]:
    """The mean errors that the text quotes: of leave-one-out fits and of simpler rules, by class."""
    found = {}
    for name, kind, chip in (
        ("dense", "dense", ""),
        ("experts", "experts", ""),
        ("experts_tpu", "experts", "TPU"),
    ):
        rows = fitted(which(entries("training_runs"), f"training, {kind}", chips=chip))
        found[f"{name}_runs"] = str(len(rows))
        found |= {f"{name}_{way}": share(mean_size(one.out.get(way) for one in rows)) for way in LEFT_OUT}
        found[f"{name}_constant"] = share(mean_size(one.constant.get("source") for one in rows), 0)
        found[f"{name}_roofline"] = share(mean_size(one.roofline for one in rows), 0)
    tpu = {s.source for s in published.scores() if s.run.experts and s.run.chip.torus}
    return found | {"experts_tpu_sources": in_words(len(tpu))}


def _band() -> dict[str, str]:
    """Prediction intervals of software with a known release, a known other release, or neither."""
    kinds = [(more, seen) for more in ("", "_experts") for seen in SEEN]
    each = {
        f"band{more}_{seen or 'unseen'}": published.prediction_interval(bool(more), seen)
        for more, seen in kinds
    }
    known = each["band_software"]
    ten = {"ten_low": f"{10 / known:.1f}", "ten_high": f"{10 * known:.1f}"}
    return {name: f"{factor:.2f}" for name, factor in each.items()} | ten | {"holds": share(COVERAGE, 0)}


def _same(run: TrainingRun) -> tuple[object, ...]:
    """Everything but the release and the plan."""
    return run.software[0], run.chip.name, run.chips, run.model.name, run.precision, run.T


def _same_plan(run: TrainingRun) -> tuple[object, ...]:
    return *_same(run), run.batch, published.planned(run).plan


def _alike() -> dict[str, str]:
    """How much the rates of runs with experts differ between releases, with any plan and with the same."""
    runs = [run for run in published.all_runs() if run.experts]
    found = {}
    for name, key in (("alike", _same), ("same_plan", _same_plan)):
        off = []
        for same in grouped(runs, key).values():
            for run in same:
                others = [other.tokens_per_s for other in same if other.software != run.software]
                off += [abs(geometric_mean(others) / run.tokens_per_s - 1)] if others else []
        found |= {name: str(len(off)), f"{name}_off": share(mean(off), 0)}
    return found


def _example(id: str) -> dict[str, str]:
    """The step time of a run under average software, and the published one."""
    run = find(id)
    p, table = published.planned(run), calibrated.training(run.chip, run.precision)
    step = training.step(p.model, p.machine, p.plan, batch=run.batch, T=run.T, efficiency=table)
    return {"example_predicted": si(step.total_s, "s"), "example_published": f"{run.step_s:.1f} s"}


def _zero2() -> str:
    """The errors of held-out runs if gradients were reduced once per microbatch."""
    found = []
    for run in HELD_OUT:
        p, table = published.planned(run), calibrated.training(run.chip, run.precision)
        plan = replace(p.plan, zero=2)
        step = training.step(p.model, p.machine, plan, batch=run.batch, T=run.T, efficiency=table)
        found.append(signed(step.total_s / run.step_s - 1))
    return join_and(found)


def _waits(id: str) -> dict[str, str]:
    """The predicted exposed all-to-all time of a run, and its published step time."""
    run = find(id)
    table = calibrated.training(run.chip, run.precision, software=run.software)
    waited = published.seconds(run, table).exposed["Z"]
    return {"exchange": f"{waited:.0f}", "published": f"{run.step_s:.0f}"}


def _kernels() -> float:
    """The largest deviation of measured attention from 0.55 of peak with its ramp; medians of kernels."""
    with (ROOT / "data" / "attention.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = []
    for chip in (chips.H100, chips.B200):
        own = [row for row in rows if row["system"].startswith(chip.name)]
        for T in {row["seq"] for row in own}:
            rate = median(float(row["tflops"]) for row in own if row["seq"] == T) * 1e12
            formula = 0.55 / (1 + ramp(chip) / int(T))
            found.append(abs(formula / (rate / chip.bf16_flops_per_s) - 1))
    return max(found)


def _classes() -> Cells:
    """Errors by kind of model and hardware."""
    for kind, name in (("dense", "Dense"), ("experts", "Experts")):
        found = which(entries("training_runs"), f"training, {kind}")
        yield line(f"{name}, all chips", found)
        for chip, begins in CHIPS.items():
            own = which(found, "training", chips=begins)
            if own:
                yield line(f"{name}, {chip}", own)


def _pairs(rows: list[Entry]) -> Iterator[tuple[float, float]]:
    """Measured step times, and those predicted without the row's source."""
    for one in rows:
        if "source" in one.out:
            measured = one.found.measured.middle
            yield measured, measured * (1 + one.out["source"])


def figure() -> Scatter:
    """Every fitted run, predicted without its source."""
    found = [
        Group(
            label=kind,
            pairs=list(_pairs(which(entries("training_runs"), f"training, {kind}"))),
            band=published.prediction_interval(kind == "experts", "software"),
        )
        for kind in ("dense", "experts")
    ]
    return Scatter(
        conclusion="Predicted against published step time of training runs, dense and with experts",
        reference="published",
        quantity="step time",
        unit="s",
        groups=found,
    )


def _bands() -> Cells:
    """The coverage of leave-one-out prediction intervals."""
    for experts, name in ((False, "dense"), (True, "experts")):
        for seen in SEEN:
            found = published.interval_coverage(experts, seen).values()
            within = sum(inside for inside, _ in found) / sum(runs for _, runs in found)
            factor = f"{published.prediction_interval(experts, seen):.2f}"
            yield name, SEEN[seen], factor, str(len(found)), share(within, 0)


def _held_out() -> Cells:
    for s in published.held_out():
        what = f"{s.run.chips:,} {s.run.chip.name}, {s.run.batch:,} sequences of {s.run.T:,}"
        yield what, si(s.published, "s"), si(s.predicted, "s"), signed(s.error)


def _series_far() -> Cells:
    far = sorted((one for one in compared.ratios() if abs(one.error) > FAR), key=lambda one: one.run.series)
    for one in far:
        run = one.run
        where = f"{run.model.name}, {run.chips:,} {run.chip.name}, {run.precision}"
        yield run.id, where, f"{run.T:,}", str(run.microbatch or ""), signed(one.error)


def _worst() -> Cells:
    for s in worst_predicted(published.scores()):
        times = (si(s.published, "s"), si(s.predicted, "s"))
        yield s.run.id, s.run.model.name, *times, signed(s.error, 0)


def _refused() -> Cells:
    """The reasons why published rows are left out, with counts."""
    for reason, ids in sorted(REFUSED.items(), key=lambda pair: -len(pair[1])):
        yield reason, str(len(ids))


def _added() -> Cells:
    """Where the runs that were collected later come from, with counts."""
    used = {run.id for run in published.all_runs()[len(RUNS) :]}
    rows = [row for row in resources.rows("added_training_runs") if row["run_id"] in used]
    for name, own in sorted(grouped(rows, lambda row: row["source"].split()[0]).items()):
        yield f"[{name}](https://github.com/{name})" if name.count("/") == 1 else name, str(len(own))


PAGE = Page(
    name="training",
    stem="training-runs",
    values=numbers,
    tables={
        "classes": _classes,
        "bands": _bands,
        "held_out": _held_out,
        "series_far": _series_far,
        "constants": fitted_constants.training_table,
        "worst": _worst,
        "refusals": _refused,
        "added_sources": _added,
        "sources": lambda: sources(published.scores()[: len(RUNS)]),
    },
    figure=figure,
    data={"predicted_training_runs": lambda: data("training_runs")},
)
