"""The tables of the appendix on predicted and published inference, a function for each."""

from collections.abc import Iterator
from statistics import mean

from scalingbook_lib import inference
from scalingbook_lib.evidence import inference as published
from scalingbook_lib.evidence.inference.fit import BARE, EXPECTED, TORUS, key
from scalingbook_lib.evidence.inference.planned import planned
from scalingbook_lib.evidence.measured.inference_runs import RUNS, InferenceRun
from scalingbook_lib.inference.shape import shape
from scalingbook_lib.units import si
from tools.training_tables import share, signed, table

WHAT = {
    "matmul": ("products", "of the matrix unit's peak"),
    "experts": ("experts", "the same, for their products"),
    "attention": ("attention", "the same in 16 bits, for prompts"),
    "weights": ("weights", "of the memory's rate, for reading them"),
    "kv": ("cache", "the same, for keys and values"),
    "pointwise": ("pointwise", "a second, of norms, activations and copies for experts"),
    "torus": ("torus", "of the links' rate"), "domain": ("domain", "the same, under one switch"),
    "network": ("network", "the same, between hosts"),
    "exposed": ("exposed", "of collectives on a torus; elsewhere all is"),
    "dequantize": ("widening", "instructions for a weight stored narrower than multiplied"),
    "ramp": ("ramp", "tokens that a product takes longer"),
    "layer_s": ("a layer", "lost with each"), "expert_layer_s": ("with experts", "lost besides, with each"),
    "collective_s": ("a collective", "lost with each"),
    "network_s": ("between hosts", "lost besides, with each collective"),
    "fixed_s": ("a step", "lost with each"), "sequence_s": ("a sequence", "lost with each, in a step"),
    "host_s": ("host", "a step is no shorter, for each of its sequences"),
}  # fmt: skip
TIMES = ("layer_s", "expert_layer_s", "collective_s", "fixed_s", "sequence_s", "host_s")


def tables() -> dict[str, str]:
    """Every table by its name in the page."""
    made = {"kinds": _kinds(), "bands": _bands(), "decode": _decode(), "expected": _expected(),
            "rates": _rates(), "times": _times(), "by_source": _by_source(), "worst": _worst(),
            "sources": _sources()}  # fmt: skip
    return {name: table(rows) for name, rows in made.items()}


def _kinds() -> Iterator[tuple[str, ...]]:
    for kind in published.KINDS:
        peak = mean(s.peak_error for s in published.scores() if s.kind == kind)
        for out in (False, True):
            one = published.total(kind, out)
            name, mean_error = f"{kind}{', source left out' if out else ''}", f"**{share(one.mean)}**"
            yield (name, str(one.runs), mean_error, share(one.median), share(one.p90), signed(one.bias),
                   "" if out else signed(peak, 0))  # fmt: skip


def _bands() -> Iterator[tuple[str, ...]]:
    for experts, name in ((False, "dense"), (True, "with experts")):
        found = published.held_by_band(experts).values()
        within = sum(inside for inside, _ in found) / sum(runs for _, runs in found)
        yield name, str(len(found)), share(within, 0), share(mean(i / runs for i, runs in found), 0)


def _decode() -> Iterator[tuple[str, ...]]:
    """Steps of one sequence, in milliseconds."""
    for run in RUNS:
        if run.family == "gpt-fast":
            yield run.model.name, str(run.weights), str(run.chips), *(f"{ms:.1f}" for ms in _parts(run))


def _parts(run: InferenceRun) -> tuple[float, ...]:
    efficiency, p = published.calibrated(run.chip, run.compute, run.engine), planned(run)
    step = inference.decode(run.model, p.machine, p.layout, B=1, S=run.S or 0, efficiency=efficiency)
    held, terms = shape(run.model, p.layout), step.terms
    stored = held.projections.stored + held.mlp.stored + held.head.stored
    narrow = run.weights.bytes < run.compute.bytes
    widening = stored * efficiency.of("dequantize_s", run.weights) if narrow else 0.0
    reading = terms["weights"] - widening
    sent = sum(step.collectives.values())
    rest = step.total_s - reading - widening - sent
    bytes_s = stored * run.weights.bytes / run.chip.hbm_bytes_per_s
    return tuple(
        1e3 * s for s in (reading, widening, rest, sent, step.total_s, 1 / run.tokens_per_s, bytes_s)
    )


def _expected() -> Iterator[tuple[str, ...]]:
    for name, (short, words) in WHAT.items():
        one, also = EXPECTED[name], TORUS.get(name) or BARE.get(name)
        value = _value(name, one.value)
        if also:
            where = "on tori" if name in TORUS else "without a scheduler"
            value += f" ({_value(name, also.value)} {where})"
        yield short, words, value, f"{one.spread:.2f}"


def _value(name: str, value: float) -> str:
    if name.endswith("_s"):
        return si(value, "s", 2)
    return si(value, "B", 2) if name == "pointwise" else f"{value:.2g}" if value >= 1 else f"{value:.2f}"


def _rates() -> Iterator[tuple[str, ...]]:
    names = ("matmul", "experts", "attention", "weights", "kv")
    for (chip, compute), row in sorted(published.TABLE.items()):
        runs = sum(key(run) == (chip, compute) for run in RUNS)
        links = row.get("torus") or row.get("domain")
        shares = (f"{row[name]:.2f}" if name in row else "" for name in names)
        yield chip, compute, str(runs), *shares, f"{links:.2f}" if links else ""


def _times() -> Iterator[tuple[str, ...]]:
    for (chip, compute), row in sorted(published.TABLE.items()):
        yield chip, compute, *(si(row[name], "s", 2) if name in row else "" for name in TIMES)


def _by_source() -> Iterator[tuple[str, ...]]:
    for fitted, out in published.by_source():
        yield (fitted.name, str(fitted.runs), share(fitted.mean), signed(fitted.bias),
               share(out.mean), signed(out.bias))  # fmt: skip


def _worst(many: int = 16) -> Iterator[tuple[str, ...]]:
    for s in sorted(published.scores(), key=lambda s: -abs(s.error))[:many]:
        where = f"{s.run.model.name}, {s.run.chips} {s.run.chip.name}"
        yield (s.run.id, where, f"{s.run.P:,} + {s.run.G:,}", f"{s.run.tokens_per_s:,.0f}",
               f"{s.predicted:,.0f}", signed(s.error, 0), signed(s.left_out_error, 0))  # fmt: skip


def _sources() -> Iterator[tuple[str, ...]]:
    for name, run in sorted({run.family: run for run in RUNS}.items()):
        yield name, f"[{run.source.text}]({run.source.url})", run.note
