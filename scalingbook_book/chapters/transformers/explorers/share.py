"""Explorer of attention's share of the layers' FLOPs, and the context at which it exceeds the weights'."""

import math
from functools import lru_cache

from scalingbook_book.reader.explorers.parts import (
    MODELS,
    Chart,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    Switch,
    View,
)
from scalingbook_lib import models
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import count, count_in_words, percent

_SHORTEST, _LONGEST = 128, 2**20
_CONTEXTS = [2 ** (e / 2) for e in range(14, 41)]


@lru_cache(maxsize=64)
def costs(name: str) -> tuple[float, float]:
    """FLOPs of one token in the layers' weight matmuls, and of one pair of positions in one layer."""
    one = arithmetic.flops(models.find(name), 1, 1)
    layers = sum(kind.layers for kind in models.find(name).layer_kinds)
    return one.weights - one.get("unembedding"), one.attention / layers


def share(name: str, T: float, *, causal: bool, windows: bool) -> float:
    """The share of dot-product attention in the FLOPs of the layers, at a context of T tokens."""
    weights, pair = costs(name)
    T = round(T)
    attention = pair * sum(
        kind.layers * arithmetic.pairs(T, T, causal=causal, window=kind.window if windows else None)
        for kind in models.find(name).layer_kinds
    )
    return attention / (attention + T * weights)


def _share(*, first: str, second: str, third: str, T: int, causal: bool, windows: bool) -> View:
    names = list(dict.fromkeys((first, second, third)))
    shares = [share(name, T, causal=causal, windows=windows) for name in names]
    crossings = [arithmetic.crossover(models.find(n), causal=causal, windows=windows) for n in names]
    # T* where F = 4D, N · H = D and K = N: 8D, and twice that if only the kept half is counted
    guide = 8 * models.find(first).D * (2 if causal else 1)
    rule = [t / (t + guide) for t in _CONTEXTS]
    chart = Chart(
        Scale("context T", "tokens", "pow2", _SHORTEST, _LONGEST),
        Scale("attention's share of FLOPs", "", "linear", 0, 1),
        (
            *(_curve(name, color, causal, windows) for color, name in enumerate(names)),
            Curve(f"rule, {8 * (1 + causal)}D", _CONTEXTS, rule, 5, dashed=True),
            *(_crossing(at, color) for color, at in enumerate(crossings) if _SHORTEST <= at <= _LONGEST),
            RefLine("your T", T),
        ),
    )
    return View(
        _verdict(names, crossings, shares, T, guide),
        (chart,),
        (
            *(Readout.percent(f"{n}: share at T", s) for n, s in zip(names, shares, strict=True)),
            *(Readout(f"{n}: T*", at, "", _length(at)) for n, at in zip(names, crossings, strict=True)),
            Readout("rule of thumb for the first model", guide, "", _length(guide)),
        ),
    )


def _curve(name: str, color: int, causal: bool, windows: bool) -> Curve:
    return Curve(name, _CONTEXTS, [share(name, t, causal=causal, windows=windows) for t in _CONTEXTS], color)


def _crossing(at: float, color: int) -> Points:
    return Points("", [at], [0.5], [f"T* {count(round(at))}" if color == 0 else ""], color)


def _length(tokens: float) -> str:
    return f"{count_in_words(round(tokens))} tokens" if math.isfinite(tokens) else "never"


def _verdict(names: list[str], crossings: list[float], shares: list[float], T: int, guide: float) -> str:
    said = f"At {count_in_words(T)} tokens, dot-product attention takes {percent(shares[0])} "
    said += f"of the FLOPs of {names[0]}'s layers"
    if not math.isfinite(crossings[0]):
        return f"{said}. Because of its sliding windows, it never reaches half."
    said += f". It reaches half at {_length(crossings[0])}"
    off = crossings[0] / guide
    if 0.95 < off < 1.05:
        return f"{said}, as the rule of thumb says."
    return f"{said}, which is {off:.2g} times what the rule of thumb says ({_length(guide)})."


SHARE = Explorer(
    key="transformers.share",
    title="When attention dominates: its share of the FLOPs",
    question="At what context length does dot-product attention cost more than the weight matmuls?",
    controls={
        "first": Choice("first model", MODELS, "Gemma-2 27B"),
        "second": Choice("second model", MODELS, "Llama 3 70B"),
        "third": Choice("third model", MODELS, "DeepSeek-V3"),
        "T": Slider("context T", _SHORTEST, _LONGEST, 8192, "pow2", "tokens"),
        "causal": Switch("count only causal pairs", False),
        "windows": Switch("sliding windows as published", True),
    },
    view=_share,
)
