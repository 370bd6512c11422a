"""The numbers and tables of the appendix on published inference runs."""

from statistics import mean

from scalingbook_book.reader.explorers.view import Scale
from scalingbook_lib import calibrated, inference
from scalingbook_lib.calibrated import factors
from scalingbook_lib.calibrated.factors import record
from scalingbook_lib.evidence import inference as published
from scalingbook_lib.evidence.inference import KINDS, InferenceScore
from scalingbook_lib.evidence.inference.efficiencies import CLASSES, SOFTWARE
from scalingbook_lib.evidence.inference.planned import RESERVE, STEP_TOKENS, planned
from scalingbook_lib.evidence.measured.inference_runs import REFUSED, RUNS, InferenceRun, find
from scalingbook_lib.evidence.scores import COVERAGE, signed
from scalingbook_lib.inference.shape import shape
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, si
from tools.published import Cells, Page, share, sources, worst_predicted

FROZEN = record("inference")
VALUES = FROZEN.values
EVERY = published.all_runs()
BANDS = {"dense": (False, True), "with experts": (True, True), "one batch at a time": (False, False)}
"""What a band is for: with experts or not, and whether servers are full."""
_QUOTED = {"gb_short": "inf-0048", "gb_long": "inf-0049", "b_short": "inf-0038", "b_long": "inf-0039"}


def score(id: str) -> InferenceScore:
    """The score of a run."""
    return next(s for s in published.scores() if s.run.id == id)


def numbers() -> dict[str, str]:
    """The numbers that the page's text quotes."""
    refused = sum(map(len, REFUSED.values()))
    factor = {
        f"band_{name.split()[-1]}": f"{published.prediction_interval(experts, full=full, known=True):.2f}"
        for name, (experts, full) in BANDS.items()
    }
    return factor | {
        "band_unseen": f"{published.prediction_interval(False):.2f}",
        "runs": str(len(EVERY)),
        "added": str(len(EVERY) - len(RUNS)),
        "models": str(len({run.model.name for run in EVERY})),
        "engines": str(len({run.software[0] for run in EVERY})),
        "figures": str(len(VALUES)),
        "refused": str(refused),
        "date": FROZEN.date,
        "rows": str(len(RUNS) + refused),
        "holds": share(COVERAGE, 0),
        "reserve": share(RESERVE, 0),
        "host": si(VALUES["scheduling: host_s"], "s", 2),
        "host_step": f"{4096 * VALUES['scheduling: host_s'] * 1e3:.0f} ms",
        "grace": f"{VALUES['Grace']:.1f}",
        "apart": share(VALUES["apart"], 0),
        "decode_out": share(published.total(KINDS[3], leave_one_out=True).mean, 0),
        "ref_miss": "{ref}`the end of this page <serving-runs-misses>`",
        "steady_dense": share(_steady(False)),
        "steady_experts": share(_steady(True)),
        "network": si(VALUES["network_s"], "s", 2),
        **_a100(),
        **_wave("inf-0140"),
        **_head(),
        **_misses(),
    }


def _a100() -> dict[str, str]:
    """Fitted overheads of single-sequence decode on one A100."""
    one = calibrated.serving(find("inf-0019").chip, BF16, "gpt-fast")
    lost = {"layer": one.layer_s, "fixed": one.fixed_s, "collective": one.collective_s}
    return {
        "weights_share": share(one.of("weights", BF16), 0),
        "dequantize": f"{VALUES['dequantize']:.1f}",
        "vector": si((chips.A100.vector_flops_per_s or 0) / 2),
        **{name: si(float(s), "s", 2) for name, s in lost.items()},
    }


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
    """The numbers of the last section, on the largest errors."""
    h100 = [s.error for s in published.scores() if s.run.chip.name == "H100" and "Scout" in s.run.model.name]
    neuron = [score(id).error for id in ("ninf-0272", "ninf-0276")]
    far = {"card_error": "inf-0303", "scout_b200": "inf-0043", "scout_h200": "inf-0063"}
    return {
        **{name: f"{find(id).tokens_per_s:,.0f}" for name, id in _QUOTED.items()},
        **{name: _said(score(id).error) for name, id in far.items()},
        "embedding": _said(score("inf-0339").error),
        "gb_error": signed(score("inf-0048").error, 0),
        "h100_error": _said(mean(h100)),
        "neuron": f"{1 + min(neuron):.1f} and {1 + max(neuron):.1f} times",
        "exposed": share(VALUES["exposed"], 0),
        "mtnlg_out": _said(score("inf-0015").leave_one_out_error),
    }


def _said(error: float) -> str:
    return f"{share(abs(error), 0)} too {'fast' if error > 0 else 'slow'}"


