"""What is filled into the appendix on predicted and published inference: its numbers and its tables."""

from statistics import mean

from scalingbook_lib.evidence.tables import frozen

from scalingbook_lib import inference
from scalingbook_lib.evidence import inference as published
from scalingbook_lib.evidence.inference import KINDS, InferenceScore
from scalingbook_lib.evidence.inference.efficiencies import BARE, EXPECTED, TORUS, key
from scalingbook_lib.evidence.inference.planned import RESERVE, STEP_TOKENS, planned
from scalingbook_lib.evidence.measured.inference_runs import REFUSED, RUNS, InferenceRun, find
from scalingbook_lib.evidence.scores import HOLDS, signed
from scalingbook_lib.inference.shape import shape
from scalingbook_lib.machines import chips
from scalingbook_lib.reader.explorers.view import Scale
from scalingbook_lib.units import si
from tools.published import Cells, Page, bands, share, sources, summaries, within, worst

FROZEN = frozen("inference")
TABLE = FROZEN.table
TIMES = ("layer_s", "expert_layer_s", "collective_s", "fixed_s", "sequence_s", "host_s")
_BARE = ("A100", "A100, 330 W", "TPU v4", "TPU7x")  # chips whose runs had no scheduler
_QUOTED = {"gb_short": "inf-0048", "gb_long": "inf-0049", "b_short": "inf-0038", "b_long": "inf-0039"}


def score(id: str) -> InferenceScore:
    """The score of a run."""
    return next(s for s in published.scores() if s.run.id == id)


def numbers() -> dict[str, str]:
    """What the words of the page quote."""
    refused = sum(map(len, REFUSED.values()))
    gpus = [row for (chip, _), row in TABLE.items() if chip not in ("GB200", *_BARE)]
    read = [row[name] for row in TABLE.values() for name in ("weights", "kv")]
    no_host = FROZEN.tried["no_host"]
    alone = (abs(s.left_out_error) for s in published.scores() if s.kind == KINDS[3])
    return {
        "runs": str(len(RUNS)),
        "models": str(len({run.model.name for run in RUNS})),
        "engines": str(len({run.engine for run in RUNS})),
        "lines": str(len(TABLE)),
        "refused": _word(refused),
        "date": FROZEN.date,
        "rows": str(len(RUNS) + refused),
        "band": f"{published.band(False):.2f}",
        "band_experts": f"{published.band(True):.2f}",
        "holds": share(HOLDS, 0),
        "reserve": share(RESERVE, 0),
        "host": within([row["host_s"] for row in gpus], "s"),
        "host_step": f"{4096 * TABLE['B200', 'fp4']['host_s'] * 1e3:.0f} ms",
        "decode_out": share(max(alone), 0),
        "pointwise": within([row["pointwise"] for row in gpus], "B"),
        "ref_miss": "{ref}`the end of this page <serving-runs-misses>`",
        "steady_dense": share(_steady(False)),
        "steady_experts": share(_steady(True)),
        "no_host_dense": share(no_host["dense"]),
        "no_host_experts": share(no_host["experts"]),
        "read": f"{min(read):.2f} to {max(read):.2f}",
        "network": si(TABLE["A100", "fp16"]["network_s"], "s", 2),
        **_a100(),
        **_wave("inf-0140"),
        **_head(),
        **_misses(),
        **_expected(),
    }


def _a100() -> dict[str, str]:
    """What decoding one sequence on one chip shows."""
    a100 = TABLE["A100, 330 W", "bf16"]
    lost = {"layer": "layer_s", "fixed": "fixed_s", "collective": "collective_s"}
    return {
        "weights_share": share(a100["weights"], 0),
        "dequantize": f"{a100['dequantize']:.1f}",
        "vector": si((chips.A100.vector_flops_per_s or 0) / 2),
        **{name: si(a100[which], "s", 2) for name, which in lost.items()},
    }


def _steady(experts: bool) -> float:
    """The mean error of `inference.serve` on the runs of servers."""
    return mean(_steady_error(run) for run in RUNS if run.kind == "serving" and run.experts == experts)


def _steady_error(run: InferenceRun) -> float:
    p, efficiency = planned(run), published.calibrated(run.chip, run.compute, run.engine)
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


def _word(n: int) -> str:
    return ("No", "One", "Two", "Three", "Four", "Five")[n] if n < 6 else str(n)


