"""The command `scalingbook model`: parameters, FLOPs, KV cache and training state of a model."""

from collections.abc import Iterator

import click

from scalingbook_cli import parameter_types
from scalingbook_cli.answer import (
    Answer,
    DerivationLine,
    TextTable,
    added,
    answer_command,
    fields_of,
    figure,
    format_value,
    nbytes,
    part_label,
    product,
)
from scalingbook_lib.models import Transformer, Weight, arithmetic, quantization, quantized
from scalingbook_lib.models.arithmetic import Bytes, Flops, KVCache, Terms, TrainingFlops, TrainingState
from scalingbook_lib.models.quantization import WeightStorage
from scalingbook_lib.units import BF16, FP32, DType, count, count_in_words, percent

LETTERS = "DLVNKHF"


@click.command("model", short_help="Parameters, FLOPs, KV cache and training state of a model.")
@click.argument("model", type=parameter_types.MODEL)
@parameter_types.option_with_default(
    "--sequence T", parameter_types.WHOLE, "8192", "Sequence length in tokens."
)
@parameter_types.option_with_default("--batch", parameter_types.WHOLE, "1", "Batch size in sequences.")
@click.option("--context", "S", type=parameter_types.WHOLE, help="Tokens in the KV cache, if not --sequence.")
@click.option("--causal", is_flag=True, help="Do not count the scores that the causal mask removes.")
@click.option(
    "--cache", type=parameter_types.DTYPE, help="The dtype of the KV cache.  [default: the file's, or bf16]"
)
@parameter_types.option_with_default(
    "--weights", parameter_types.DTYPE, BF16.name, "The dtype of the weights."
)
@parameter_types.option_with_default(
    "--gradients", parameter_types.DTYPE_OR_NONE, BF16.name, "The dtype of the gradients, or none."
)
@parameter_types.option_with_default(
    "--moments", parameter_types.DTYPE, FP32.name, "The dtype of Adam's two moments."
)
@parameter_types.option_with_default(
    "--master", parameter_types.DTYPE_OR_NONE, FP32.name, "The dtype of the master weights, or none."
)
@click.option(
    "--tokens",
    type=parameter_types.TOKENS,
    help="Tokens of a whole training run (15T), to count its FLOPs too.",
)
@answer_command
def command(
    *,
    model: Transformer,
    T: int,
    batch: int,
    S: int | None,
    causal: bool,
    cache: DType | None,
    tokens: int | None,
    **stored: DType | None,
) -> Answer:
    """Count the parameters, FLOPs, KV cache and training state of MODEL.

    MODEL is a name in the catalog (llama-3-70b), a Hugging Face id (Qwen/Qwen3-8B), the path of a config.json
    or of its folder, or - for a config.json on standard input.
    """
    forward = arithmetic.flops(model, batch, T, causal=causal)
    training = arithmetic.flops(model, batch, T, causal=causal, training=True)
    held = arithmetic.kv_cache(model, S or T, cache or model.cache_dtype, sequences=batch)
    states = arithmetic.states(model, sequences=batch)
    state = arithmetic.training_state(model, **stored)  # type: ignore[arg-type]  # of weights and moments, never none
    run = arithmetic.training_flops(model, tokens, T, causal=causal) if tokens else None
    lines = _derivation(forward, training, held, states, state)
    on_disk = quantization.storage(model)
    stored_as = (_stored(on_disk),) if model.quantization or model.base_dtype != BF16.name else ()
    return Answer(
        summary=str(model),
        tables=(
            _parameters(model),
            *stored_as,
            _flops(forward, training, run),
            _cache(held, states),
            _state(state),
        ),
        values={"model": model.name, "shape": fields_of(model, *LETTERS)}
        | {"not_counted": list(model.not_counted), "assumed": _assumed(model)}
        | _values(forward, training, held, states, state)
        | {"stored": {"total_bytes": on_disk.nbytes, "bytes_by_part": dict(on_disk.parts)}}
        | (_run_values(run) if run else {}),
        steps=(*lines, *(_run_derivation(run) if run else ())),
    )


def _assumed(model: Transformer) -> list[str]:
    """What no file says of the model, and the type of its weights if only the checkpoint's name tells it."""
    kind = quantized.named_format(model.quantization)
    return [*model.assumed, *([f"weights in {kind}, by the name of the checkpoint"] if kind else [])]


