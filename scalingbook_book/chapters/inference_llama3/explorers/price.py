"""Explorer of the cheapest chip for work that needs compute, bandwidth or memory."""

from typing import NamedTuple

from scalingbook_book.reader.explorers.parts import (
    SERVING_MODELS,
    TYPES,
    Cell,
    Chart,
    Choice,
    Curve,
    Explorer,
    Grid,
    Readout,
    RefLine,
    Scale,
    Slider,
    View,
    join_and,
)
from scalingbook_lib import models
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.machines.age import price_of
from scalingbook_lib.models.arithmetic import kv_cache
from scalingbook_lib.units import count, si

NAMES = ("TPU v5e", "TPU v5p", "H100", "H200", "B200")


class Worth(NamedTuple):
    """What a dollar buys of a chip at a price of `usd` per hour."""

    chip: Chip
    usd: float

    @property
    def flops(self) -> float:
        """bf16 FLOPs for a dollar."""
        return self.chip.flops_per_s() * 3600 / self.usd

    @property
    def read(self) -> float:
        """Bytes read from HBM for a dollar."""
        return self.chip.hbm_bytes_per_s * 3600 / self.usd

    @property
    def held(self) -> float:
        """Bytes of HBM rented for one dollar per hour."""
        return self.chip.hbm_bytes / self.usd

    def prompts(self, flops_per_token: float) -> float:
        """USD for a million prompt tokens at the peak."""
        return 1e6 * flops_per_token / self.flops

    def decoded(self, bytes_per_token: float, flops_per_token: float) -> float:
        """USD per million output tokens of a large batch, which shares the weights: cache and compute."""
        return 1e6 * (bytes_per_token / self.read + flops_per_token / self.flops)


def _price(
    *, model: str, kv: str, S: int, v5e: float, v5p: float, h100: float, h200: float, b200: float
) -> View:
    m = models.find(model)
    paid = dict(zip(NAMES, (v5e, v5p, h100, h200, b200), strict=True))
    all_of = [Worth(chips.find(name), usd) for name, usd in paid.items()]
    flops = 2.0 * m.active_params
    prompt = min(all_of, key=lambda w: w.prompts(flops))
    cache = _cache(model, kv, S)
    out = min(all_of, key=lambda w: w.decoded(cache, flops))
    least = f"${prompt.prompts(flops):.3g}", f"${out.decoded(cache, flops):.3g}"
    return View(
        f"{_best(all_of)}. {_cheapest(prompt.chip.name, out.chip.name, S)}.",
        (_table(all_of, cache, flops), _chart(all_of, model, kv, S, flops)),
        (
            Readout("FLOPs per token", flops, "FLOPs"),
            Readout("cache read per token", cache, "B"),
            Readout("lower bound for a million prompt tokens", prompt.prompts(flops), "", least[0]),
            Readout("lower bound for a million output tokens", out.decoded(cache, flops), "", least[1]),
        ),
        columns=2,
    )


def _best(all_of: list[Worth]) -> str:
    """The chips that compute, read and hold the most per dollar; a chip that leads twice is named once."""
    said = {
        "flops": "performs the most FLOPs",
        "read": "reads the most bytes",
        "held": "holds the most bytes",
    }
    found: dict[str, list[str]] = {}
    for what, deed in said.items():
        found.setdefault(max(all_of, key=lambda w: getattr(w, what)).chip.name, []).append(deed)
    return "Per dollar, " + ", and ".join(f"the {name} {join_and(deeds)}" for name, deeds in found.items())


def _cheapest(prompt: str, out: str, S: int) -> str:
    tokens = f"output tokens at a context of {count(S)}"
    if prompt == out:
        return f"Prompts and {tokens} are cheapest on the {out}"
    return f"Prompts are cheapest on the {prompt}, and {tokens} are cheapest on the {out}"


def _cache(model: str, kv: str, S: int) -> float:
    return kv_cache(models.find(model), S, TYPES[kv]).nbytes


def _table(all_of: list[Worth], cache: float, flops: float) -> Grid:
    heads = ("FLOPs\nper $1", "bytes\nper $1", "held\nper\n$1/h", "million\nprompt", "million\noutput")
    columns = [
        [(w.flops, si(w.flops)) for w in all_of],
        [(w.read, si(w.read, "B")) for w in all_of],
        [(w.held, si(w.held, "B")) for w in all_of],
        [(1 / w.prompts(flops), f"${w.prompts(flops):.3g}") for w in all_of],
        [(1 / w.decoded(cache, flops), f"${w.decoded(cache, flops):.3g}") for w in all_of],
    ]
    cells = [
        [Cell(c[i][1], 2, level=c[i][0] / max(value for value, _ in c)) for c in columns]
        for i in range(len(all_of))
    ]
    return Grid("What a dollar buys (stronger color: better)", [w.chip.name for w in all_of], heads, cells)


def _chart(all_of: list[Worth], model: str, kv: str, S: int, flops: float) -> Chart:
    """The price of output tokens over the context."""
    sizes = [2.0**e for e in range(9, 18)]
    lines = [
        Curve(w.chip.name, sizes, [w.decoded(_cache(model, kv, int(s)), flops) for s in sizes], i)
        for i, w in enumerate(all_of)
    ]
    return Chart(
        Scale("tokens of context", "", "pow2"),
        Scale("USD per million tokens, lower bound", "", "log"),
        (*lines, RefLine("here", S)),
        title="Cost of output tokens by context length",
    )


PRICE = Explorer(
    key="inference_llama3.price",
    title="What a dollar buys",
    question="Which chip is cheapest for prompts, and which is cheapest for output tokens after a long "
    "context?",
    controls={
        "model": Choice("model", SERVING_MODELS, "Llama 3 70B"),
        "kv": Choice("cache", tuple(TYPES), "int8"),
        "S": Slider("tokens of context", 512, 131072, 8192, "pow2"),
        **{
            name: Slider(
                f"USD/h, {chip} ({price_of(chips.find(chip)).as_of})",
                0.1,
                15,
                chips.find(chip).usd_per_hour or 1.0,
                "log",
            )
            for name, chip in zip(("v5e", "v5p", "h100", "h200", "b200"), NAMES, strict=True)
        },
    },
    view=_price,
)
