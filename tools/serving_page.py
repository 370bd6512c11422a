"""The numbers, tables, figure and data files of the page "Published serving runs"."""

from collections.abc import Iterator
from statistics import mean

from scalingbook_lib import calibrated, inference, models
from scalingbook_lib.calibrated.factors import record
from scalingbook_lib.evidence import inference as published
from scalingbook_lib.evidence.inference import InferenceScore
from scalingbook_lib.evidence.inference.planned import RESERVE, STEP_TOKENS, planned
from scalingbook_lib.evidence.measured.inference_runs import REFUSED, RUNS, InferenceRun, find
from scalingbook_lib.evidence.scores import COVERAGE, signed
from scalingbook_lib.inference.shape import shape
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.units import FP8, si
from tools import fitted_constants, quantized_decode
from tools.published import Cells, Page, share, sources, worst_predicted
from tools.scatter import Group, Scatter
from tools.scored_rows import Entry, data, entries, fitted, line, mean_size, which

FROZEN = record("inference")
VALUES = FROZEN.values
EVERY = published.all_runs()
LEFT_OUT = "source", "software", "chip"
BANDS = {"dense": (False, True), "experts": (True, True), "one batch at a time": (False, False)}
"""What a band is for: with experts or not, and whether servers are full."""
SATURATED = {
    "A100": "A100",
    "H100, H200": "H100 H200",
    "B200, GB200": "B200 GB200",
    "L40S, RTX PRO 6000": "L40S RTX",
    "TPU": "TPU",
    "Gaudi2": "Gaudi",
}
"""The hardware of saturated dense servers, by the words with which the names of the chips begin."""
KINDS = {
    "Saturated, dense": ("serving saturated, dense",),
    "Saturated, experts": ("serving saturated, experts",),
    "Prefill": ("serving prefill",),
    "Decode of one batch": ("serving decode",),
}
_QUOTED = {"gb_short": "inf-0048", "gb_long": "inf-0049", "b_short": "inf-0038", "b_long": "inf-0039"}


def score(id: str) -> InferenceScore:
    """The score of a run."""
    return next(s for s in published.scores() if s.run.id == id)


def numbers() -> dict[str, str]:
    """The numbers that the page's text quotes."""
    factor = {
        f"band_{name.split()[-1]}": f"{published.prediction_interval(experts, full=full, known=True):.2f}"
        for name, (experts, full) in BANDS.items()
    }
    return factor | {
        "band_unseen": f"{published.prediction_interval(False):.2f}",
        "band_example": _band(1000, published.prediction_interval(False, full=True, known=True)),
        "runs": str(len(EVERY)),
        "listed": str(len(RUNS)),
        "added": str(len(EVERY) - len(RUNS)),
        "trtllm": share(mean(run.software[0].startswith("TensorRT-LLM") for run in EVERY), 0),
        "models": str(len({run.model.name for run in EVERY})),
        "engines": str(len({run.software[0] for run in EVERY})),
        "most_chips": str(max(run.chips for run in EVERY)),
        "figures": str(len(VALUES)),
        "refused": str(sum(map(len, REFUSED.values()))),
        "date": FROZEN.date,
        "holds": share(COVERAGE, 0),
        "reserve": share(RESERVE, 0),
        "host": si(VALUES["scheduling: host_s"], "s", 2),
        "host_step": f"{4096 * VALUES['scheduling: host_s'] * 1e3:.0f} ms",
        "grace": f"{VALUES['Grace']:.1f}",
        "apart": share(VALUES["apart"], 0),
        "steady_dense": share(_steady(False), 0),
        "steady_experts": share(_steady(True), 0),
        "network": si(VALUES["network_s"], "s", 2),
        **_quoted(),
        **quantized_decode.values(),
        **_own(),
        **_wave("inf-0140"),
        **_head(),
        **_misses(),
    }


def _band(value: float, factor: float) -> str:
    """Return the band of a predicted value, rounded to tens."""
    return f"{round(value / factor, -1):,.0f} to {round(value * factor, -1):,.0f}"


def _rows(*kinds: str, chips: str = "") -> list[Entry]:
    return fitted(which(entries("inference_runs"), *kinds, chips=chips))


def _quoted() -> dict[str, str]:
    """The mean errors that the text quotes: known, and without the source, the software or the chip."""
    groups = {
        "dense": _rows(*KINDS["Saturated, dense"]),
        "experts": _rows(*KINDS["Saturated, experts"]),
        "saturated": _rows(*KINDS["Saturated, dense"], *KINDS["Saturated, experts"]),
        "single": _rows(*KINDS["Prefill"], *KINDS["Decode of one batch"]),
        "decode": _rows(*KINDS["Decode of one batch"]),
        "tpu": _rows(*KINDS["Saturated, dense"], chips="TPU"),
    }
    found = {}
    for name, rows in groups.items():
        found[f"{name}_runs"] = str(len(rows))
        found[f"{name}_known"] = share(mean_size(one.found.error for one in rows), 0)
        found |= {f"{name}_{way}": share(mean_size(one.out.get(way) for one in rows), 0) for way in LEFT_OUT}
    return found


def _steady(experts: bool) -> float:
    """The mean error of `inference.serve` on the serving runs."""
    return mean(_steady_error(run) for run in RUNS if run.kind == "serving" and run.experts == experts)


def _steady_error(run: InferenceRun) -> float:
    p, efficiency = planned(run), calibrated.serving(run.chip, run.compute, run.software[0])
    found = inference.serve(
        run.model,
        p.machine,
        p.layout,
        P=run.P,
        G=run.G,
        batch=p.batch,
        policy="chunked",
        chunk=int(min(p.step_tokens, STEP_TOKENS[1])),
        efficiency=efficiency,
    )
    return abs(found.tokens_per_s / run.tokens_per_s - 1)


