"""Explorer of parameters, FLOPs and bytes of a published model, or of any config.json."""

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Choice,
    Explorer,
    Notation,
    Readout,
    Scale,
    Series,
    Slider,
    Switch,
    View,
)
from scalingbook_lib import models
from scalingbook_lib.models import Transformer, arithmetic
from scalingbook_lib.models.arithmetic import Flops, Terms
from scalingbook_lib.units import BF16, FP32, count, count_in_words, dtype, percent, si

LONGEST_CONFIG = 20_000  # characters
_STATES = {
    "weights, gradients, moments, master": (BF16, FP32),
    "weights, gradients, moments": (BF16, None),
    "weights, moments": (None, None),
}


def read(text: str, name: str) -> Transformer:
    """The model of a pasted config.json, or of a name where there is no brace; without a text, the chosen."""
    if not text:
        return models.find(name)
    return models.from_hf(text) if "{" in text else models.find(text)


def _model(*, name: str, text: str, T: int, causal: bool, cache: str, state: str) -> View:
    model = read(text, name)
    run = arithmetic.training_flops(model, T, T, causal=causal)
    forward = arithmetic.flops(model, 1, T, causal=causal)
    kept = arithmetic.kv_cache(model, T, dtype(cache))
    gradients, master = _STATES[state]
    training = arithmetic.training_state(model, gradients=gradients, master=master)
    return View(
        _verdict(model, forward, run.six_nd_error),
        (_parts(model), _flops(forward), _bytes(model, training, kept)),
        (
            Readout("parameters", model.params, "", count_in_words(model.params)),
            Readout("active per token", model.active_params, "", count_in_words(model.active_params)),
            Readout("forward, per token", forward.per_token, "FLOPs"),
            Readout("training, per token", run.total / T, "FLOPs"),
            Readout.percent("error of 6 · P", run.six_nd_error),
            Readout.binary("KV cache, per token", kept.bytes_per_token),
            Readout("training state", training.total, "B", si(training.total, "B")),
            Readout("shapes", 0, "", _shapes(model)),
        ),
        columns=2,
    )


def _parts(model: Transformer) -> Bars:
    stored, active = model.by_part, model.active_by_part
    series = [Series("stored", list(stored.values()), 0)]
    if model.params != model.active_params:
        series.append(Series("active per token", [active.get(part, 0) for part in stored], 1))
    return Bars(Scale("parameters"), list(stored), series, title="Parameters by part")


def _flops(forward: Flops) -> Bars:
    """Each part's FLOPs per token, in the order of the forward pass."""
    values = [term.value / forward.tokens for term in forward.terms]
    return Bars(
        Scale("FLOPs", "FLOPs"), forward.names, (Series("FLOPs", values, 2),), title="Forward FLOPs per token"
    )


def _bytes(model: Transformer, training: Terms, kept: arithmetic.KVCache) -> Bars:
    rows = {
        "weights in bf16": BF16.bytes * model.params,
        "training state": training.total,
        f"KV cache of {count(kept.S)} tokens": kept.nbytes,
    }
    return Bars(Scale("bytes", "B", "log"), list(rows), (Series("bytes", list(rows.values()), 3),))


def _shapes(m: Transformer) -> str:
    experts = f" E={m.experts.E} k={m.experts.k} F={m.experts.F}" if m.experts else f" F={m.F}"
    return f"D={m.D} L={m.L}{experts} N={m.N} K={m.K} H={m.H} V={m.V}"


def _part(name: str) -> str:
    return {"mlp": "the MLPs", "experts": "the experts", "attention": "attention"}.get(name, f"the {name}")


def _verdict(model: Transformer, forward: Flops, error: float) -> str:
    parts = arithmetic.params(model)
    largest = max(parts.terms, key=lambda term: term.value)
    said = f"{model.name} has {count_in_words(model.params)} parameters, "
    said += f"{percent(parts.share(largest.name))} of them in {_part(largest.name)}"
    if model.params != model.active_params:
        said += f"; {count_in_words(model.active_params)} are active per token"
    said += f". At {count_in_words(forward.T)} tokens of context, dot-product attention takes "
    said += f"{percent(forward.share('scores', 'weighted values'))} of its FLOPs"
    way = "too few" if error < 0 else "too many"
    rule = "6 · active P" if model.params != model.active_params else "6 · P"
    return f"{said}. For training, the rule {rule} gives {percent(abs(error))} {way} FLOPs."


MODEL = Explorer(
    key="transformers.model",
    title="Parameters, FLOPs and memory of a model",
    question="Where are a model's parameters, and what takes the FLOPs of a token?",
    controls={
        "name": Choice("model", tuple(model.name for model in models.CATALOG), "Llama 3 70B"),
        "text": Notation(
            "or a config.json", "", "paste the whole file, from { to }, or a model's name", LONGEST_CONFIG
        ),
        "T": Slider("context T", 128, 2**20, 8192, "pow2", "tokens"),
        "causal": Switch("count only causal pairs", False),
        "cache": Choice("KV-cache dtype", ("bf16", "int8", "fp32")),
        "state": Choice("training state", tuple(_STATES)),
    },
    view=_model,
)
