"""Explorer: a mixture of experts with tensor parallelism, or with DP attention and expert parallelism."""

from typing import Any

from scalingbook_book.reader.explorers.parts import (
    TYPES,
    Bars,
    Chart,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
    machine,
    pluralize,
    stored,
)
from scalingbook_lib import inference, models
from scalingbook_lib.models.arithmetic.experts import active_expert_share
from scalingbook_lib.units import percent, si

MODELS = ("DeepSeek-V3", "Qwen3 235B-A22B", "Mixtral 8x7B", "gpt-oss 120B")
MACHINES = ("H200 × 8", "H200 × 16", "H200 × 64", "B200 × 8", "TPU v5e 8x8", "TPU v5p 4x4x4", "TPU v6e 8x8")
ONE, APART = "tensor parallelism", "DP attention + EP"
_PARTS = {"weights": 0, "compute": 1, "KV": 2, "dispatch and combine": 3, "other collectives": 4}
_OWN = {
    "weights": "weights",
    "matmul": "compute",
    "attention": "compute",
    "activations": "compute",
    "KV": "KV",
}
_SIZES = [2**e for e in range(13)]


def layouts(model: models.Transformer, where: str, weights: str) -> dict[str, inference.Layout]:
    """Both layouts over all chips, as far as the model's sizes allow them, with an 8-bit cache."""
    on = machine(where)
    n, E = on.chips, model.experts.E if model.experts else 1
    types: dict[str, Any] = {"weights": stored(weights, on), "kv": stored("int8", on)}
    ep = max(d for d in range(1, n + 1) if n % d == 0 and E % d == 0)
    heads = max(d for d in range(1, n + 1) if n % d == 0 and model.K % d == 0)
    found = {APART: inference.Layout(tp=n, ep=ep, attention_dp=n, **types)}
    if n <= model.N:
        found[ONE] = inference.Layout(tp=n, kv_batch=1 if model.latent else n // heads, **types)
    return found


def stepped(
    model: str, where: str, how: str, *, weights: str, B: int, S: int
) -> inference.InferenceStep | None:
    """A decode step on all chips, or None if the layout does not exist."""
    m = models.find(model)
    try:
        return inference.decode(m, machine(where), layouts(m, where, weights)[how], batch=B, S=S)
    except (inference.LayoutError, KeyError):
        return None


def parts(step: inference.InferenceStep) -> dict[str, float]:
    """Seconds by `_PARTS`."""
    found = dict.fromkeys(_PARTS, 0.0)
    exchanged = {row.name for row in step.traffic if row.what == "AllToAll"}
    for name, s in step.terms.items():
        found[_OWN.get(name, "dispatch and combine" if name in exchanged else "other collectives")] += s
    return found


def _experts(*, model: str, where: str, weights: str, S: int, B: int) -> View:
    steps = {how: s for how in (ONE, APART) if (s := stepped(model, where, how, weights=weights, B=B, S=S))}
    m, on = models.find(model), machine(where)
    room = {how: inference.largest_batch(m, s.layout, on, S=S, reserve=0.1) for how, s in steps.items()}
    share = _share(m, B)
    return View(
        _verdict(steps, room, B),
        (
            _bars(steps),
            _held(m, where, steps, B, S),
            _rates(model, where, weights, S=S, B=B, steps=steps),
            _visits(m, B),
        ),
        (
            Readout.percent("share of experts that are activated", share),
            *(Readout(f"{how}: largest batch", n, "", pluralize(n, "sequence")) for how, n in room.items()),
        ),
        columns=2,
    )


def _held(
    m: models.Transformer, where: str, steps: dict[str, inference.InferenceStep], B: int, S: int
) -> Bars:
    """Memory per chip: tensor parallelism replicates a latent cache, data-parallel attention its weights."""
    on = machine(where)
    found = [inference.memory(m, s.layout, on, batch=B, S=S) for s in steps.values()]
    series = (
        Series("weights", [one.weights for one in found], 0),
        Series("cache", [one.kv for one in found], 2),
    )
    refs = (RefLine("HBM", on.chip.hbm_bytes),)
    title = "Memory per chip"
    return Bars(Scale("bytes per chip", "B"), list(steps), series, stacked=True, refs=refs, title=title)


def _bars(steps: dict[str, inference.InferenceStep]) -> Bars:
    found = {how: parts(step) for how, step in steps.items()}
    series = [Series(name, [p[name] for p in found.values()], color) for name, color in _PARTS.items()]
    return Bars(Scale("decode step", "s"), list(found), series, stacked=True, title="Parts of a decode step")


def _rates(
    model: str, where: str, weights: str, *, S: int, B: int, steps: dict[str, inference.InferenceStep]
) -> Chart:
    n, marks = machine(where).chips, []
    for color, (how, step) in enumerate(steps.items()):
        sweep = [(b, s) for b in _SIZES if (s := stepped(model, where, how, weights=weights, B=b, S=S))]
        marks.append(Curve(how, [b for b, _ in sweep], [b / s.total_s / n for b, s in sweep], color))
        marks.append(Points("", [B], [B / step.total_s / n], [], color))
    x, y = Scale("sequences, B", "", "pow2"), Scale("tokens/s per chip", "", "log")
    return Chart(x, y, marks, title="Throughput")


def _share(m: models.Transformer, B: float) -> float:
    assert m.experts
    return active_expert_share(m.experts.E, m.experts.k, B)


def _visits(m: models.Transformer, B: int) -> Chart:
    """The share of experts that some token activates, over the batch size."""
    here = Points("", [B], [_share(m, B)], [percent(_share(m, B))], 0)
    line = Curve("activated experts", _SIZES, [_share(m, b) for b in _SIZES], 0)
    x, y = Scale("sequences, B", "", "pow2"), Scale("share of the experts", "", "linear", 0.0, 1.0)
    return Chart(x, y, (line, here), title="Experts whose weights are read")


def _verdict(steps: dict[str, inference.InferenceStep], room: dict[str, int], B: int) -> str:
    if not steps:
        return "Neither layout divides the model evenly over so many chips."
    best = min(steps, key=lambda how: steps[how].total_s)
    said = f"{pluralize(B, 'sequence')}: with {best}, a step takes {si(steps[best].total_s, 's')}"
    for how, step in steps.items():
        if how != best:
            said += f", and with {how}, it takes {step.total_s / steps[best].total_s:.3g} times as long"
    short = [
        f"{f'only {pluralize(room[how], "sequence")}' if room[how] else 'none'} with {how}"
        for how in steps
        if room[how] < B
    ]
    fits = " and ".join(short) or "all of these sequences"
    said = f"{said}. The memory holds {fits}."
    if any("attention" in step.terms and "KV" not in step.terms for step in steps.values()):
        said += (
            " A KV time of zero means that attention is compute-bound:"
            " reading the cache takes less time than computing with it."
        )
    return said


EXPERTS = Explorer(
    key="inference.experts",
    title="Serving a mixture of experts",
    question="Tensor parallelism, or data-parallel attention with expert parallelism?",
    controls={
        "model": Choice("model", MODELS),
        "where": Choice("machine", MACHINES, "H200 × 16"),
        "weights": Choice("weight dtype", tuple(TYPES), "int8"),
        "S": Slider("context length", 512, 131072, 4096, "pow2"),
        "B": Slider("sequences, B", 1, 4096, 256, "pow2"),
    },
    view=_experts,
)
