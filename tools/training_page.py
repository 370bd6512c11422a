"""The numbers and tables of the appendix on published training steps."""

import csv
from collections.abc import Iterable
from dataclasses import replace
from statistics import geometric_mean, mean, median

from scalingbook_book.reader.explorers.view import Scale
from scalingbook_lib import calibrated, training
from scalingbook_lib.calibrated import factors
from scalingbook_lib.calibrated.factors import record
from scalingbook_lib.calibrated.training_efficiency import ramp
from scalingbook_lib.evidence import training as published
from scalingbook_lib.evidence.measured.training_runs import (
    HELD_OUT,
    REFUSED,
    RUNS,
    find,
)
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import COVERAGE, signed
from scalingbook_lib.evidence.training.efficiencies import CLASSES, SOFTWARE
from scalingbook_lib.machines import chips
from scalingbook_lib.units import si
from tools import training_compared as compared
from tools.environment import ROOT
from tools.published import Cells, Page, share, sources, worst_predicted

SHORT = {
    "early": "attention, early kernels",
    "early, after A100": "attention, early kernels on later chips",
    "unfused": "attention, unfused",
    "memory": "HBM",
    "dcn": "DCN",
    "exposed": "exposed, of collectives that could be hidden",
    "exchange": "exposed, of the exchange of tokens",
    "layer_s": "lost with a layer",
    "software": "all software, slowness",
}
SEEN = {"release": "its release", "software": "its software", "": "nothing"}
VALUES = record("training").values


def numbers() -> dict[str, str]:
    """The numbers that the page's text quotes."""
    ratios, orders = compared.ratios(), published.plan_pairs()
    return {
        "date": record("training").date,
        "runs": str(len(RUNS)),
        "families": str(len({run.software for run in published.all_runs()})),
        "projects": str(len({run.source.url for run in RUNS})),
        "refused": str(sum(map(len, REFUSED.values()))),
        "dense": str(published.total(False).runs),
        "experts": str(published.total(True).runs),
        "added": str(len(published.all_runs()) - len(RUNS)),
        "figures": str(len(VALUES)),
        "kernels_most": share(_kernels(), 0),
        "constant": share(_constant()),
        "series": str(len(ratios)),
        "series_mean": share(_size(ratios)),
        "series_near": str(sum(abs(r.error) <= 0.05 for r in ratios)),
        "orders": str(len(orders)),
        "right": str(sum(o.agrees for o in orders)),
        **_held(),
        **_errors(),
        **_waits("mbridge-26-04-01-b200-256-mxfp8-01"),
        **_band(),
        **_tried(),
        **_alike(),
    }


def _size(found: Iterable[compared.Ratio | compared.Held | published.Score]) -> float:
    """The mean absolute error."""
    return mean(abs(one.error) for one in found)


def _held() -> dict[str, str]:
    """The accuracy of predicted peak memory."""
    held = compared.held()
    most = max(abs(one.error) for one in held)
    return {"held": str(len(held)), "held_most": share(most), "held_mean": share(_size(held))}


def _errors() -> dict[str, str]:
    """Errors as fitted, and leave-one-out."""
    found = {}
    for experts, kind in ((False, "dense"), (True, "experts")):
        ways = {f"{kind}_{seen or 'unseen'}": published.total(experts, True, seen) for seen in SEEN}
        for name, one in (ways | {kind: published.total(experts)}).items():
            found |= {f"{name}_{which}": share(getattr(one, which)) for which in ("mean", "median", "p90")}
            found[f"{name}_bias"] = signed(one.bias)
    return found


def _band() -> dict[str, str]:
    """Prediction intervals of software with a known release, a known other release, or neither."""
    kinds = [(more, seen) for more in ("", "_experts") for seen in SEEN]
    each = {
        f"band{more}_{seen or 'unseen'}": published.prediction_interval(bool(more), seen)
        for more, seen in kinds
    }
    return {name: f"{factor:.2f}" for name, factor in each.items()} | {"holds": share(COVERAGE, 0)}


def _tried() -> dict[str, str]:
    """Candidate explanations of errors within series, and the errors of held-out runs."""
    crowded = compared.crowded()
    return {
        "crowded": str(len(crowded)),
        "crowded_error": signed(mean(one.error for one in crowded)),
        "per_doubling": share(compared.per_doubling()),
        "held_out_mean": share(_size(published.held_out())),
        "held_out_zero2": _zero2(),
    }


