"""Generate the questions of the estimation game: twelve kinds, each with random sizes, by number.

Question n is of kind n modulo twelve, with sizes drawn from n alone, so it is the same for every reader.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from scalingbook_lib import collectives, models, roofline, rules
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.steps import pipelines
from scalingbook_lib.training.run import DAY_S
from scalingbook_lib.units import count, count_in_words, dtype, percent, si

_TORUS = (chips.V5E, chips.V5P, chips.V6E, chips.TPU7X)
_SWITCHED = (chips.A100, chips.H100, chips.B200)
_CHIPS = (*_TORUS, *_SWITCHED)
_MODELS = ("Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "Llama 2 13B", "Qwen3 32B")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, in short and in full, with the library's answer in base units and the way to it."""

    title: str
    asked: str
    value: float
    unit: str
    way: str


def question(number: int) -> Question:
    """Question 1, 2, 3 ...; the kinds take turns."""
    return _KINDS[(number - 1) % len(_KINDS)](Random(f"question {number}"))


def _state(r: Random) -> Question:
    model = models.find(r.choice(_MODELS))
    return Question(
        f"Training state of {model.name}",
        f"How many bytes do weights, gradients and Adam's state of {model.name} take, with bf16 "
        "weights and gradients and an fp32 copy?",
        arithmetic.training_state(model).total,
        "B",
        f"16 bytes for each of {count_in_words(model.params)} parameters",
    )


def _product(r: Random) -> Question:
    chip, B, D = r.choice(_CHIPS), 2 ** r.randint(3, 13), 2 ** r.randint(11, 14)
    found = roofline.matmul(B, D, 4 * D, chip)
    binds = "bytes over HBM bandwidth" if found.memory_s > found.math_s else "FLOPs over peak compute"
    return Question(
        f"X[{B:,}, {D:,}] · W[{D:,}, {4 * D:,}] on {chip.name}",
        f"How long does X[{B:,}, {D:,}] · W[{D:,}, {4 * D:,}] take at least, in bf16 on one {chip.name}?",
        found.lower_s,
        "s",
        f"{binds}: {si(found.math_s, 's')} of compute, {si(found.memory_s, 's')} of memory traffic",
    )


def _ridge(r: Random) -> Question:
    chip = r.choice(_CHIPS)
    return Question(
        f"Ridge point of {chip.name}",
        f"At how many tokens does a very wide layer in bf16 become compute-bound on {chip.name}?",
        rules.ridge(chip),
        "tokens",
        f"peak compute over HBM bandwidth: {si(chip.bf16_flops_per_s, 'FLOPs/s')} over "
        f"{si(chip.hbm_bytes_per_s, 'B/s')}",
    )


def _ring(r: Random) -> Question:
    chip, n, gathered = r.choice((chips.V5P, chips.V5E, chips.V6E)), 16, 10 ** r.randint(7, 9)
    return Question(
        f"AllGather to {si(gathered, 'B')}, ring of {n} {chip.name}",
        f"How long does an AllGather to {si(gathered, 'B')} take over a closed ring of {n} "
        f"{chip.name}, without latency?",
        collectives.all_gather(gathered, chip.axis(n, wrapped=True)).bandwidth_s,
        "s",
        f"15/16 of the bytes arrive over two links of {si(chip.link_bytes_per_s, 'B/s')} each",
    )


def _switch(r: Random) -> Question:
    gpu, moved = r.choice(_SWITCHED), 10 ** r.randint(8, 10)
    node = Cluster.of(gpu, 8)
    return Question(
        f"AllReduce of {si(moved, 'B')}, 8 {gpu.name}",
        f"How long does an AllReduce of {si(moved, 'B')} take over 8 {gpu.name} under one switch, without "
        "latency and without in-network reduction?",
        collectives.all_reduce(moved, *node.levels).bandwidth_s,
        "s",
        f"ReduceScatter and AllGather, 7/8 of the bytes each, at "
        f"{si(gpu.links * gpu.link_bytes_per_s, 'B/s')}",
    )