def _own() -> dict[str, str]:
    """The rate that the page's example predicts, and the published one."""
    layout = inference.Layout(weights=FP8, kv=FP8, compute=FP8)
    efficiency = calibrated.serving(chips.H200, FP8, "TensorRT-LLM")
    model, machine = models.find("Llama 3 70B"), Cluster.of(chips.H200, 1)
    step = inference.decode(model, machine, layout, batch=100, S=2176, efficiency=efficiency)
    return {
        "own_rate": f"{100 / step.total_s:,.0f}",
        "own_published": f"{find('inf-0094').tokens_per_s:,.0f}",
    }


def _wave(id: str) -> dict[str, str]:
    """The waves of requests of a run."""
    run = find(id)
    batch, requests = planned(run).batch, run.requests or 0
    return {
        "wave_id": f"`{id}`",
        "wave_requests": f"{requests:,}",
        "wave_batch": f"{batch:,}",
        "wave_full": str(requests // batch),
        "wave_rest": str(requests % batch),
    }


def _head() -> dict[str, str]:
    """The unembedding of Qwen3 30B-A3B: its share of active weights, and of compute time."""
    p = planned(find("inf-0139"))
    s, chip = shape(p.run.model, p.layout), p.run.chip
    layers = s.projections.met + s.mlp.met + s.experts.met
    seconds = layers / chip.flops_per_s(p.layout.compute), s.head.met / chip.flops_per_s()
    return {
        "head_params": share(s.head.met / (layers + s.head.met), 0),
        "head_time": share(seconds[1] / sum(seconds), 0),
    }


def _misses() -> dict[str, str]:
    """The numbers of the section on the largest errors."""
    h100 = [s.error for s in published.scores() if s.run.chip.name == "H100" and "Scout" in s.run.model.name]
    neuron = [score(id).error for id in ("ninf-0272", "ninf-0276")]
    far = {"card_error": "inf-0303", "scout_b200": "inf-0043", "scout_h200": "inf-0063"}
    return {
        **{name: f"{find(id).tokens_per_s:,.0f}" for name, id in _QUOTED.items()},
        **{name: _said(score(id).error) for name, id in far.items()},
        "gb_error": _said(score("inf-0048").error),
        "h100_error": _said(mean(h100)),
        "neuron": f"{1 + mean(neuron):.1f} times",
        "mtnlg_out": _said(score("inf-0015").leave_one_out_error),
    }


def _said(error: float) -> str:
    return f"{share(abs(error), 0)} too {'fast' if error > 0 else 'slow'}"


def _classes() -> Cells:
    """Errors by kind of run, and of saturated dense servers by hardware."""
    for name, kinds in KINDS.items():
        yield line(f"{name}, all chips", _rows(*kinds))
        for chip, begins in SATURATED.items() if name == "Saturated, dense" else ():
            yield line(f"{name}, {chip}", _rows(*kinds, chips=begins))


def figure() -> Scatter:
    """Every fitted run as tokens per second per chip, predicted without its source."""
    groups = {
        "dense": KINDS["Saturated, dense"],
        "experts": KINDS["Saturated, experts"],
        "one batch at a time": KINDS["Prefill"] + KINDS["Decode of one batch"],
    }
    bands = {
        name: published.prediction_interval(experts, full=full, known=True)
        for name, (experts, full) in BANDS.items()
        if full
    }
    return Scatter(
        conclusion="Predicted against published tokens per second per chip, by kind of run",
        reference="published",
        quantity="rate per chip",
        unit="tokens/s",
        groups=[
            Group(label=name, pairs=list(_pairs(_rows(*kinds))), band=bands.get(name))
            for name, kinds in groups.items()
        ],
    )


def _pairs(rows: list[Entry]) -> Iterator[tuple[float, float]]:
    """The published rate of a chip, and the one predicted without the run's source, of all fitted runs."""
    found = {s.run.id: s for s in published.scores()}
    for s in (found[one.id] for one in rows if one.id in found):
        rate = s.run.tokens_per_s_per_chip
        yield rate, rate * (1 + s.leave_one_out_error)


def _bands() -> Cells:
    """The coverage of leave-one-out prediction intervals."""
    for name, (experts, full) in BANDS.items():
        for known in (True, False):
            found = published.interval_coverage(experts, full=full, known=known).values()
            within = sum(inside for inside, _ in found) / sum(runs for _, runs in found)
            factor = f"{published.prediction_interval(experts, full=full, known=known):.2f}"
            yield name, "its engine" if known else "nothing", factor, str(len(found)), share(within, 0)


def _worst() -> Cells:
    for s in worst_predicted(published.scores()):
        where, work = f"{s.run.model.name}, {s.run.chips} {s.run.chip.name}", f"{s.run.P:,} + {s.run.G:,}"
        rates, errors = (s.published, s.predicted), (s.error, s.leave_one_out_error)
        yield s.run.id, where, work, *(f"{r:,.0f}" for r in rates), *(signed(error, 0) for error in errors)


PAGE = Page(
    name="serving",
    stem="serving-runs",
    values=numbers,
    tables={
        "classes": _classes,
        "bands": _bands,
        "decode": quantized_decode.rows,
        "constants": fitted_constants.serving_table,
        "worst": _worst,
        "sources": lambda: sources(published.scores()[: len(RUNS)]),
    },
    figure=figure,
    data={"predicted_serving_runs": lambda: data("inference_runs")},
)
