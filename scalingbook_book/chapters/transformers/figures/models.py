"""Figures of four models: where their parameters are, and where the FLOPs of a token go."""

from scalingbook_book.reader.explorers.view import Bars, Scale, Series
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import CACHE, IDLE, MATH, MEMORY
from scalingbook_lib import models
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import percent

NAMES = ("Llama 3.2 1B", "Llama 3 8B", "Llama 3 70B", "DeepSeek-V3")
T = 8192


def where_parameters_are() -> Figure:
    """Which part has the most parameters, and which takes the most FLOPs?"""
    known = [models.find(name) for name in NAMES]
    stored = [_stored(model) for model in known]
    small, large = (percent(each["embeddings"] / sum(each.values())) for each in (stored[0], stored[2]))
    sparse = percent(known[-1].active_params / known[-1].params)
    return Figure(
        key="transformers.where_parameters_are",
        alt=f"Stacked bars for {', '.join(NAMES)}. Shares of parameters: embeddings are {small} of the smallest and "
        f"{large} of the 70B; experts are nearly all of DeepSeek-V3. Shares of the FLOPs of a token at {T:,}: dot-product "
        "attention appears, which has no parameters.",
        caption=f"Shares of parameters and of forward FLOPs in four models, by part, at {T:,} tokens. Most of the "
        "parameters are in the MLPs or experts. In small models, the embeddings take a visible share, because "
        f"the vocabulary does not shrink with the model. Each token in DeepSeek-V3 uses only {sparse} "
        "of the parameters but attends to its whole context.",
        parts=lambda wide: [
            _bars("share of parameters", stored),
            _bars("share of FLOPs", [_done(m) for m in known]),
        ],
    )


def _stored(model: models.Transformer) -> dict[str, float]:
    parts = {term.name: term.value for term in arithmetic.params(model).terms}
    vocabulary = parts.pop("embedding") + parts.pop("unembedding", 0)
    attention = parts.pop("attention")
    return {
        "MLP or experts": sum(parts.values()),
        "attention weights": attention,
        "dot-product attention": 0.0,
        "embeddings": vocabulary,
    }


def _done(model: models.Transformer) -> dict[str, float]:
    flops = arithmetic.flops(model, 1, T)
    parts = {term.name: term.value for term in flops.terms}
    attention = sum(
        value for name, value in parts.items() if name in ("attention projections", "latent up-projection")
    )
    rest = flops.total - attention - flops.attention - parts["unembedding"]
    return {
        "MLP or experts": rest,
        "attention weights": attention,
        "dot-product attention": flops.attention,
        "embeddings": parts["unembedding"],
    }


def _bars(title: str, parts: list[dict[str, float]]) -> Bars:
    colors = {
        "MLP or experts": MATH,
        "attention weights": MEMORY,
        "dot-product attention": IDLE,
        "embeddings": CACHE,
    }
    shares = {name: [100 * each[name] / sum(each.values()) for each in parts] for name in colors}
    series = [Series(name, shares[name], color) for name, color in colors.items() if any(shares[name])]
    return Bars(Scale(title, "%", high=105), NAMES, series, stacked=True)
