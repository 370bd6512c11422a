"""Write the appendix on predicted and published training steps: its tables, its picture, its numbers.

    python -m tools.training_page

writes training-runs.md and training-runs.svg. Every number is the library's; a test compares the text.
"""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from scalingbook_lib.explorers.view import Chart, Points, RefLine, Scale, View
from scalingbook_lib.measured.training_runs import REFUSED, RUNS, find
from scalingbook_lib.training import published
from scalingbook_lib.training.published import Score, Summary, kernels
from scalingbook_lib.training.published.calibrated import DATE, ONE_KERNEL
from scalingbook_lib.training.published.fit import EXPECTED, TORUS
from scalingbook_lib.units import si
from tools.environment import ROOT

PAGE, PICTURE = ROOT / "training-runs.md", ROOT / "training-runs.svg"
TEXT = Path(__file__).with_name("training_page.md")
KINDS = {"A100": "A100", "H100": "H100", "B200": "Blackwell", "GB200": "Blackwell", "GB300": "Blackwell"}
SHORT = {
    "matmul": "products", "experts": "experts", "attention": "attention",
    "early": "attention, early kernels", "unfused": "attention, unfused", "memory": "HBM", "torus": "torus",
    "domain": "domain", "network": "network", "dcn": "DCN", "exposed": "exposed",
}  # fmt: skip


def text() -> str:
    """The page: the words of training_page.md with every {name} filled in."""
    return TEXT.read_text().format(**_numbers(), **_tables())


def _numbers() -> dict[str, str]:
    dense, experts = published.total(False), published.total(True)
    dense_out, experts_out = published.total(False, True), published.total(True, True)
    ratios, orders, held = published.ratios(), published.orders(), published.held()
    return {
        "date": DATE, "runs": str(len(RUNS)), "families": str(len({run.family for run in RUNS})),
        "projects": str(len({run.source.url for run in RUNS})),
        **_waits("mbridge-26-04-01-b200-256-mxfp8-01"), "refused": str(sum(map(len, REFUSED.values()))),
        "dense": str(dense.runs), "experts": str(experts.runs), "lines": str(len(published.TABLE)),
        "one_mean": _share(ONE_KERNEL[0][0]), "one_p90": _share(ONE_KERNEL[0][1]),
        "kernels_most": _share(_kernels(), 0), "constant": _share(_constant()), "inside": _share(_inside()),
        **_errors("dense", dense), **_errors("experts", experts),
        **_errors("dense_out", dense_out), **_errors("experts_out", experts_out),
        "band": f"{published.band(False):.2f}", "band_experts": f"{published.band(True):.2f}",
        "series": str(len(ratios)), "series_mean": _share(sum(abs(r.error) for r in ratios) / len(ratios)),
        "series_near": _share(sum(abs(r.error) <= 0.05 for r in ratios) / len(ratios), 0),
        "orders": str(len(orders)), "right": str(sum(o.right for o in orders)),
        "held": str(len(held)), "held_most": _share(max(abs(h.error) for h in held)),
        "held_mean": _share(sum(abs(h.error) for h in held) / len(held)),
    }  # fmt: skip


def _waits(id: str) -> dict[str, str]:
    """The exchange of tokens as predicted for a run, and the whole step as published."""
    run = find(id)
    table = published.calibrated(run.chip, run.precision)
    waited = published.seconds(run, table).exposed["Z"]
    return {"exchange": f"{waited:.0f}", "published": f"{run.step_s:.0f}"}


def _errors(name: str, one: Summary) -> dict[str, str]:
    return {
        f"{name}_mean": _share(one.mean),
        f"{name}_median": _share(one.median),
        f"{name}_p90": _share(one.p90),
        f"{name}_bias": _signed(one.bias),
    }


def _share(value: float, digits: int = 1) -> str:
    return f"{value:.{digits}%}".replace("%", " %")


def _signed(value: float, digits: int = 1) -> str:
    return f"{value:+.{digits}%}".replace("%", " %").replace("-", "\N{MINUS SIGN}")


def _kernels() -> float:
    """How far measured attention is from the formula, at most."""
    return max(abs(kernels.attention(chip, T) / share - 1)
               for chip, row in kernels.MEASURED.items() for T, share in row.items())  # fmt: skip


def _constant() -> float:
    """The mean error of one constant MFU for all dense runs, the best one."""
    shares = sorted(run.mfu for run in RUNS if not run.experts)
    return min(sum(abs(share / mfu - 1) for share in shares) / len(shares) for mfu in shares)


def _inside() -> float:
    scores = published.scores()
    bands = [math.log(published.band(s.run.experts, published.source(s.run))) for s in scores]
    far = [abs(math.log(1 + s.left_out_error)) for s in scores]
    return sum(one <= band for one, band in zip(far, bands, strict=True)) / len(scores)


def _tables() -> dict[str, str]:
    return {"by_family": _table(_families()), "values": _table(_values()), "worst": _table(_worst()),
            "expected": _table(_expected()), "sources": _table(_sources())}  # fmt: skip


def _table(rows: Iterable[Iterable[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _families() -> Iterator[tuple[str, ...]]:
    for fitted, out in published.by_family():
        yield (fitted.name, str(fitted.runs), _share(fitted.mean), _signed(fitted.bias),
               _share(out.mean), _signed(out.bias))  # fmt: skip


def _values() -> Iterator[tuple[str, ...]]:
    for (chip, precision), row in sorted(published.TABLE.items()):
        runs = sum((run.chip.name, run.precision) == (chip, precision) for run in RUNS)
        times = (si(row[name], "s") if name in row else "" for name in ("layer_s", "expert_layer_s"))
        yield (chip, precision, str(runs), *(f"{row[n]:.2f}" if n in row else "" for n in SHORT), *times)


def _expected() -> Iterator[tuple[str, ...]]:
    for name, one in EXPECTED.items():
        value = si(one.value, "s") if name.endswith("_s") else f"{one.value:.2f}"
        value += f" ({TORUS[name].value:.2f} on tori)" if name in TORUS else ""
        yield (
            SHORT.get(name, f"lost with {'experts' if 'expert' in name else 'a layer'}"),
            value,
            f"{one.spread:.2f}",
        )


def _sources() -> Iterator[tuple[str, ...]]:
    families = {run.family: run for run in RUNS}
    for name, run in sorted(families.items()):
        yield name, f"[{run.source.text}]({run.source.url})", run.note


def _worst(many: int = 16) -> Iterator[tuple[str, ...]]:
    for s in sorted(published.scores(), key=lambda s: -abs(s.error))[:many]:
        yield s.run.id, s.run.model.name, _signed(s.error, 0)


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
    from scalingbook_lib.viz import figures

    PAGE.write_text(text())
    figures.draw(view()).savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