def _alike() -> dict[str, str]:
    """How much runs with experts differ from others of their software that differ only in release or plan."""
    runs = [run for run in published.all_runs() if run.experts]
    alike = grouped(runs, lambda r: (r.software[0], r.chip.name, r.chips, r.model.name, r.precision))
    off = []
    for rates in ([run.tokens_per_s for run in same] for same in alike.values()):
        others = [rates[:k] + rates[k + 1 :] for k in range(len(rates))]
        off += [geometric_mean(rest) / own - 1 for own, rest in zip(rates, others, strict=True) if rest]
    return {"alike": str(len(off)), "alike_off": share(mean(map(abs, off)))}


def _zero2() -> str:
    """The errors of held-out runs if gradients were reduced once per microbatch."""
    found = []
    for run in HELD_OUT:
        p, table = published.planned(run), calibrated.training(run.chip, run.precision)
        plan = replace(p.plan, zero=2)
        step = training.step(p.model, p.machine, plan, batch=run.batch, T=run.T, efficiency=table)
        found.append(signed(step.total_s / run.step_s - 1))
    return f"{', '.join(found[:-1])} and {found[-1]}"


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


def _constant() -> float:
    """The mean error of the best constant MFU for all dense runs."""
    shares = sorted(run.mfu for run in RUNS if not run.experts)
    return min(sum(abs(share / mfu - 1) for share in shares) / len(shares) for mfu in shares)


def _bands() -> Cells:
    """The coverage of leave-one-out prediction intervals."""
    for experts, name in ((False, "dense"), (True, "with experts")):
        for seen in SEEN:
            found = published.interval_coverage(experts, seen).values()
            within = sum(inside for inside, _ in found) / sum(runs for _, runs in found)
            factor = f"{published.prediction_interval(experts, seen):.2f}"
            yield name, SEEN[seen], factor, str(len(found)), share(within, 0)


def _chips() -> Cells:
    """The fitted matmul share of each chip, with its number of runs."""
    kinds = grouped(published.all_runs(), lambda run: factors.figure_key(run.chip, run.precision))
    for line, runs in sorted(kinds.items()):
        attained = factors.kernel_share(runs[0].chip, runs[0].precision)
        yield line, str(len(runs)), f"{attained:.2f}", f"{VALUES[line]:.2f}"


def _software() -> Cells:
    """The slowness of each software and its overheads of expert layers."""
    for name in sorted({name for run in published.all_runs() for name in run.software}):
        runs = sum(name in run.software for run in published.all_runs())
        figures = (VALUES.get(f"{name}: {what}") for what in (*SOFTWARE, "expert_layer_s, Grace"))
        yield name, str(runs), *(f"{value:.2f}" if value else "" for value in figures)


def _held_out() -> Cells:
    for s in published.held_out():
        what = f"{s.run.chips:,} {s.run.chip.name}, {s.run.batch:,} sequences of {s.run.T:,}"
        yield what, si(s.published, "s"), si(s.predicted, "s"), signed(s.error)


def _series_far() -> Cells:
    far = sorted((one for one in compared.ratios() if abs(one.error) > 0.05), key=lambda one: one.run.series)
    for one in far:
        run = one.run
        where = f"{run.model.name}, {run.chips:,} {run.chip.name}, {run.precision}"
        yield run.id, where, f"{run.T:,}", str(run.microbatch or ""), signed(one.error)


def _classes() -> Cells:
    for name, one in CLASSES.items():
        told = si if "_s" in name else lambda value, _: f"{value:.2f}"
        short = SHORT.get(name, name.replace("expert_layer_s", "lost with a layer of experts"))
        yield short, told(one.value, "s"), f"{one.spread:.2f}", told(VALUES[name], "s")


def _worst() -> Cells:
    for s in worst_predicted(published.scores()):
        times = (si(s.published, "s"), si(s.predicted, "s"))
        yield s.run.id, s.run.model.name, *times, signed(s.error, 0)


PAGE = Page(
    name="training",
    values=numbers,
    tables={
        "chips": _chips,
        "software": _software,
        "worst": _worst,
        "classes": _classes,
        "sources": lambda: sources(published.scores()[: len(RUNS)]),
        "held_out": _held_out,
        "bands": _bands,
        "series_far": _series_far,
    },
    title="Predicted over published time of a step.",
    scores=published.scores,
    across=lambda s: s.published,
    scale=Scale("published", "s", "log", 0.3, 400),
    kinds={"A100": "A100", "H100": "H100", "B200": "Blackwell", "GB200": "Blackwell", "GB300": "Blackwell"},
)
