"""Write the appendix on predicted and published inference: its tables, its picture, its numbers.

    python -m tools.serving_page

writes serving-runs.md and serving-runs.svg. Every number is the library's; a test compares the text.
"""

from pathlib import Path
from statistics import mean

from scalingbook_lib import inference
from scalingbook_lib.evidence import inference as published
from scalingbook_lib.evidence.inference import KINDS, Score
from scalingbook_lib.evidence.inference.calibrated import NO_HOST
from scalingbook_lib.evidence.inference.planned import RESERVE, STEP_TOKENS, planned
from scalingbook_lib.evidence.measured.inference_runs import REFUSED, RUNS, InferenceRun, find
from scalingbook_lib.inference.shape import shape
from scalingbook_lib.machines import chips
from scalingbook_lib.reader.explorers.view import Chart, Points, RefLine, Scale, View
from scalingbook_lib.units import si
from tools.environment import ROOT
from tools.serving_tables import share, signed, tables

PAGE, PICTURE = ROOT / "serving-runs.md", ROOT / "serving-runs.svg"
TEXT = Path(__file__).with_name("serving_page.md")
COLORS = {"A100": "A100", "H100": "Hopper", "H200": "Hopper", "B200": "Blackwell", "GB200": "Blackwell",
          "RTX": "RTX PRO 6000"}  # fmt: skip


def text() -> str:
    """The page: the words of serving_page.md with every {name} filled in."""
    return TEXT.read_text().format(**_numbers(), **_misses(), **tables())


def score(id: str) -> Score:
    """The score of a run."""
    return next(s for s in published.scores() if s.run.id == id)


def _numbers() -> dict[str, str]:
    a100, table = published.TABLE["A100, 330 W", "bf16"], published.TABLE
    gpus = [row for (chip, _), row in table.items() if chip not in ("GB200", *_BARE)]
    return {
        "runs": str(len(RUNS)), "models": str(len({run.model.name for run in RUNS})),
        "engines": str(len({run.engine for run in RUNS})), "lines": str(len(table)),
        "refused": _word(sum(map(len, REFUSED.values()))), "date": published.DATE,
        "rows": str(len(RUNS) + sum(map(len, REFUSED.values()))),
        "band": f"{published.band(False):.2f}", "band_experts": f"{published.band(True):.2f}",
        "holds": share(published.HOLDS, 0), "reserve": share(RESERVE, 0), **_wave("inf-0140"), **_head(),
        "host": _range([row["host_s"] for row in gpus], "s"),
        "host_step": f"{4096 * table['B200', 'fp4']['host_s'] * 1e3:.0f} ms",
        "weights_share": share(a100["weights"], 0), "dequantize": f"{a100['dequantize']:.1f}",
        "vector": si((chips.A100.vector_flops_per_s or 0) / 2), "layer": si(a100["layer_s"], "s", 2),
        "fixed": si(a100["fixed_s"], "s", 2), "collective": si(a100["collective_s"], "s", 2),
        "decode_out": share(max(abs(s.left_out_error) for s in published.scores() if s.kind == KINDS[3]), 0),
        "pointwise": _range([row["pointwise"] for row in gpus], "B"),
        "ref_miss": "{ref}`the end of this page <serving-runs-misses>`",
        "steady_dense": share(_steady(False)), "steady_experts": share(_steady(True)),
        "no_host_dense": share(NO_HOST[0]), "no_host_experts": share(NO_HOST[1]),
        "read": _shares([row[name] for row in table.values() for name in ("weights", "kv")]),
        "network": si(table["A100", "fp16"]["network_s"], "s", 2),
    }  # fmt: skip


_BARE = ("A100", "A100, 330 W", "TPU v4", "TPU7x")


def _steady(experts: bool) -> float:
    """The mean error of `inference.serve` on the runs of servers."""
    return mean(_steady_error(run) for run in RUNS if run.kind == "serving" and run.experts == experts)


def _steady_error(run: InferenceRun) -> float:
    p, efficiency = planned(run), published.calibrated(run.chip, run.compute, run.engine)
    found = inference.serve(
        run.model, p.machine, p.layout, P=run.P, G=run.G, batch=p.batch, policy="chunked",
        chunk=int(min(p.step_tokens, STEP_TOKENS[1])), efficiency=efficiency,
    )  # fmt: skip
    return abs(found.tokens_per_s / run.tokens_per_s - 1)


