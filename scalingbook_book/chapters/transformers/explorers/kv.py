"""Explorer of how many sequences fit: the KV cache next to the weights, for four kinds of attention."""

from dataclasses import replace

from scalingbook_book.reader.explorers.parts import (
    ALL_CHIPS,
    MODELS,
    Bars,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Panel,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
    pluralize,
)
from scalingbook_lib import models
from scalingbook_lib.machines import chips
from scalingbook_lib.models import Latent, Transformer, arithmetic
from scalingbook_lib.units import DType, binary, count, count_in_words, dtype

PUBLISHED = "as published"
_KV_RANK, _ROPE, _SHARED = 512, 64, 8  # of DeepSeek's latent attention; key-value heads of grouped queries
_LENGTHS = [2**e for e in range(10, 22)]


def _plain(model: Transformer, K: int) -> Transformer:
    """The model with K key-value heads; latent attention gets heads as wide as its values."""
    H = model.latent.v if model.latent else model.H
    return replace(model, K=K, H=H, latent=None)


def _latent(model: Transformer) -> Transformer:
    """The model with one latent vector for all heads of a layer."""
    if model.latent:
        return model
    latent = Latent(q_rank=None, kv_rank=_KV_RANK, nope=model.H, rope=_ROPE, v=model.H)
    return replace(model, K=model.N, H=latent.qk, latent=latent, biases=(), qk_norm=None)


def kinds(name: str) -> dict[str, Transformer]:
    """The published model, and the same model with each kind of attention."""
    model = models.find(name)
    grouped = max(K for K in range(1, _SHARED + 1) if model.N % K == 0)
    latent = _latent(model)
    return {
        PUBLISHED: model,
        "MHA": _plain(model, model.N),
        "GQA": _plain(model, grouped),
        "MQA": _plain(model, 1),
        "MLA": latent,
    }


def _kv(*, name: str, kind: str, S: int, sequences: int, cache: str, weights: str, chip: str, n: int) -> View:
    made = kinds(name)
    hbm = n * chips.find(chip).hbm_bytes
    free = {k: hbm - dtype(weights).bytes * m.params for k, m in made.items()}
    each = {k: arithmetic.kv_cache(m, S, dtype(cache)).nbytes for k, m in made.items()}
    fits = {k: int(max(free[k], 0) // each[k]) for k in made}
    token = arithmetic.kv_cache(made[kind], 1, dtype(cache))
    bars = Bars(
        Scale("memory", "B"),
        [_label(k, m) for k, m in made.items()],
        (
            Series(f"weights in {weights}", [dtype(weights).bytes * m.params for m in made.values()], 3),
            Series(
                f"KV cache of {count(sequences)} × {count(S)} tokens", [sequences * each[k] for k in made], 0
            ),
        ),
        stacked=True,
        refs=(RefLine(f"HBM of {n} {chip}", hbm),),
    )
    return View(
        _verdict(made[kind], kind, S, fits=fits, free=free[kind], where=f"{n} {chip}"),
        (bars, *_lengths(made, kind, free, dtype(cache), S)),
        (
            Readout("KV cache per token", 0, "", binary(token.bytes_per_token)),
            Readout.binary("KV cache per sequence", each[kind]),
            Readout("memory left after the weights", free[kind], "B", binary(max(free[kind], 0))),
            Readout("sequences that fit", fits[kind], "", count(fits[kind])),
            Readout("tokens that fit", fits[kind] * S, "", count_in_words(fits[kind] * S)),
            Readout.percent("KV cache / weights", sequences * each[kind] / (hbm - free[kind])),
        ),
    )


def _label(kind: str, m: Transformer) -> str:
    return f"{kind}: {m.latent.kv_rank} + {m.latent.rope}" if m.latent else f"{kind}: K = {m.K}, H = {m.H}"


def _lengths(
    made: dict[str, Transformer], kind: str, free: dict[str, float], cache: DType, S: int
) -> tuple[Panel, ...]:
    """Sequences that fit, by their length; nothing if the weights alone are too large."""
    curves = []
    for color, (k, m) in enumerate(made.items()):
        shown = k == kind or (k != PUBLISHED and m != made[kind])
        if free[k] > 0 and shown:
            ys = [free[k] / arithmetic.kv_cache(m, length, cache).nbytes for length in _LENGTHS]
            curves.append(Curve(k, _LENGTHS, ys, color, dashed=k != kind))
    if not curves:
        return ()
    marks = (*curves, RefLine("your S", S), RefLine("one sequence", 1, axis="y"))
    return (
        Chart(Scale("sequence length S", "tokens", "pow2"), Scale("sequences that fit", "", "log"), marks),
    )


def _verdict(model: Transformer, kind: str, S: int, *, fits: dict[str, int], free: float, where: str) -> str:
    name = model.name if kind == PUBLISHED else f"{model.name} with {kind}"
    if free <= 0:
        return f"{name} does not fit: the weights alone exceed the HBM of {where} by {binary(-free)}."
    if fits[kind] == 0:
        return (
            f"{name}: not a single sequence of {count_in_words(S)} tokens fits next to the weights on "
            f"{where}."
        )
    said = f"{name}: {pluralize(fits[kind], 'sequence')} of {count_in_words(S)} tokens "
    said += f"{'fits' if fits[kind] == 1 else 'fit'} next to the weights on {where}"
    if kind == "MHA":
        return f"{said}. With multi-query attention, {count(fits['MQA'])} would fit."
    return f"{said}. With multi-head attention, {count(fits['MHA']) if fits['MHA'] else 'none'} would fit."


KV = Explorer(
    key="transformers.kv",
    title="KV-cache budget: how many sequences fit?",
    question="How many sequences fit next to the weights, and how many more fit with GQA, MQA or MLA?",
    controls={
        "name": Choice("model", MODELS, "Llama 3 70B"),
        "kind": Choice("attention", (PUBLISHED, "MHA", "GQA", "MQA", "MLA")),
        "S": Slider("sequence length S", 1024, 2**21, 8192, "pow2", "tokens"),
        "sequences": Slider("sequences shown in the bars", 1, 1024, 32, "pow2"),
        "cache": Choice("KV-cache dtype", ("bf16", "int8", "fp32")),
        "weights": Choice("weight dtype", ("bf16", "int8", "fp32")),
        "chip": Chips("chip", ALL_CHIPS, "TPU v5e"),
        "n": Slider("chips", 1, 256, 16, "pow2"),
    },
    view=_kv,
)
