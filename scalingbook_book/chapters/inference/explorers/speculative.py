"""Explorer: the speedup of speculative decoding over the draft length and the batch size."""

from scalingbook_book.reader.explorers.parts import (
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
    spread,
)
from scalingbook_lib import inference, models
from scalingbook_lib.units import percent

MODELS = ("Llama 3 70B", "Llama 3.1 405B", "Llama 3 8B", "DeepSeek-V3")
MACHINES = ("TPU v5e 4x4", "TPU v5e 8x8", "TPU v5p 2x2x4", "TPU v6e 4x4", "H100 × 8", "B200 × 8")
MOST = 16


def checks(model: str, where: str, S: int, B: int) -> tuple[float, ...]:
    """Seconds of a step that verifies 1, 2, ... tokens of each of B sequences."""
    m, on, o = models.find(model), machine(where), spread(model, where, "int8", "int8")
    return tuple(inference.decode(m, on, o, batch=B, S=S, T=T).total_s for T in range(1, MOST + 2))


def room(model: str, where: str, S: int) -> int:
    """The largest batch that fits into memory."""
    o = spread(model, where, "int8", "int8")
    return inference.largest_batch(models.find(model), o, machine(where), S=S)


def _speculative(
    *, model: str, where: str, S: int, B: int, acceptance: float, draft: int, cost: float
) -> View:
    times = checks(model, where, S, B)

    def verify(tokens: int) -> float:
        return times[tokens - 1] / times[0]

    found = [inference.speculative(acceptance, K, cost=cost, verify=verify) for K in range(MOST + 1)]
    best = inference.best_draft(acceptance, cost=cost, verify=verify, most=MOST)
    one = found[draft]
    held = room(model, where, S)
    return View(
        _verdict(one, best, B)
        + (
            f" But the memory holds {f'only {pluralize(held, "sequence")}' if held else 'none of them'}."
            if held < B
            else ""
        ),
        (_gain(found, best, draft), _round(one, times[0])),
        (
            Readout("mean tokens per round", one.tokens),
            Readout("plain step", times[0], "s"),
            Readout("verification", times[draft], "s"),
            Readout("time per token", one.steps * times[0] / one.tokens, "s"),
            Readout("speedup", one.speed_up),
            Readout("largest batch", held, "", pluralize(held, "sequence")),
        ),
        columns=2,
    )


def _gain(found: list[inference.Speculation], best: inference.Speculation, draft: int) -> Chart:
    sizes = list(range(len(found)))
    free = [inference.speculative(one.acceptance, one.draft, cost=one.cost).speed_up for one in found]
    marks = (
        Curve("if verification were free", sizes, free, 5, dashed=True),
        Curve("with this batch", sizes, [one.speed_up for one in found], 0),
        Points("", [draft], [found[draft].speed_up], [f"{found[draft].speed_up:.3g}"], 1),
        Points("best", [best.draft], [best.speed_up], ["best"], 2),
        RefLine("no gain", 1.0, axis="y"),
    )
    y = Scale("speedup", "", "linear", 0.0)
    return Chart(Scale("draft length γ"), y, marks, title="Speedup over plain decode")


def _round(one: inference.Speculation, step_s: float) -> Bars:
    """The time of a round, and the time of plain steps for the same tokens."""
    rows = (f"a round: {one.tokens:.3g} tokens", f"plain: {one.tokens:.3g} tokens")
    series = (
        Series("draft", [one.cost * one.draft * step_s, 0.0], 1),
        Series("verification", [one.verify * step_s, 0.0], 0),
        Series("plain steps", [0.0, one.tokens * step_s], 5),
    )
    return Bars(Scale("time", "s"), rows, series, stacked=True, title="Time for the same number of tokens")


def _verdict(one: inference.Speculation, best: inference.Speculation, B: int) -> str:
    said = _said(one, B) if one.draft else f"{pluralize(B, 'sequence')}, no draft: plain decode"
    if best.draft == one.draft:
        return f"{said}. No other draft length is better."
    if not best.draft:
        return f"{said}. At this batch size, speculative decoding does not pay."
    return (
        f"{said}. The best draft length is {best.draft}, with which it is {best.speed_up:.3g} times as fast."
    )


def _said(one: inference.Speculation, B: int) -> str:
    tokens = "1 token" if one.tokens < 1.005 else f"{one.tokens:.3g} tokens"
    return (
        f"{pluralize(B, 'sequence')}, {pluralize(one.draft, 'draft token')} each, acceptance rate "
        f"{percent(one.acceptance)}: a round yields {tokens} per sequence, verification takes "
        f"{_check(one.verify)} a plain step, and generation is {one.speed_up:.3g} times as fast"
    )


def _check(verify: float) -> str:
    if verify < 1.02:
        return "as long as"
    return f"{percent(verify - 1)} longer than" if verify < 2 else f"{verify:.2g} times as long as"


SPECULATIVE = Explorer(
    key="inference.speculative",
    title="Speculative decoding: speedup over draft length and batch size",
    question="How many tokens should the draft model propose per round?",
    controls={
        "model": Choice("model", MODELS),
        "where": Choice("machine", MACHINES),
        "S": Slider("context length", 512, 131072, 2048, "pow2"),
        "B": Slider("sequences, B", 1, 512, 4, "log"),
        "acceptance": Slider("acceptance rate", 0.0, 0.98, 0.8, step=0.02),
        "draft": Slider("draft length γ", 0, MOST, 4),
        "cost": Slider("cost of a draft token, in plain steps", 0.0, 0.5, 0.14, step=0.01),
    },
    view=_speculative,
)