def _wave(id: str) -> dict[str, str]:
    """Waves of a run."""
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
    h100 = [s.left_out_error for s in published.scores() if s.run.chip.name == "H100" and s.run.experts]
    tpu = [s.left_out_error for s in published.scores() if s.run.family == "vllm-tpu-fp8"]
    far = {"card_error": "inf-0303", "scout_b200": "inf-0043", "scout_h200": "inf-0063"}
    return {
        **{name: f"{find(id).tokens_per_s:,.0f}" for name, id in _QUOTED.items()},
        **{name: _said(score(id).error) for name, id in far.items()},
        "embedding": _said(score("inf-0339").error),
        "gb_error": signed(score("inf-0048").error, 0),
        "h100_layer": si(TABLE["H100", "fp8"]["expert_layer_s"], "s", 2),
        "h200_layer": si(TABLE["H200", "fp8"]["expert_layer_s"], "s", 2),
        "h100_out": share(sum(h100) / len(h100), 0),
        "tpu_out": share(sum(tpu) / len(tpu), 0),
        "exposed": share(TABLE["TPU v4", "bf16"]["exposed"], 0),
        "mtnlg_out": _said(score("inf-0015").left_out_error),
    }


def _said(error: float) -> str:
    return f"{share(abs(error), 0)} too {'fast' if error > 0 else 'slow'}"


def _kinds() -> Cells:
    for kind in KINDS:
        peak = mean(s.peak_error for s in published.scores() if s.kind == kind)
        for out in (False, True):
            one = published.total(kind, out)
            errors = (f"**{share(one.mean)}**", share(one.median), share(one.p90), signed(one.bias))
            yield one.name, str(one.runs), *errors, "" if out else signed(peak, 0)


def _decode() -> Cells:
    """Steps of one sequence, in milliseconds."""
    for run in RUNS:
        if run.family == "gpt-fast":
            yield run.model.name, str(run.weights), str(run.chips), *(f"{1e3 * s:.1f}" for s in _parts(run))


def _parts(run: InferenceRun) -> tuple[float, ...]:
    efficiency, p = published.calibrated(run.chip, run.compute, run.engine), planned(run)
    step = inference.decode(run.model, p.machine, p.layout, B=1, S=run.S or 0, efficiency=efficiency)
    held = shape(run.model, p.layout)
    stored = held.projections.stored + held.mlp.stored + held.head.stored
    narrow = run.weights.bytes < run.compute.bytes
    widening = stored * efficiency.of("dequantize_s", run.weights) if narrow else 0.0
    reading = step.terms["weights"] - widening
    sent = sum(step.collectives.values())
    rest = step.total_s - reading - widening - sent
    bytes_s = stored * run.weights.bytes / run.chip.hbm_bytes_per_s
    return reading, widening, rest, sent, step.total_s, 1 / run.tokens_per_s, bytes_s


def _expected() -> dict[str, str]:
    """Two cells for each class: its value, and the spread of that."""
    found = {}
    for name, one in EXPECTED.items():
        value, also = _value(name, one.value), TORUS.get(name) or BARE.get(name)
        if also:
            where = "on tori" if name in TORUS else "without a scheduler"
            value += f" ({_value(name, also.value)} {where})"
        found[f"expected_{name}"] = f"{value} | {one.spread:.2f}"
    return found


def _value(name: str, value: float) -> str:
    if name.endswith("_s"):
        return si(value, "s", 2)
    return si(value, "B", 2) if name == "pointwise" else f"{value:.2g}" if value >= 1 else f"{value:.2f}"


def _rates() -> Cells:
    names = ("matmul", "experts", "attention", "weights", "kv")
    for (chip, compute), row in sorted(TABLE.items()):
        runs = sum(key(run) == (chip, compute) for run in RUNS)
        links = row.get("torus") or row.get("domain")
        shares = (f"{row[name]:.2f}" if name in row else "" for name in names)
        yield chip, compute, str(runs), *shares, f"{links:.2f}" if links else ""


def _times() -> Cells:
    for (chip, compute), row in sorted(TABLE.items()):
        yield chip, compute, *(si(row[name], "s", 2) if name in row else "" for name in TIMES)


def _worst() -> Cells:
    for s in worst(published.scores()):
        where, work = f"{s.run.model.name}, {s.run.chips} {s.run.chip.name}", f"{s.run.P:,} + {s.run.G:,}"
        rates, errors = (s.published, s.predicted), (s.error, s.left_out_error)
        yield s.run.id, where, work, *(f"{r:,.0f}" for r in rates), *(signed(error, 0) for error in errors)


PAGE = Page(
    name="serving",
    told=numbers,
    tables={
        "kinds": _kinds,
        "bands": lambda: bands(published.held_by_band),
        "decode": _decode,
        "rates": _rates,
        "times": _times,
        "by_source": lambda: summaries(published.by_source()),
        "worst": _worst,
        "sources": lambda: sources(published.scores()),
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