def _parameters(model: Transformer) -> TextTable:
    counted = arithmetic.params(model)
    active = {term.name: term.value for term in counted.active_terms}
    rows = [
        (
            part_label(t.name),
            count_in_words(t.value),
            f"{t.value:,}",
            count_in_words(active.get(t.name, 0)),
            percent(counted.share(t.name)),
        )
        for t in counted.terms
    ]
    rows.append(
        (
            "all",
            count_in_words(counted.total),
            f"{counted.total:,}",
            count_in_words(counted.model.active_params),
            "",
        )
    )
    return TextTable("Parameters", ("part", "", "exactly", "for one token", "share"), tuple(rows))


def _flops(forward: Flops, training: Flops, run: TrainingFlops | None) -> TextTable:
    what = f"{count(forward.sequences)} × {count(forward.T)} tokens"
    columns = ["part", "forward", "forward and backward", "share"]
    rows = [
        [
            part_label(name),
            format_value(forward[name], "FLOPs"),
            format_value(training[name], "FLOPs"),
            percent(forward.share(name)),
        ]
        for name in forward.names
    ]
    rows.append(["all", format_value(forward.total, "FLOPs"), format_value(training.total, "FLOPs"), ""])
    if run:
        columns.append(f"{count(run.tokens)} tokens")
        for row, name in zip(rows, forward.names, strict=False):
            row.append(format_value(run.exact[name], "FLOPs"))
        rows[-1].append(format_value(run.total, "FLOPs"))
        rows.append(["6 · P · tokens", "", "", percent(run.six_nd_error), format_value(run.six_nd, "FLOPs")])
    return TextTable(f"FLOPs, {what}", tuple(columns), tuple(map(tuple, rows)))


def _stored(on_disk: WeightStorage) -> TextTable:
    """The bytes of the weights as the file stores them, with its formats."""
    rows = [(part, nbytes(n)) for part, n in on_disk.parts]
    formats = ", ".join(f"{count(n)} in {name}" for name, n in on_disk.formats)
    return TextTable(
        "Weights as the file stores them", (formats, "bytes"), (*rows, ("all", nbytes(on_disk.nbytes)))
    )


def _cache(cache: KVCache, states: Bytes) -> TextTable:
    """The cache by kind of layer, and the states of recurrences, which do not grow with the sequence."""
    rows = [(term.name, term.why, nbytes(term.value)) for term in (*cache.terms, *states.terms)]
    rows.append(("one more token", "", nbytes(cache.next_token_bytes)))
    rows.append(("all", "", nbytes(cache.total + states.total)))
    what = "KV cache and recurrent states" if states.terms else "KV cache"
    title = f"{what}, {count(cache.sequences)} × {count(cache.S)} positions in {cache.dtype}"
    return TextTable(title, ("layers", "", "bytes"), tuple(rows))


def _state(state: TrainingState) -> TextTable:
    rows = [(term.name, term.why, nbytes(term.value)) for term in state.terms]
    rows.append(("all", f"{state.bytes_per_parameter:g} bytes each", nbytes(state.total)))
    return TextTable("Training state", ("part", "", "bytes"), tuple(rows))


def _by_name(terms: Terms) -> dict[str, float]:
    return {term.name: term.value for term in terms.terms}


def _values(
    forward: Flops, training: Flops, cache: KVCache, states: Bytes, state: TrainingState
) -> dict[str, object]:
    model = forward.model
    return {
        "parameters": {
            "total": model.params,
            "active": model.active_params,
            **fields_of(model, "by_part", "active_by_part"),
        },
        "flops": {
            "batch_size_sequences": forward.sequences,
            "sequence_length_tokens": forward.T,
            "tokens": forward.tokens,
            "forward_flops": forward.total,
            "training_flops": training.total,
            "forward_flops_per_token": forward.per_token,
            "forward_flops_by_part": _by_name(forward),
            "attention_share": forward.attention_share,
            "attention_crossover_tokens": arithmetic.crossover(model),
        },
        "kv_cache": {
            "dtype": cache.dtype.name,
            "batch_size_sequences": cache.sequences,
            "context_tokens": cache.S,
            "total_bytes": cache.total,
            "bytes_per_token": cache.bytes_per_token,
            "next_token_bytes": cache.next_token_bytes,
            "bytes_by_layers": _by_name(cache),
            "state_bytes": states.total,
            "bytes_by_state": _by_name(states),
        },
        "training_state": {
            "total_bytes": state.total,
            "bytes_per_parameter": state.bytes_per_parameter,
            "bytes_by_part": _by_name(state),
        },
    }