def _shares(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def _word(n: int) -> str:
    return ("No", "One", "Two", "Three", "Four", "Five")[n] if n < 6 else str(n)


def _range(values: list[float], unit: str) -> str:
    """'1.8 to 2.1 TB', two digits each."""
    low, high = si(min(values), unit, 2), si(max(values), unit, 2)
    return f"{low.split()[0]} to {high}" if low.split()[1] == high.split()[1] else f"{low} to {high}"


def _wave(id: str) -> dict[str, str]:
    """Waves of a run."""
    run = find(id)
    batch, requests = planned(run).batch, run.requests or 0
    return {
        "wave_id": f"`{id}`", "wave_requests": f"{requests:,}", "wave_batch": f"{batch:,}",
        "wave_full": str(requests // batch), "wave_rest": str(requests % batch),
    }  # fmt: skip


def _head() -> dict[str, str]:
    """The unembedding of Qwen3 30B-A3B: its share of the weights that a token meets, and of their time."""
    p = planned(find("inf-0139"))
    s, chip = shape(p.run.model, p.layout), p.run.chip
    layers = s.projections.met + s.mlp.met + s.experts.met
    seconds = layers / chip.flops_per_s(p.layout.compute), s.head.met / chip.flops_per_s()
    return {
        "head_params": share(s.head.met / (layers + s.head.met), 0),
        "head_time": share(seconds[1] / sum(seconds), 0),
    }


def _misses() -> dict[str, str]:
    """What the last section quotes."""
    rate = {name: f"{find(id).tokens_per_s:,.0f}" for name, id in _QUOTED.items()}
    table = published.TABLE
    h100 = [s.left_out_error for s in published.scores() if s.run.chip.name == "H100" and s.run.experts]
    tpu = [s.left_out_error for s in published.scores() if s.run.family == "vllm-tpu-fp8"]
    return {
        **rate, "gb_error": signed(score("inf-0048").error, 0),
        "h100_layer": si(table["H100", "fp8"]["expert_layer_s"], "s", 2),
        "h200_layer": si(table["H200", "fp8"]["expert_layer_s"], "s", 2),
        "h100_out": share(sum(h100) / len(h100), 0), "card_error": _far("inf-0303"),
        "scout_b200": _far("inf-0043"), "scout_h200": _far("inf-0063"),
        "tpu_out": share(sum(tpu) / len(tpu), 0), "embedding": _far("inf-0339"),
        "exposed": share(table["TPU v4", "bf16"]["exposed"], 0),
        "mtnlg_out": _said(score("inf-0015").left_out_error),
    }  # fmt: skip


_QUOTED = {"gb_short": "inf-0048", "gb_long": "inf-0049", "b_short": "inf-0038", "b_long": "inf-0039"}


def _far(id: str) -> str:
    return _said(score(id).error)


def _said(error: float) -> str:
    return f"{share(abs(error), 0)} too {'fast' if error > 0 else 'slow'}"


def view() -> View:
    """Predicted over published, each run a point, by the kind of chip."""
    dense = [s for s in published.scores() if not s.run.experts]
    experts = [s for s in published.scores() if s.run.experts]
    charts = (
        _chart("Dense: as fitted", dense, left_out=False),
        _chart("Dense: by a table without the source", dense, left_out=True),
        _chart("Experts: as fitted", experts, left_out=False),
        _chart("Experts: by a table without the source", experts, left_out=True),
    )
    return View("Predicted over published tokens a second.", charts, columns=2)


def _chart(title: str, scores: list[Score], *, left_out: bool) -> Chart:
    kinds: dict[str, list[Score]] = {}
    for s in scores:
        kinds.setdefault(COLORS.get(s.run.chip.name.replace(",", "").split()[0], "TPU"), []).append(s)
    marks = [
        Points(kind, [s.run.tokens_per_s_per_chip for s in kinds[kind]],
               [1 + (s.left_out_error if left_out else s.error) for s in kinds[kind]], color=k)
        for k, kind in enumerate(("A100", "Hopper", "Blackwell", "RTX PRO 6000", "TPU"))
        if kind in kinds
    ]  # fmt: skip
    return Chart(
        Scale("published, a chip", "tokens/s", "log", 1, 60_000),
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
