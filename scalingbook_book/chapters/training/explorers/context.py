"""How small may the pieces of a sequence be? Ring attention, gathered keys and Ulysses over context ways."""

from functools import lru_cache

from scalingbook_book.reader.explorers.parts import (
    NETWORKED,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    Scale,
    Slider,
    View,
    switched,
)
from scalingbook_lib import models, rules, training
from scalingbook_lib.machines import Machine, Slice, chips
from scalingbook_lib.training import Plan, TrainingStep
from scalingbook_lib.units import count, si

CHIPS = tuple(n for n in NETWORKED if not (t := chips.KNOWN[n].torus) or t.dims == 3)
MODELS = ("LLaMA-3 8B", "LLaMA-3 70B", "LLaMA-3 405B", "Qwen3 32B", "LLaMA-2 7B", "GPT-2 XL")
WAYS = {"ring": "ring", "gathered keys": "gather", "Ulysses": "ulysses"}
_SIZES = (4, 8, 16, 32, 64)


def machine(chip: str, C: int) -> Machine:
    """Context over one axis of a torus, the only one of that size, or over C neighbors of a cluster."""
    on = chips.find(chip)
    other = "8x8" if C in (4, 16) else "4x4"
    return Slice.of(on, f"{other}x{C}") if on.torus else switched(on, 16 * C)


@lru_cache(maxsize=1024)
def step(model: str, chip: str, T: int, C: int, way: str) -> TrainingStep:
    """One sequence for each data rank; the weights are copied, as only attention matters here."""
    on = machine(chip, C)
    ranks = on.chips // C
    plan = Plan(dp=ranks, cp=C, zero=0, context=WAYS[way])
    return training.step(models.find(model), on, plan, batch=ranks, T=T)


def sent(made: TrainingStep) -> float:
    """Seconds of a step's context collectives, hidden or not."""
    return sum(row.seconds for row in made.traffic if row.axes == "C")


def _context(*, model: str, chip: str, T: int, C: int, way: str) -> View:
    here, m = step(model, chip, T, C, way), models.find(model)
    attention = here.math["attention"]
    ring = _closed(m, chip)
    return View(
        _verdict(here, way, T=T, C=C, sent_s=sent(here), attention_s=attention),
        (_chart(model, chip, T, C, way),),
        (
            Readout("tokens of a sequence on a chip", T / C, "", count(T // C)),
            *ring,
            Readout("sent over attention", sent(here) / attention, "×"),
            Readout("sent in a step, for", sent(here), "s"),
        ),
    )


def _closed(m: models.Transformer, chip: str) -> tuple[Readout, ...]:
    on = chips.find(chip)
    if not on.torus:
        return ()
    least = rules.context_parallel_tokens(m.G, on)
    return (Readout("a ring is free from", least, "", f"{count(round(least))} tokens"),)


def _chart(model: str, chip: str, T: int, C: int, way: str) -> Chart:
    attention = [step(model, chip, T, size, "ring").math["attention"] for size in _SIZES]
    shown = {"ring": "ring, or gathered keys", "Ulysses": "Ulysses"}
    curves = {name: [_sent_or_none(model, chip, T, size, name) for size in _SIZES] for name in shown}
    here = sent(step(model, chip, T, C, way))
    return Chart(
        Scale("context ways", "", "pow2", _SIZES[0], _SIZES[-1]),
        Scale("time in a step", "s", "log"),
        (
            Curve("attention", _SIZES, attention, 0, dashed=True),
            *(Curve(shown[name], _SIZES, ys, i + 1) for i, (name, ys) in enumerate(curves.items())),
            Points("", [C], [here], [si(here, "s")], 2 if way == "Ulysses" else 1),
        ),
    )


def _sent_or_none(model: str, chip: str, T: int, C: int, way: str) -> float:
    """A way that the heads do not allow leaves a gap."""
    try:
        return sent(step(model, chip, T, C, way))
    except ValueError:
        return float("nan")


def _verdict(here: TrainingStep, way: str, *, T: int, C: int, sent_s: float, attention_s: float) -> str:
    names = {
        "ring": "the ring of keys and values",
        "gathered keys": "gathering keys and values",
        "Ulysses": "exchanging tokens for heads",
    }
    said = f"With {count(T // C)} tokens on each of {C} chips, {names[way]} takes {si(sent_s, 's')} of a step"
    beside = f"the attention beside it {si(attention_s, 's')}"
    if way != "ring":
        return f"{said}, {beside}; it is waited for."
    if sent_s <= attention_s:
        return f"{said}, {beside}: it can be hidden."
    return f"{said}, {beside}: only the rest of the layer can hide what is left."


CONTEXT = Explorer(
    key="training.context",
    title="One sequence over many chips",
    question="How short may each chip's piece of a sequence be, before attention waits for keys and values?",
    controls={
        "model": Choice("model", MODELS, "LLaMA-3 70B"),
        "chip": Chips("chip", CHIPS, "TPU v5p"),
        "T": Slider("tokens of a sequence T", 4096, 2**21, 8192, "pow2"),
        "C": Slider("context ways", 4, 64, 8, "pow2"),
        "way": Choice("how", tuple(WAYS), "ring"),
    },
    view=_context,
)
