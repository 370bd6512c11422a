"""Write the appendix on predicted and published training steps: its tables, its picture, its numbers.

    python -m tools.training_page

writes training-runs.md and training-runs.svg. Every number is the library's; a test compares the text.
"""

from dataclasses import replace
from pathlib import Path
from statistics import mean

from scalingbook_lib import training
from scalingbook_lib.evidence import training as published
from scalingbook_lib.evidence.measured.training_runs import KEPT, REFUSED, RUNS, find
from scalingbook_lib.evidence.training import Score, Summary, kernels
from scalingbook_lib.evidence.training.calibrated import DATE, DOUBLING, ONE_KERNEL
from scalingbook_lib.evidence.training.scores import HOLDS
from scalingbook_lib.reader.explorers.view import Chart, Points, RefLine, Scale, View
from tools.environment import ROOT
from tools.training_tables import share, signed, tables

PAGE, PICTURE = ROOT / "training-runs.md", ROOT / "training-runs.svg"
TEXT = Path(__file__).with_name("training_page.md")
KINDS = {"A100": "A100", "H100": "H100", "B200": "Blackwell", "GB200": "Blackwell", "GB300": "Blackwell"}


def text() -> str:
    """The page: the words of training_page.md with every {name} filled in."""
    return TEXT.read_text().format(**_numbers(), **tables())


def _numbers() -> dict[str, str]:
    dense, experts = published.total(False), published.total(True)
    dense_out, experts_out = published.total(False, True), published.total(True, True)
    ratios, orders, held = published.ratios(), published.orders(), published.held()
    return {
        "date": DATE, "runs": str(len(RUNS)), "families": str(len({run.family for run in RUNS})),
        "projects": str(len({run.source.url for run in RUNS})),
        **_waits("mbridge-26-04-01-b200-256-mxfp8-01"), "refused": str(sum(map(len, REFUSED.values()))),
        "dense": str(dense.runs), "experts": str(experts.runs), "lines": str(len(published.TABLE)),
        "one_mean": share(ONE_KERNEL[0][0]), "one_p90": share(ONE_KERNEL[0][1]),
        "kernels_most": share(_kernels(), 0), "constant": share(_constant()), **_band(), **_tried(),
        **_errors("dense", dense), **_errors("experts", experts),
        **_errors("dense_out", dense_out), **_errors("experts_out", experts_out),
        "series": str(len(ratios)), "series_mean": share(mean(abs(r.error) for r in ratios)),
        "series_near": str(sum(abs(r.error) <= 0.05 for r in ratios)),
        "orders": str(len(orders)), "right": str(sum(o.right for o in orders)),
        "held": str(len(held)), "held_most": share(max(abs(h.error) for h in held)),
        "held_mean": share(mean(abs(h.error) for h in held)),
    }  # fmt: skip


def _band() -> dict[str, str]:
    """The two bands, and how many runs of sources that they never saw they hold."""
    found = {experts: published.held_by_band(experts) for experts in (False, True)}
    far = sorted(
        (inside / runs, f"{name} ({inside} of {runs})") for name, (inside, runs) in found[False].items()
    )
    return {
        "band": f"{published.band(False):.2f}", "band_experts": f"{published.band(True):.2f}",
        "holds": share(HOLDS, 0), "most_runs": str(max(runs for _, runs in found[True].values())),
        "experts_sources": str(len(found[True])), "band_worst": " and ".join(text for _, text in far[:2]),
    }  # fmt: skip


def _tried() -> dict[str, str]:
    """What goes with the errors of ratios, and the rule that was tried for it."""
    each, near, dense, experts, kept = DOUBLING
    crowded = published.crowded()
    return {
        "crowded": str(len(crowded)), "crowded_error": signed(mean(one.error for one in crowded)),
        "per_doubling": share(published.per_doubling()), "tried": share(each), "tried_near": str(near),
        "tried_dense": share(dense), "tried_experts": share(experts), "tried_kept": share(kept),
        "kept_mean": share(mean(abs(s.error) for s in published.kept())), "kept_zero2": _zero2(),
    }  # fmt: skip


def _zero2() -> str:
    """The errors of the runs kept apart, if their gradients were reduced once a microbatch."""
    found = []
    for run in KEPT:
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


def _errors(name: str, one: Summary) -> dict[str, str]:
    return {
        f"{name}_mean": share(one.mean),
        f"{name}_median": share(one.median),
        f"{name}_p90": share(one.p90),
        f"{name}_bias": signed(one.bias),
    }


def _kernels() -> float:
    """How far measured attention is from the formula, at most."""
    return max(abs(kernels.attention(chip, T) / share - 1)
               for chip, row in kernels.MEASURED.items() for T, share in row.items())  # fmt: skip


def _constant() -> float:
    """The mean error of one constant MFU for all dense runs, the best one."""
    shares = sorted(run.mfu for run in RUNS if not run.experts)
    return min(sum(abs(share / mfu - 1) for share in shares) / len(shares) for mfu in shares)


def view() -> View:
    """Predicted over published, each run a point, by the kind of chip."""
    scores = published.scores()
    dense, experts = [s for s in scores if not s.run.experts], [s for s in scores if s.run.experts]
    charts = (
        _chart("Dense: as fitted", dense, left_out=False),
        _chart("Dense: by a table without the source", dense, left_out=True),
        _chart("Experts: as fitted", experts, left_out=False),
        _chart("Experts: by a table without the source", experts, left_out=True),
    )
    return View("Predicted over published time of a step.", charts, columns=2)


def _chart(title: str, scores: list[Score], *, left_out: bool) -> Chart:
    kinds: dict[str, list[Score]] = {}
    for s in scores:
        kinds.setdefault(KINDS.get(s.run.chip.name.split()[0], "TPU"), []).append(s)
    marks = [
        Points(kind, [s.run.step_s for s in kinds[kind]],
               [1 + (s.left_out_error if left_out else s.error) for s in kinds[kind]], color=k)
        for k, kind in enumerate(("A100", "H100", "Blackwell", "TPU"))
        if kind in kinds
    ]  # fmt: skip
    return Chart(
        Scale("published", "s", "log", 0.3, 200),
        Scale("predicted / published", "", "linear", 0.3, 1.9),
        (RefLine("", 1.0, "y"), *marks),
        title,
    )


def main() -> None:
    """Write both."""
    import matplotlib

    from scalingbook_lib.viz import figures

    PAGE.write_text(text())
    with matplotlib.rc_context({"svg.hashsalt": PICTURE.name}):
        figures.draw(view()).savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