def _flops(r: Random) -> Question:
    model, tokens = models.find(r.choice(_MODELS)), r.choice((1e12, 2e12, 15e12))
    return Question(
        f"{model.name}, {count(tokens / 1e12)} trillion tokens",
        f"How many FLOPs does it take to train {model.name} on {count(tokens / 1e12)} trillion tokens?",
        6 * model.params * tokens,
        "FLOPs",
        f"6 for each of {count_in_words(model.params)} parameters and each token",
    )


def _days(r: Random) -> Question:
    model, chip, n = models.find(r.choice(_MODELS)), r.choice(_CHIPS), 2 ** r.randint(9, 13)
    tokens, mfu = r.choice((1e12, 2e12, 15e12)), r.choice((0.3, 0.4, 0.5))
    seconds = 6 * model.params * tokens / (n * chip.bf16_flops_per_s * mfu)
    return Question(
        f"{model.name} on {n:,} {chip.name}",
        f"How many days does it take to train {model.name} on {count(tokens / 1e12)} trillion tokens "
        f"with {n:,} {chip.name} at {percent(mfu)} MFU?",
        seconds,
        "s",
        f"6 P tokens over n C MFU: {count(seconds / DAY_S)} days",
    )


def _hidden(r: Random) -> Question:
    chip = r.choice(_TORUS)
    axes = r.randint(1, chip.torus.dims if chip.torus else 1)
    named = "one torus axis" if axes == 1 else f"{axes} torus axes"
    return Question(
        f"FSDP on {chip.name}, {named}",
        f"How many tokens does each {chip.name} need to hide FSDP over {named}?",
        rules.data_parallel_tokens(chip, axes=axes),
        "tokens",
        f"C over the bandwidth of {2 * axes} links of {si(chip.link_bytes_per_s, 'B/s')}",
    )


def _bubble(r: Random) -> Question:
    p = 2 ** r.randint(1, 4)
    m = p * 2 ** r.randint(0, 4)
    return Question(
        f"{p} stages, {m} microbatches",
        f"What fraction of a step is the 1F1B bubble of {p} equal stages with {m} microbatches?",
        float(pipelines.bubble("1f1b", p, m).share),
        "",
        f"(p − 1)/(m + p − 1) = {p - 1}/{m + p - 1}",
    )


def _cache(r: Random) -> Question:
    model, S = models.find(r.choice(_MODELS)), 2 ** r.randint(11, 17)
    found = arithmetic.kv_cache(model, S)
    return Question(
        f"KV cache of {S:,} tokens, {model.name}",
        f"How large is the bf16 KV cache of {S:,} tokens of {model.name} ({model.L} layers, {model.K} "
        f"key-value heads of {model.H})?",
        found.nbytes,
        "B",
        f"2 · {model.L} · {model.K} · {model.H} values of 2 bytes: "
        f"{si(found.bytes_per_token, 'B')} per token",
    )


def _decode(r: Random) -> Question:
    model, chip = models.find(r.choice(_MODELS)), r.choice(_CHIPS)
    n = 2 ** max(1, (int(2 * model.params / chip.hbm_bytes) + 1).bit_length())
    return Question(
        f"Decode step of {model.name} on {n} {chip.name}",
        f"How long does a decode step of {model.name} in bf16 take at least on {n} {chip.name}, for "
        "one short sequence?",
        rules.decode_step(model.params, chip, n, batch=1, cache_bytes=0.0).total_s,
        "s",
        f"{si(2 * model.params, 'B')} of weights over {n} times {si(chip.hbm_bytes_per_s, 'B/s')}",
    )


def _critical(r: Random) -> Question:
    chip = r.choice(_CHIPS)
    model = models.find("Llama 3 70B")
    return Question(
        f"Critical batch size, int8 weights, {chip.name}",
        "At what batch size does decoding with int8 weights, multiplied in bf16, become compute-bound "
        f"on {chip.name}, without the KV cache?",
        rules.critical_batch(chip, sparsity=model.sparsity, weights=dtype("int8")).tokens,
        "tokens",
        "half the ridge point, because a weight has 1 byte instead of 2",
    )


_KINDS: tuple[Callable[[Random], Question], ...] = (
    _state,
    _product,
    _ridge,
    _flops,
    _ring,
    _cache,
    _switch,
    _days,
    _decode,
    _hidden,
    _bubble,
    _critical,
)
