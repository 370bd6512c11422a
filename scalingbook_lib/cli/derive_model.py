"""How are a model's parameters, FLOPs and bytes counted? In the book's letters, then in numbers."""

from collections.abc import Iterator
from itertools import chain

from scalingbook_lib.cli.answer import Line
from scalingbook_lib.cli.numbers import added, figure, product
from scalingbook_lib.models import Transformer, Weight
from scalingbook_lib.models.arithmetic import Flops, KVCache, TrainingFlops, TrainingState

_LETTERS = {
    "embed": "VD",
    "unembed": "DV",
    "q": "DNH",
    "k": "DKH",
    "v": "DKH",
    "o": "NHD",
    "gate": "DF",
    "up": "DF",
    "down": "FD",
    "final norm": "D",
    "layer norms": "D",
}
_PAIRS = "2 · N · H · (pairs of a query and a key)"
_WORDS = {
    "attention projections": "2 · B · T · (weights of q, k, v and o)",
    "scores": _PAIRS,
    "weighted values": _PAIRS,
    "mlp": "2 · B · T · (weights of the MLPs)",
    "experts": "2 · B · T · (weights of the k experts that a token visits)",
    "unembedding": "2 · B · T · D · V",
}


def steps(forward: Flops, training: Flops, cache: KVCache, state: TrainingState) -> Iterator[Line]:
    """Every line of the tables, derived."""
    return chain(_parameters(forward.model), _flops(forward, training), _cache(cache), _state(state))


def _parameters(model: Transformer) -> Iterator[Line]:
    for part, n in model.by_part.items():
        weights = [w for w in model.weights() if w.part == part and w.copies]
        formula = added(_formula(model, w) for w in weights)
        numbers = added(product(*w.shape, w.copies) for w in weights)
        yield Line(f"parameters, {part}", formula, numbers, n, "parameters")
    numbers = added(map(figure, model.by_part.values()))
    yield Line("P", "the parts added", numbers, model.params, "parameters")


def _formula(model: Transformer, weight: Weight) -> str:
    """'D · N · H · L' where these letters are the weight's shape, and otherwise its name."""
    letters = _LETTERS.get(weight.name, "")
    if tuple(getattr(model, letter) for letter in letters) != weight.shape:
        return f"{weight.name} · copies"
    times = {1: (), model.L: ("L",)}.get(weight.copies, (figure(weight.copies),))
    return " · ".join((*letters, *times))


def _flops(forward: Flops, training: Flops) -> Iterator[Line]:
    for term in forward.terms:
        formula = _WORDS.get(term.name, f"2 · B · T · (weights of the {term.name})")
        yield Line(f"FLOPs, {term.name}", formula, _counted(forward, term.why), term.value, "FLOPs")
    terms = added(figure(term.value) for term in forward.terms)
    yield Line("FLOPs, forward", "the parts added", terms, forward.total, "FLOPs")
    thrice = product(3, forward.total)
    yield Line("FLOPs, forward and backward", "3 · FLOPs, forward", thrice, training.total, "FLOPs")


def _counted(forward: Flops, why: str) -> str:
    return f"{figure(forward.sequences)} × ({why})" if forward.sequences != 1 else why


def _cache(cache: KVCache) -> Iterator[Line]:
    per_token = "L · (kv rank + rope)" if cache.model.latent else "2 · L · K · H"
    formula = f"{per_token} · positions · B · bytes"
    for term in cache.terms:
        numbers = f"{term.why} × {figure(cache.sequences)} sequences × {cache.dtype.bytes:g} bytes"
        yield Line(f"KV cache, {term.name}", formula, numbers, term.value, "B")


def _state(state: TrainingState) -> Iterator[Line]:
    for term in state.terms:
        numbers = f"{figure(state.params)} × {term.why}"
        yield Line(f"training state, {term.name}", "P · bytes", numbers, term.value, "B")


def run(of: TrainingFlops) -> Iterator[Line]:
    """The FLOPs of a whole run, exact and by the rule of thumb."""
    numbers = f"{figure(of.tokens)} tokens in sequences of {of.exact.T:,}"
    formula = "tokens · FLOPs for one token, forward and backward"
    yield Line("FLOPs of the run", formula, numbers, of.total, "FLOPs")
    numbers = product(6, of.exact.model.active_params, of.tokens)
    yield Line("FLOPs of the run, by the rule", "6 · P · tokens", numbers, of.six_nd, "FLOPs")