def _run_values(run: TrainingFlops) -> dict[str, object]:
    exact = {"tokens": run.tokens, "total_flops": run.total}
    return {"training_run": exact | {"six_nd_flops": run.six_nd, "six_nd_error": run.six_nd_error}}


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


def _derivation(
    forward: Flops, training: Flops, cache: KVCache, states: Bytes, state: TrainingState
) -> Iterator[DerivationLine]:
    """The derivation of every row of the tables."""
    yield from _parameter_lines(forward.model)
    yield from _flops_lines(forward, training)
    yield from _cache_lines(cache)
    for term in states.terms:
        numbers = f"{_sequences(cache.sequences)} × {term.why}"
        yield DerivationLine(term.name, "sequences · elements · bytes", numbers, term.value, "B")
    for term in state.terms:
        numbers = f"{figure(state.params)} × {term.why}"
        yield DerivationLine(f"training state, {term.name}", "P · bytes", numbers, term.value, "B")


def _sequences(n: int) -> str:
    return f"{figure(n)} sequence{'s' * (n != 1)}"


def _parameter_lines(model: Transformer) -> Iterator[DerivationLine]:
    for part, n in model.by_part.items():
        weights = [w for w in model.weights() if w.part == part and w.copies]
        formula = added(_formula(model, w) for w in weights)
        numbers = added(product(*w.shape, w.copies) for w in weights)
        yield DerivationLine(f"parameters, {part}", formula, numbers, n, "parameters")
    numbers = added(map(figure, model.by_part.values()))
    yield DerivationLine("P", "sum of the parts", numbers, model.params, "parameters")


def _formula(model: Transformer, weight: Weight) -> str:
    """'D · N · H · L' if these letters give the weight's shape, otherwise its name."""
    letters = _LETTERS.get(weight.name, "")
    if tuple(getattr(model, letter) for letter in letters) != weight.shape:
        return f"{weight.name} · copies"
    times = {1: (), model.L: ("L",)}.get(weight.copies, (figure(weight.copies),))
    return " · ".join((*letters, *times))


def _flops_lines(forward: Flops, training: Flops) -> Iterator[DerivationLine]:
    for term in forward.terms:
        formula = _WORDS.get(term.name, f"2 · B · T · (weights of the {part_label(term.name)})")
        numbers = f"{figure(forward.sequences)} × ({term.why})" if forward.sequences != 1 else term.why
        yield DerivationLine(f"FLOPs, {part_label(term.name)}", formula, numbers, term.value, "FLOPs")
    terms = added(figure(term.value) for term in forward.terms)
    yield DerivationLine("FLOPs, forward", "sum of the parts", terms, forward.total, "FLOPs")
    thrice = product(3, forward.total)
    yield DerivationLine("FLOPs, forward and backward", "3 · FLOPs, forward", thrice, training.total, "FLOPs")


def _cache_lines(cache: KVCache) -> Iterator[DerivationLine]:
    per_token = "L · (kv rank + rope)" if cache.model.latent else "2 · L · K · H"
    if cache.model.blocks:
        per_token = "layers · elements"
    formula = f"{per_token} · positions · B · bytes"
    for term in cache.terms:
        numbers = f"{term.why} × {_sequences(cache.sequences)} × {cache.dtype.bytes:g} bytes"
        yield DerivationLine(f"KV cache, {term.name}", formula, numbers, term.value, "B")


def _run_derivation(of: TrainingFlops) -> Iterator[DerivationLine]:
    """The FLOPs of a whole run, exact and by the rule of thumb."""
    numbers = f"{figure(of.tokens)} tokens in sequences of {of.exact.T:,}"
    formula = "tokens · FLOPs for one token, forward and backward"
    yield DerivationLine("FLOPs of the run", formula, numbers, of.total, "FLOPs")
    numbers = product(6, of.exact.model.active_params, of.tokens)
    yield DerivationLine("FLOPs of the run, by the rule", "6 · P · tokens", numbers, of.six_nd, "FLOPs")
