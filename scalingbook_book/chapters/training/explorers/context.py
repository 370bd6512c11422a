"""Explorer of context parallelism: traffic of ring attention, gathered keys and Ulysses by CP degree."""

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
MODELS = ("Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "Qwen3 32B", "Llama 2 7B", "GPT-2 XL")
WAYS = {"ring": "ring", "gathered keys": "gather", "Ulysses": "ulysses"}
_SIZES = (4, 8, 16, 32, 64)


def machine(chip: str, C: int) -> Machine:
    """A slice with one torus axis of C chips, or a cluster with C neighbors."""
    on = chips.find(chip)
    other = "8x8" if C in (4, 16) else "4x4"
    return Slice.of(on, f"{other}x{C}") if on.torus else switched(on, 16 * C)


@lru_cache(maxsize=1024)
def step(model: str, chip: str, T: int, C: int, way: str) -> TrainingStep:
    """A step with one sequence per data rank and replicated weights, since only attention matters here."""
    on = machine(chip, C)
    ranks = on.chips // C
    plan = Plan(dp=ranks, cp=C, zero=0, context=WAYS[way])
    return training.step(models.find(model), on, plan, batch=ranks, T=T)


def sent(made: TrainingStep) -> float:
    """Seconds of a step's context-parallel collectives, hidden or exposed."""
    return sum(row.seconds for row in made.traffic if row.axes == "C")


def _context(*, model: str, chip: str, T: int, C: int, way: str) -> View:
    here, m = step(model, chip, T, C, way), models.find(model)
    attention = here.math["attention"]
    ring = _closed(m, chip)
    return View(
        _verdict(way, T=T, C=C, sent_s=sent(here), attention_s=attention),
        (_chart(model, chip, T, C, way),),
        (
            Readout("sequence tokens per chip", T / C, "", count(T // C)),
            *ring,
            Readout("communication over attention", sent(here) / attention, "×"),
            Readout("communication per step", sent(here), "s"),
        ),
    )


def _closed(m: models.Transformer, chip: str) -> tuple[Readout, ...]:
    on = chips.find(chip)
    if not on.torus:
        return ()
    least = rules.context_parallel_tokens(m.G, on)
    return (Readout("ring hidden above", least, "", f"{count(round(least))} tokens"),)


def _chart(model: str, chip: str, T: int, C: int, way: str) -> Chart:
    attention = [step(model, chip, T, size, "ring").math["attention"] for size in _SIZES]
    shown = {"ring": "ring, or gathered keys", "Ulysses": "Ulysses"}
    curves = {name: [_sent_or_none(model, chip, T, size, name) for size in _SIZES] for name in shown}
    here = sent(step(model, chip, T, C, way))
    return Chart(
        Scale("CP degree", "", "pow2", _SIZES[0], _SIZES[-1]),
        Scale("time per step", "s", "log"),
        (
            Curve("attention", _SIZES, attention, 0, dashed=True),
            *(Curve(shown[name], _SIZES, ys, i + 1) for i, (name, ys) in enumerate(curves.items())),
            Points("", [C], [here], [si(here, "s")], 2 if way == "Ulysses" else 1),
        ),
    )


def _sent_or_none(model: str, chip: str, T: int, C: int, way: str) -> float:
    """NaN where the number of heads does not allow this degree, which leaves a gap in the curve."""
    try:
        return sent(step(model, chip, T, C, way))
    except ValueError:
        return float("nan")


def _verdict(way: str, *, T: int, C: int, sent_s: float, attention_s: float) -> str:
    names = {
        "ring": "ring attention communicates for",
        "gathered keys": "gathering keys and values takes",
        "Ulysses": "the AllToAlls of Ulysses take",
    }
    moved = f"{names[way]} {si(sent_s, 's')} per step"
    said = f"With {count(T // C)} tokens on each of {C} chips, {moved}"
    computed = f"attention takes {si(attention_s, 's')} to compute"
    if way != "ring":
        return f"{said}, and {computed}. The communication is exposed."
    if sent_s <= attention_s:
        return f"{said}, and {computed}: the communication can be hidden."
    return f"{said}, but {computed}, so only the rest of the layer can hide the difference."


CONTEXT = Explorer(
    key="training.context",
    title="Context parallelism: ring attention, gathered keys or Ulysses",
    question="How many tokens of a sequence must each chip have so that attention hides its communication?",
    controls={
        "model": Choice("model", MODELS, "Llama 3 70B"),
        "chip": Chips("chip", CHIPS, "TPU v5p"),
        "T": Slider("sequence length T", 4096, 2**21, 8192, "pow2"),
        "C": Slider("CP degree", 4, 64, 8, "pow2"),
        "way": Choice("method", tuple(WAYS), "ring"),
    },
    view=_context,
)
