"""How are a model's parameters, FLOPs and bytes counted? In the book's letters, then in numbers."""

from collections.abc import Iterator

from scalingbook_lib.cli.answer import Step
from scalingbook_lib.cli.numbers import added, figure, product
from scalingbook_lib.models import Transformer, Weight
from scalingbook_lib.models.arithmetic import Flops, KVCache, TrainingFlops, TrainingState

_LETTERS = {
    "embed": "VD", "unembed": "DV", "q": "DNH", "k": "DKH", "v": "DKH", "o": "NHD",
    "gate": "DF", "up": "DF", "down": "FD", "final norm": "D", "layer norms": "D",
}  # fmt: skip
_WORDS = {
    "attention projections": "2 · B · T · (weights of q, k, v and o)",
    "scores": "2 · N · H · (pairs of a query and a key)",
    "weighted values": "2 · N · H · (pairs of a query and a key)",
    "mlp": "2 · B · T · (weights of the MLPs)",
    "experts": "2 · B · T · (weights of the k experts that a token visits)",
    "unembedding": "2 · B · T · D · V",
}


def steps(
    model: Transformer, forward: Flops, training: Flops, kept: KVCache, state: TrainingState,
    run: TrainingFlops | None,
) -> tuple[Step, ...]:  # fmt: skip
    """Every line of the tables, derived."""
    return (
        *_parameters(model),
        *_flops(forward, training),
        *_cache(kept),
        *_state(state),
        *(_run(run) if run else ()),
    )


def _parameters(model: Transformer) -> Iterator[Step]:
    for part, n in model.by_part.items():
        weights = [w for w in model.weights() if w.part == part and w.copies]
        yield Step(
            name=f"parameters, {part}",
            formula=added(_formula(model, w) for w in weights),
            numbers=added(product(*w.shape, w.copies) for w in weights),
            value=n,
            unit="parameters",
        )
    numbers = added(map(figure, model.by_part.values()))
    yield Step(name="P", formula="the parts added", numbers=numbers, value=model.params, unit="parameters")


def _formula(model: Transformer, weight: Weight) -> str:
    """'D · N · H · L' where these letters are the weight's shape, and otherwise its name."""
    letters = _LETTERS.get(weight.name, "")
    if tuple(getattr(model, letter) for letter in letters) != weight.shape:
        return f"{weight.name} · copies"
    times = {1: (), model.L: ("L",)}.get(weight.copies, (figure(weight.copies),))
    return " · ".join((*letters, *times))


def _flops(forward: Flops, training: Flops) -> Iterator[Step]:
    for term in forward.terms:
        formula = _WORDS.get(term.name, f"2 · B · T · (weights of the {term.name})")
        yield Step(name=f"FLOPs, {term.name}", formula=formula, numbers=_counted(forward, term.why),
                   value=term.value, unit="FLOPs")  # fmt: skip
    terms = added(figure(term.value) for term in forward.terms)
    yield Step(
        name="FLOPs, forward", formula="the parts added", numbers=terms, value=forward.total, unit="FLOPs"
    )
    yield Step(name="FLOPs, forward and backward", formula="3 · FLOPs, forward",
               numbers=product(3, forward.total), value=training.total, unit="FLOPs")  # fmt: skip


def _counted(forward: Flops, why: str) -> str:
    return f"{figure(forward.sequences)} × ({why})" if forward.sequences != 1 else why


def _cache(kept: KVCache) -> Iterator[Step]:
    per_token = "L · (kv rank + rope)" if kept.model.latent else "2 · L · K · H"
    for term in kept.terms:
        yield Step(name=f"KV cache, {term.name}", formula=f"{per_token} · positions · B · bytes",
                   numbers=f"{term.why} × {figure(kept.sequences)} sequences × {kept.dtype.bytes:g} bytes",
                   value=term.value, unit="B")  # fmt: skip


def _state(state: TrainingState) -> Iterator[Step]:
    for term in state.terms:
        yield Step(name=f"training state, {term.name}", formula="P · bytes",
                   numbers=f"{figure(state.params)} × {term.why}", value=term.value, unit="B")  # fmt: skip


def _run(run: TrainingFlops) -> Iterator[Step]:
    active = run.exact.model.active_params
    yield Step(name="FLOPs of the run", formula="tokens · FLOPs for one token, forward and backward",
               numbers=f"{figure(run.tokens)} tokens in sequences of {run.exact.T:,}", value=run.total,
               unit="FLOPs")  # fmt: skip
    yield Step(name="FLOPs of the run, by the rule", formula="6 · P · tokens",
               numbers=product(6, active, run.tokens), value=run.six_nd, unit="FLOPs")  # fmt: skip
