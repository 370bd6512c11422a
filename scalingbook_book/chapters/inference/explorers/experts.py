"""How is a model with experts served? All chips as one group, or sequences apart and experts spread."""

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
ONE, APART = "one tensor group", "sequences apart"
_PARTS = {"weights": 0, "arithmetic": 1, "KV": 2, "exchange of tokens": 3, "other links": 4}
_OWN = {
    "weights": "weights",
    "matmul": "arithmetic",
    "attention": "arithmetic",
    "activations": "arithmetic",
    "KV": "KV",
}
_SIZES = [2**e for e in range(13)]


def layouts(model: models.Transformer, where: str, weights: str) -> dict[str, inference.Layout]:
    """Both ways to use all chips, where the model's sizes allow them; the cache is of 8 bits."""
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
    """A decode step over all chips; None where there is no such layout."""
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
        found[_OWN.get(name, "exchange of tokens" if name in exchanged else "other links")] += s
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
            Readout.percent("experts that some token visits", share),
            *(Readout(f"{how}: room for", n, "", pluralize(n, "sequence")) for how, n in room.items()),
        ),
        columns=2,
    )


def _held(
    m: models.Transformer, where: str, steps: dict[str, inference.InferenceStep], B: int, S: int
) -> Bars:
    """A latent cache is copied to every chip of a group; weights of attention to every group."""
    on = machine(where)
    found = [inference.memory(m, s.layout, on, batch=B, S=S) for s in steps.values()]
    series = (
        Series("weights", [one.weights for one in found], 0),
        Series("cache", [one.kv for one in found], 2),
    )
    refs = (RefLine("HBM", on.chip.hbm_bytes),)
    title = "What each chip holds"
    return Bars(Scale("bytes of a chip", "B"), list(steps), series, stacked=True, refs=refs, title=title)


def _bars(steps: dict[str, inference.InferenceStep]) -> Bars:
    found = {how: parts(step) for how, step in steps.items()}
    series = [Series(name, [p[name] for p in found.values()], color) for name, color in _PARTS.items()]
    return Bars(
        Scale("a decode step", "s"), list(found), series, stacked=True, title="Both ways, part by part"
    )


def _rates(
    model: str, where: str, weights: str, *, S: int, B: int, steps: dict[str, inference.InferenceStep]
) -> Chart:
    n, marks = machine(where).chips, []
    for color, (how, step) in enumerate(steps.items()):
        sweep = [(b, s) for b in _SIZES if (s := stepped(model, where, how, weights=weights, B=b, S=S))]
        marks.append(Curve(how, [b for b, _ in sweep], [b / s.total_s / n for b, s in sweep], color))
        marks.append(Points("", [B], [B / step.total_s / n], [], color))
    x, y = Scale("sequences at once, B", "", "pow2"), Scale("tokens/s of each chip", "", "log")
    return Chart(x, y, marks, title="What the batch buys")


def _share(m: models.Transformer, B: float) -> float:
    assert m.experts
    return active_expert_share(m.experts.E, m.experts.k, B)


def _visits(m: models.Transformer, B: int) -> Chart:
    """More sequences read more of the experts, until all are read."""
    here = Points("", [B], [_share(m, B)], [percent(_share(m, B))], 0)
    line = Curve("experts read", _SIZES, [_share(m, b) for b in _SIZES], 0)
    x, y = Scale("sequences at once, B", "", "pow2"), Scale("share of the experts", "", "linear", 0.0, 1.0)
    return Chart(x, y, (line, here), title="Whose weights must be read")


def _verdict(steps: dict[str, inference.InferenceStep], room: dict[str, int], B: int) -> str:
    if not steps:
        return "The model's sizes allow neither way on so many chips."
    best = min(steps, key=lambda how: steps[how].total_s)
    said = f"{pluralize(B, 'sequence')}: with {best} a step takes {si(steps[best].total_s, 's')}"
    for how, step in steps.items():
        if how != best:
            said += f", with {how} {step.total_s / steps[best].total_s:.3g} times as long"
    short = [f"{f'only {room[how]:,}' if room[how] else 'none'} with {how}" for how in steps if room[how] < B]
    return f"{said}. The memory has room for {', '.join(short) or 'all of them'}."


EXPERTS = Explorer(
    key="inference.experts",
    title="Serving a model with experts",
    question="Should all chips split every matrix, or each serve sequences of its own?",
    controls={
        "model": Choice("model", MODELS),
        "where": Choice("machine", MACHINES, "H200 × 16"),
        "weights": Choice("weights", tuple(TYPES), "int8"),
        "S": Slider("tokens of context", 512, 131072, 4096, "pow2"),
        "B": Slider("sequences, B", 1, 4096, 256, "pow2"),
    },
    view=_experts,
)
