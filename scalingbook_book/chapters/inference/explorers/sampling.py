"""Explorer: FLOPs of generating text with and without a KV cache, pass by pass."""

from functools import lru_cache
from typing import NamedTuple

from scalingbook_book.reader.explorers.parts import (
    Cell,
    Chart,
    Choice,
    Curve,
    Explorer,
    Grid,
    Points,
    Readout,
    Scale,
    Slider,
    Steps,
    Switch,
    View,
    pluralize,
    sig3,
)
from scalingbook_lib import models
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import count, si

MODELS = ("Llama 2 13B", "Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B")
DRAWN, PROMPT = 12, 5  # tokens of the small picture, and of its prompt


class TokenCost(NamedTuple):
    """FLOPs of one token's weight matmuls, of its logits, and of one pair of a query and a key."""

    token: float
    logits: float
    pair: float


class Spent(NamedTuple):
    """FLOPs: weight matmuls, and attention."""

    weights: float
    attention: float


@lru_cache(maxsize=16)
def unit(model: str) -> TokenCost:
    """FLOPs per token, for the logits and per attended pair, from the FLOPs of one token and of two."""
    one, two = (arithmetic.flops(models.find(model), 1, T, causal=True, logits=1) for T in (1, 2))
    token = two.weights - one.weights
    return TokenCost(token, one.weights - token, one.attention)


def spent(model: str, P: int, G: int, cached: bool) -> Spent:
    """A prompt of P tokens and G generated ones, the first of them by the prompt's pass.

    With a cache, pass i has one token, which meets P + i; without, it has all P + i again.
    """
    u, n = unit(model), G - 1
    met = [x * (x + 1) / 2 for x in (P, P + n)]  # pairs of all tokens up to there
    if cached:
        return Spent((P + n) * u.token + G * u.logits, met[1] * u.pair)
    tokens = G * P + n * G / 2
    pairs = ((P + n) * (P + n + 1) * (P + n + 2) - (P - 1) * P * (P + 1)) / 6
    return Spent(tokens * u.token + G * u.logits, pairs * u.pair)


def _sampling(*, model: str, cached: bool, P: int, G: int, step: int) -> View:
    now = min(step, DRAWN - PROMPT)
    with_, without = spent(model, P, G, True), spent(model, P, G, False)
    one, how = (with_, "with a cache") if cached else (without, "without a cache")
    ratio, share = sum(without) / sum(with_), one.attention / sum(one)
    return View(
        _verdict(P, G, ratio, sum(without)),
        (_strip(now, cached), _curves(model, P, G)),
        (
            Readout("FLOPs with a cache", sum(with_), "FLOPs"),
            Readout("FLOPs without a cache", sum(without), "FLOPs"),
            Readout("ratio", ratio),
            Readout.percent(f"attention's share of FLOPs, {how}", share),
        ),
        frames=DRAWN - PROMPT + 1,
        columns=2,
    )


def _strip(now: int, cached: bool) -> Grid:
    """The tokens that go through the model in each pass, up to the current one."""
    rows = [[_cell(i, at, now, cached) for at in range(DRAWN)] for i in range(DRAWN - PROMPT + 1)]
    names = ["prompt", *(f"pass {i}" for i in range(1, DRAWN - PROMPT + 1))]
    title = (
        "5 prompt tokens: computed (orange), cached (gray)"
        if cached
        else "5 prompt tokens: what each pass computes"
    )
    return Grid(title, names, [f"{at + 1}" for at in range(DRAWN)], rows)


def _cell(i: int, at: int, now: int, cached: bool) -> Cell:
    last = PROMPT + i - 1  # the last token that pass i reads
    if i > now or at > last:
        return Cell("", None, "")
    computed = not cached or i == 0 or at == last
    note = (
        f"token {at + 1} goes through the model"
        if computed
        else f"keys and values of token {at + 1} are read from the cache"
    )
    return Cell("●" if computed else "·", 1 if computed else 5, note, level=0.7 if computed else 0.15)


def _curves(model: str, P: int, G: int) -> Chart:
    sizes = sorted({max(round(G * 2 ** (-k / 2)), 1) for k in range(17)})
    lines = [
        Curve(
            f"{what}, {'cache' if cached else 'no cache'}",
            sizes,
            [getattr(spent(model, P, n, cached), what) for n in sizes],
            color,
            dashed=cached,
        )
        for color, what in enumerate(("weights", "attention"))
        for cached in (False, True)
    ]
    at = Points("", [G], [spent(model, P, G, False).weights], [f"{pluralize(G, 'token')}"], 0)
    return Chart(
        Scale("generated tokens", "", "log"),
        Scale("total FLOPs", "FLOPs", "log"),
        (*lines, at),
        title="Total FLOPs (both axes logarithmic)",
    )


def _verdict(P: int, G: int, ratio: float, flops: float) -> str:
    return (
        f"To generate {pluralize(G, 'token')} after a prompt of {count(P)}, a program without a KV cache "
        f"needs {si(flops, 'FLOPs')}, {sig3(ratio)} times as many as a program with one."
    )


SAMPLING = Explorer(
    key="inference.sampling",
    title="Generating text with and without a KV cache",
    question="How many FLOPs does the KV cache save?",
    controls={
        "model": Choice("model", MODELS),
        "cached": Switch("use a KV cache", False),
        "P": Slider("prompt length", 16, 32768, 512, "pow2"),
        "G": Slider("output length", 2, 32768, 512, "pow2"),
        "step": Steps("pass after the prompt", 3),
    },
    view=_sampling,
)
