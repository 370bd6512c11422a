"""What is filled into the appendix on predicted and published training steps: its numbers and its tables."""

import csv
from collections.abc import Iterable
from dataclasses import replace
from statistics import mean, median

from scalingbook_lib.evidence.tables import frozen

from scalingbook_lib import training
from scalingbook_lib.evidence import training as published
from scalingbook_lib.evidence.fitting import Values
from scalingbook_lib.evidence.measured.training_runs import HELD_OUT, REFUSED, RUNS, find
from scalingbook_lib.evidence.scores import HOLDS, signed
from scalingbook_lib.evidence.training.efficiencies import EXPECTED, TORUS, ramp
from scalingbook_lib.machines import chips
from scalingbook_lib.reader.explorers.view import Scale
from scalingbook_lib.units import si
from tools.environment import ROOT
from tools.published import Cells, Page, bands, share, sources, summaries, worst

SHORT = {
    "matmul": "products",
    "experts": "experts",
    "attention": "attention",
    "early": "attention, early kernels",
    "unfused": "attention, unfused",
    "memory": "HBM",
    "torus": "torus",
    "domain": "domain",
    "network": "network",
    "dcn": "DCN",
    "exposed": "exposed",
}
FROZEN = frozen("training")


def numbers() -> dict[str, str]:
    """What the words of the page quote."""
    ratios, orders = published.ratios(), published.orders()
    return {
        "date": FROZEN.date,
        "runs": str(len(RUNS)),
        "families": str(len({run.family for run in RUNS})),
        "projects": str(len({run.source.url for run in RUNS})),
        "refused": str(sum(map(len, REFUSED.values()))),
        "dense": str(published.total(False).runs),
        "experts": str(published.total(True).runs),
        "lines": str(len(FROZEN.table)),
        "one_mean": share(FROZEN.tried["one_kernel_dense"]["mean"]),
        "one_p90": share(FROZEN.tried["one_kernel_dense"]["p90"]),
        "kernels_most": share(_kernels(), 0),
        "constant": share(_constant()),
        "series": str(len(ratios)),
        "series_mean": share(_size(ratios)),
        "series_near": str(sum(abs(r.error) <= 0.05 for r in ratios)),
        "orders": str(len(orders)),
        "right": str(sum(o.right for o in orders)),
        **_held(),
        **_errors(),
        **_waits("mbridge-26-04-01-b200-256-mxfp8-01"),
        **_band(),
        **_tried(),
    }


def _size(found: Iterable[published.Ratio | published.Held | published.Score]) -> float:
    """The mean size of their errors."""
    return mean(abs(one.error) for one in found)


def _held() -> dict[str, str]:
    """The most memory of a chip."""
    held = published.held()
    most = max(abs(one.error) for one in held)
    return {"held": str(len(held)), "held_most": share(most), "held_mean": share(_size(held))}


def _errors() -> dict[str, str]:
    found = {}
    for experts, kind in ((False, "dense"), (True, "experts")):
        for left_out, name in ((False, kind), (True, f"{kind}_out")):
            one = published.total(experts, left_out)
            shares = {"mean": one.mean, "median": one.median, "p90": one.p90}
            found |= {f"{name}_{which}": share(value) for which, value in shares.items()}
            found[f"{name}_bias"] = signed(one.bias)
    return found


def _band() -> dict[str, str]:
    """The two bands, and how many runs of sources that they never saw they hold."""
    dense, experts = published.held_by_band(False), published.held_by_band(True)
    far = sorted((inside / runs, f"{name} ({inside} of {runs})") for name, (inside, runs) in dense.items())
    return {
        "band": f"{published.band(False):.2f}",
        "band_experts": f"{published.band(True):.2f}",
        "holds": share(HOLDS, 0),
        "most_runs": str(max(runs for _, runs in experts.values())),
        "experts_sources": str(len(experts)),
        "band_worst": " and ".join(text for _, text in far[:2]),
    }


def _tried() -> dict[str, str]:
    """What goes with the errors of ratios, and the rule that was tried for it."""
    rule, crowded = FROZEN.tried["doubling"], published.crowded()
    return {
        "crowded": str(len(crowded)),
        "crowded_error": signed(mean(one.error for one in crowded)),
        "per_doubling": share(published.per_doubling()),
        "tried": share(rule["share"]),
        "tried_near": str(rule["near"]),
        "tried_dense": share(rule["dense"]),
        "tried_experts": share(rule["experts"]),
        "tried_held_out": share(rule["held_out"]),
        "held_out_mean": share(_size(published.held_out())),
        "held_out_zero2": _zero2(),
    }