def _kinds() -> Cells:
    for kind in KINDS:
        peak = mean(s.peak_error for s in published.scores() if s.kind == kind)
        ways = {
            kind: published.total(kind),
            "source left out": published.total(kind, leave_one_out=True),
            "software left out": published.total(kind, leave_one_out=True, known=False),
        }
        for name, one in ways.items():
            errors = (f"**{share(one.mean)}**", share(one.median), share(one.p90), signed(one.bias))
            yield name, str(one.runs), *errors, signed(peak, 0) if name == kind else ""


def _bands() -> Cells:
    """The coverage of leave-one-out prediction intervals."""
    for name, (experts, full) in BANDS.items():
        for known in (True, False):
            found = published.interval_coverage(experts, full=full, known=known).values()
            within = sum(inside for inside, _ in found) / sum(runs for _, runs in found)
            factor = f"{published.prediction_interval(experts, full=full, known=known):.2f}"
            yield name, "its software" if known else "nothing", factor, str(len(found)), share(within, 0)


def _decode() -> Cells:
    """Decode steps of a single sequence, in milliseconds."""
    for run in RUNS:
        if run.family == "gpt-fast":
            yield run.model.name, str(run.weights), str(run.chips), *(f"{1e3 * s:.1f}" for s in _parts(run))


def _parts(run: InferenceRun) -> tuple[float, ...]:
    efficiency, p = calibrated.serving(run.chip, run.compute, run.software[0]), planned(run)
    step = inference.decode(run.model, p.machine, p.layout, batch=1, S=run.S or 0, efficiency=efficiency)
    held = shape(run.model, p.layout)
    stored = held.projections.stored + held.mlp.stored + held.head.stored
    narrow = run.weights.bytes < run.compute.bytes
    widening = stored * efficiency.of("dequantize_s", run.weights) if narrow else 0.0
    reading = step.terms["weights"] - widening
    sent = sum(step.collectives.values())
    rest = step.total_s - reading - widening - sent
    bytes_s = stored * run.weights.bytes / run.chip.hbm_bytes_per_s
    return reading, widening, rest, sent, step.total_s, 1 / run.tokens_per_s, bytes_s


def _classes() -> Cells:
    for name, one in CLASSES.items():
        told = si if "_s" in name else lambda value, *_: f"{value:.2f}"
        yield name, told(one.value, "s", 2), f"{one.spread:.2f}", told(VALUES[name], "s", 2)


def _chips() -> Cells:
    """The fitted matmul share and read factor of each chip, with its number of runs."""
    for line in sorted(name for name in VALUES if name.endswith(" bits") and name not in CLASSES):
        runs = [run for run in EVERY if factors.figure_key(run.chip, run.compute.name) == line]
        attained = factors.kernel_share(runs[0].chip, runs[0].compute.name)
        reads = VALUES[f"{runs[0].chip.name}: reads"]
        yield line, str(len(runs)), f"{attained:.2f}", f"{VALUES[line]:.2f}", f"{reads:.2f}"


def _software() -> Cells:
    """The overheads of each software relative to the mean of its kind."""
    for name in sorted({run.software[0] for run in EVERY}):
        runs = sum(run.software[0] == name for run in EVERY)
        figures = (VALUES.get(f"{name}: {what}") for what in SOFTWARE)
        yield name, str(runs), *(f"{value:.2f}" if value else "" for value in figures)


def _worst() -> Cells:
    for s in worst_predicted(published.scores()):
        where, work = f"{s.run.model.name}, {s.run.chips} {s.run.chip.name}", f"{s.run.P:,} + {s.run.G:,}"
        rates, errors = (s.published, s.predicted), (s.error, s.leave_one_out_error)
        yield s.run.id, where, work, *(f"{r:,.0f}" for r in rates), *(signed(error, 0) for error in errors)


PAGE = Page(
    name="serving",
    values=numbers,
    tables={
        "kinds": _kinds,
        "bands": _bands,
        "decode": _decode,
        "classes": _classes,
        "chips": _chips,
        "software": _software,
        "worst": _worst,
        "sources": lambda: sources(published.scores()[: len(RUNS)]),
    },
    title="Predicted over published tokens a second.",
    scores=published.scores,
    across=lambda s: s.run.tokens_per_s_per_chip,
    scale=Scale("published, a chip", "tokens/s", "log", 1, 60_000),
    kinds={
        "A100": "A100",
        "H100": "Hopper",
        "H200": "Hopper",
        "B200": "Blackwell",
        "GB200": "Blackwell",
        "RTX": "RTX PRO 6000",
    },
)
