"""Explorer of the smallest slice that holds the model, and of the cost per token on the next one."""

from typing import NamedTuple

from scalingbook_book.reader.explorers.parts import (
    SERVING_MODELS,
    SWITCHED,
    TYPES,
    Bars,
    Cell,
    Chips,
    Choice,
    Explorer,
    Grid,
    Readout,
    Scale,
    Series,
    Slider,
    View,
    machine,
    pluralize,
    sig3,
    spread,
)
from scalingbook_lib import inference, models
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.age import price_of
from scalingbook_lib.rules import usd_per_million
from scalingbook_lib.units import binary, count, si

SLICES = {
    "TPU v5e": ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16"),
    "TPU v5p": ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8"),
    "TPU v6e": ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8"),
    "TPU7x": ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4"),
} | dict.fromkeys(SWITCHED, ("1", "2", "4", "8", "16"))
_SHOWN = 4


class ServingFit(NamedTuple):
    """What a machine holds: bytes of all its chips together, sequences, and the step with all of them."""

    name: str
    chips: int
    weights: float
    cache: float
    free: float
    sequences: int
    step: inference.InferenceStep | None

    @property
    def room(self) -> float:
        """Bytes of all its chips."""
        return self.chips * machine(self.name).chip.hbm_bytes

    @property
    def rate(self) -> float:
        """Output tokens each second of a chip."""
        return self.sequences / self.step.total_s / self.chips if self.step else 0.0


def named(chip: str, size: str) -> str:
    """The name of a machine of this chip: '4x4' of a torus, a number of others."""
    return f"{chip} {size}" if "x" in size else f"{chip} × {size}"


def fits(model: str, name: str, weights: str, kv: str, S: int) -> ServingFit | None:
    """What fits, or None if the model's heads do not divide."""
    m, on = models.find(model), machine(name)
    try:
        o = spread(model, name, weights, kv)
        B = inference.largest_batch(m, o, on, S=S)
        held = inference.memory(m, o, on, batch=max(B, 1), S=S)
        step = inference.decode(m, on, o, batch=B, S=S) if B else None
    except inference.LayoutError:
        return None
    n, room = on.chips, on.chip.hbm_bytes
    cache = held.kv if B else 0.0
    return ServingFit(
        name, n, n * held.weights, n * cache, n * max(room - held.weights - cache, 0.0), B, step
    )


def _fit(*, model: str, chip: str, weights: str, kv: str, S: int, G: int) -> View:
    all_of = [f for size in SLICES[chip] if (f := fits(model, named(chip, size), weights, kv, S))]
    first = next((i for i, f in enumerate(all_of) if f.sequences), None)
    if first is None:
        return View(
            f"None of the {chip} machines offered here holds {model} and one sequence of {count(S)} tokens.",
            (_tanks(all_of[-_SHOWN:]),),
        )
    on = chips.find(chip)
    shown = all_of[max(first - 1, 0) :][:_SHOWN]
    one = all_of[first]
    return View(
        _verdict(model, one, all_of[first + 1 : first + 2], S),
        (_tanks(shown), _table(shown, G)),
        (
            Readout("weights", one.weights, "B"),
            Readout("cache per sequence", one.cache / one.sequences, "B"),
            Readout("smallest machine", one.chips, "", f"{one.name}, {pluralize(one.chips, 'chip')}"),
            Readout("sequences that fit", one.sequences),
            Readout("price per chip", price_of(on).usd_per_hour or 0.0, "", str(price_of(on))),
        ),
        columns=2,
    )


def _tanks(shown: list[ServingFit]) -> Bars:
    parts = {"weights": 0, "cache": 1, "free": 5}
    return Bars(
        Scale("total HBM of all chips", "B"),
        [f"{f.name}: {si(f.room, 'B')}" for f in shown],
        [Series(name, [getattr(f, name) for f in shown], color) for name, color in parts.items()],
        stacked=True,
        title="What fills the memory",
    )


def _table(shown: list[ServingFit], G: int) -> Grid:
    heads = ("fit", "step", "tokens\n/s per\nchip", "re-\nquests\n/s", "USD\nper\nmillion")
    best = max(f.rate for f in shown)
    return Grid(
        "Decode only, with the largest batch that fits",
        [f.name for f in shown],
        heads,
        [_row(f, G, best) for f in shown],
    )


def _row(f: ServingFit, G: int, best: float) -> list[Cell]:
    if f.step is None:
        return [
            Cell(text, None, f"{f.name} does not hold a single sequence")
            for text in ("0", "–", "–", "–", "–")
        ]
    price = machine(f.name).chip.usd_per_hour
    usd = f"${sig3(usd_per_million(price, chips=1, tokens_per_s=f.rate))}" if price else "no price"
    texts = (
        count(f.sequences),
        si(f.step.total_s, "s"),
        sig3(f.rate),
        sig3(f.chips * f.rate / G),
        usd,
    )
    return [Cell(text, 2, str(f.step), level=f.rate / best) for text in texts]


def _verdict(model: str, one: ServingFit, following: list[ServingFit], S: int) -> str:
    hbm = binary(machine(one.name).chip.hbm_bytes)
    said = (
        f"{one.name} is the smallest machine that holds {model}: its {one.chips} × {hbm} of HBM hold the "
        f"weights and {pluralize(one.sequences, 'sequence')} of {count(S)} tokens"
    )
    if not following or not following[0].sequences:
        return f"{said}."
    more = following[0]
    many, much = sig3(more.sequences / one.sequences), sig3(more.rate / one.rate)
    return (
        f"{said}. {more.name} holds {many} times as many, and each of its chips generates {much} times "
        "as many tokens per second."
    )


FIT = Explorer(
    key="inference_llama3.fit",
    title="Memory capacity: weights and KV caches",
    question="What is the smallest machine that holds this model, and is the next larger one a better buy?",
    controls={
        "model": Choice("model", SERVING_MODELS, "Llama 3 70B"),
        "chip": Chips("chip", tuple(SLICES), "TPU v5e"),
        "weights": Choice("weights", tuple(TYPES), "int8"),
        "kv": Choice("cache", tuple(TYPES), "int8"),
        "S": Slider("tokens of context", 512, 131072, 8192, "pow2"),
        "G": Slider("output tokens", 64, 4096, 512, "pow2"),
    },
    view=_fit,
)