def _zero2() -> str:
    """The errors of the runs held out, if their gradients were reduced once a microbatch."""
    found = []
    for run in HELD_OUT:
        p, table = published.planned(run), published.calibrated(run.chip, run.precision)
        plan = replace(p.plan, zero=2)
        step = training.step(p.model, p.machine, plan, batch=run.batch, T=run.T, efficiency=table)
        found.append(signed(step.total_s / run.step_s - 1))
    return f"{', '.join(found[:-1])} and {found[-1]}"


def _waits(id: str) -> dict[str, str]:
    """The exchange of tokens as predicted for a run, and the whole step as published."""
    run = find(id)
    table = published.calibrated(run.chip, run.precision)
    waited = published.seconds(run, table).exposed["Z"]
    return {"exchange": f"{waited:.0f}", "published": f"{run.step_s:.0f}"}


def _kernels() -> float:
    """How far measured attention is from 0.55 of the peak behind its ramp, at most: medians of kernels."""
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
    """The mean error of one constant MFU for all dense runs, the best one."""
    shares = sorted(run.mfu for run in RUNS if not run.experts)
    return min(sum(abs(share / mfu - 1) for share in shares) / len(shares) for mfu in shares)


def _values() -> Cells:
    for (chip, precision), row in sorted(FROZEN.table.items()):
        runs = sum((run.chip.name, run.precision) == (chip, precision) for run in RUNS)
        times = (si(row[name], "s") if name in row else "" for name in ("layer_s", "expert_layer_s"))
        shares = (f"{row[name]:.2f}" if name in row else "" for name in ("matmul", "experts"))
        yield chip, precision, str(runs), *shares, _attention(row), f"{row['memory']:.2f}", *times


def _attention(row: Values) -> str:
    """The share of today's kernels, and those of older ones by name."""
    words = {"attention": "", "early": "early ", "unfused": "unfused "}
    return ", ".join(f"{word}{row[name]:.2f}" for name, word in words.items() if name in row)


def _links() -> Cells:
    for (chip, precision), row in sorted(FROZEN.table.items()):
        names = ("torus", "dcn") if "torus" in row else ("domain", "network")
        yield chip, precision, *(f"{row[name]:.2f}" for name in (*names, "exposed"))


def _held_out() -> Cells:
    for s in published.held_out():
        what = f"{s.run.chips:,} {s.run.chip.name}, {s.run.batch:,} sequences of {s.run.T:,}"
        yield what, si(s.published, "s"), si(s.predicted, "s"), signed(s.error)


def _series_far() -> Cells:
    far = sorted((one for one in published.ratios() if abs(one.error) > 0.05), key=lambda one: one.run.series)
    for one in far:
        run = one.run
        where = f"{run.model.name}, {run.chips:,} {run.chip.name}, {run.precision}"
        yield run.id, where, f"{run.T:,}", str(run.microbatch or ""), signed(one.error)


def _expected() -> Cells:
    for name, one in EXPECTED.items():
        value = si(one.value, "s") if name.endswith("_s") else f"{one.value:.2f}"
        value += f" ({TORUS[name].value:.2f} on tori)" if name in TORUS else ""
        lost = f"lost with {'experts' if 'expert' in name else 'a layer'}"
        yield SHORT.get(name, lost), value, f"{one.spread:.2f}"


def _worst() -> Cells:
    for s in worst(published.scores()):
        times = (si(s.published, "s"), si(s.predicted, "s"))
        yield s.run.id, s.run.model.name, *times, signed(s.error, 0)


PAGE = Page(
    name="training",
    told=numbers,
    tables={
        "by_family": lambda: summaries(published.by_family()),
        "values": _values,
        "worst": _worst,
        "expected": _expected,
        "sources": lambda: sources(published.scores()),
        "links": _links,
        "held_out": _held_out,
        "bands": lambda: bands(published.held_by_band),
        "series_far": _series_far,
    },
    title="Predicted over published time of a step.",
    scores=published.scores,
    across=lambda s: s.published,
    scale=Scale("published", "s", "log", 0.3, 200),
    kinds={"A100": "A100", "H100": "H100", "B200": "Blackwell", "GB200": "Blackwell", "GB300": "Blackwell"},
)
