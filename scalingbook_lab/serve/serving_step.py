"""Compare a compiled decode step with the collectives and the memory that `inference` predicts.

`serving_step.of(config)` compares kind, axes, counts and bytes of the collectives. `held(config)` compares
the compiler's arguments with `inference.memory`, byte for byte. `largest_batch(config)` finds the largest
number of sequences of a whole model that fit. `config` is a `layout.Config`, for this machine's devices or
for a TPU slice. Wherever the laboratory's program differs from the plan on purpose, this module has a line
that gives the reason and the exact size of the difference. Chapters: Inference, Serving.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from scalingbook_lab.compiler import sharding
from scalingbook_lab.serve import decode, decoder
from scalingbook_lab.serve.layout import Config
from scalingbook_lab.serve.quantize import QuantizedConfig
from scalingbook_lab.train import agreement
from scalingbook_lab.train.agreement import SHAPES, Agreement
from scalingbook_lib import inference
from scalingbook_lib.hlo.predicted import KINDS, Amount, Key, Row, Sums
from scalingbook_lib.inference import traffic
from scalingbook_lib.inference.shape import shape
from scalingbook_lib.machines import chips, slices
from scalingbook_lib.units import DTYPES, FP32, DType, GiB, Result, binary, count

AXES_OF = {
    "Y": decoder.AXES,
    "C": decoder.INNER,
    "G": decoder.INNER,
    "B": "Z",
    "S": "C",
}  # mesh axes, by the plan's letters
TOKEN_BYTES = 4  # bytes of a token id, which is sent with its logit


def of(config: Config, T: int = 1) -> Agreement:
    """Return predicted and compiled collectives of one step of T new tokens for each sequence."""
    comparison = agreement.compare(predicted(config, T), decode.program(config, T, greedy=True).collectives)
    return Agreement(tuple(line for line in comparison.lines if line.predicted or line.compiled))


def plan(config: Config) -> inference.Layout:
    """Return the configuration's mesh and data types as a layout; all axes together shard every weight."""
    n = config.sizes
    cache_dtype = min((s.dtype for s in jax.tree.leaves(config.structs[1])), key=lambda kind: kind.itemsize)
    return inference.Layout(
        tp=config.degree(decoder.AXES),
        rows=n["X"],
        attention_dp=n["A"],
        kv_batch=n["X"] * n["Z"],
        kv_sequence=n["C"],
        weights=dtype(config.stored if isinstance(config, QuantizedConfig) else config.dtype),
        kv=dtype(cache_dtype),
        activations=dtype(config.dtype),
    )


def dtype(kind: Any) -> DType:
    """Return JAX's data type as one of the library's."""
    return next(
        DTYPES[name] for name, other in sharding.JAX_DTYPES.items() if jnp.dtype(other) == jnp.dtype(kind)
    )


def machine(config: Config) -> slices.Slice:
    """Return a slice with the mesh's number of chips; bytes do not depend on its shape."""
    return slices.Slice(chips.V5E, SHAPES[config.degree(decoder.AXES)])


def predicted(config: Config, T: int = 1) -> Sums:
    """Return the collectives that the plan predicts, adjusted for the laboratory program's intended
    differences.
    """
    planned = traffic.rows(shape(config.model, plan(config)), machine(config), inference.PEAK)
    rows = [row for t in planned for row in _predicted_row(config, t, T)]
    return agreement.over_devices([*rows, *_differences(config, T)], config.sizes)


def _predicted_row(config: Config, t: inference.ServingCollective, T: int) -> Iterator[Row]:
    """Yield the rows of one predicted collective, with the laboratory's axes.

    An all-reduce becomes a reduce-scatter and an all-gather.
    """
    nbytes = t.times * t.nbytes(config.sequences * T, config.sequences)
    # the laboratory writes an all-reduce as its two halves, with the norm between them
    for kind in ("reduce-scatter", "all-gather") if t.what == "AllReduce" else (KINDS[t.what],):
        yield Key(kind, AXES_OF.get(t.axis, t.axis)), Amount(t.times, nbytes)


def _differences(config: Config, T: int) -> Iterator[Row]:
    """Yield the transfers in which the laboratory's program differs from the plan."""
    yield from _ends(config, T)
    if config.sizes["C"] > 1:
        yield from _sums_over_tokens(config, T)
    if config.sizes["X"] > 1:
        yield from _rows(config, T)


def _ends(config: Config, T: int) -> Iterator[Row]:
    """Yield the differences at the embedding and at the logits.

    Embeddings are sharded over D, so a lookup is local and its result is already where the layers need it.
    Every group has its own sequences. Only the logits need all of them: first those of a group, then all.
    """
    m, n, tokens = config.model, config.sizes, config.sequences * T
    all_tokens = plan(config).activations.bytes * tokens * m.D
    yield Key("reduce-scatter", decoder.AXES), Amount(-1, -all_tokens)
    last = all_tokens / T
    if n["A"] == n["X"] == 1:
        yield Key("all-gather", decoder.AXES), Amount(0, last - all_tokens)
        return
    output_bytes = -(FP32.bytes + TOKEN_BYTES) * config.sequences * config.degree(decoder.AXES)
    yield Key("all-gather", decoder.AXES), Amount(-2, output_bytes - all_tokens)
    yield Key("all-gather", decoder.INNER), Amount(1, last / (n["A"] * n["X"]))
    if n["A"] > 1:
        yield Key("all-gather", "A"), Amount(1, last / n["X"])
    yield Key("all-gather", decoder.COLUMNS), Amount(1, -output_bytes / n["X"])


def _sums_over_tokens(config: Config, T: int) -> Iterator[Row]:
    """Yield the extra transfer of the softmax: the largest score must be known before sums are rescaled to
    it.
    """
    m, n = config.model, config.sizes
    scores = FP32.bytes * config.sequences * T * m.N / (n["Y"] * n["A"] * n["X"] * n["Z"])
    yield Key("reduce-scatter", "C"), Amount(0, -m.L * scores)
    yield Key("all-reduce", "C"), Amount(m.L, m.L * scores)


def _rows(config: Config, T: int) -> Iterator[Row]:
    """Yield the sums over rows of D: the squares of every norm, the logits, and the router scores."""
    m, c, tokens = config.model, config.degree(decoder.COLUMNS), config.sequences * T
    kv_bytes = plan(config).activations.bytes * 2 * m.K * m.H * tokens * m.L
    replicated = (
        kv_bytes / min(m.K, config.degree("YZ")) - kv_bytes / c
    )  # keys and values, which all devices of C compute
    yield Key("reduce-scatter", "X"), Amount(0, replicated)
    yield Key("all-reduce", "X"), Amount(2 * m.L, FP32.bytes * tokens * 2 * m.L)
    yield Key("all-reduce", "X"), Amount(2, FP32.bytes * config.sequences * (1 + m.V / c))


RESERVED = GiB / 4  # what the TPU compiler reserves on each chip: 15.75 of v5e's 16 GiB are usable


@dataclass(frozen=True, slots=True)
class StepMemory(Result):
    """Bytes on one device: predicted weights, cache and scales; compiled arguments and temporaries."""

    weights: float
    kv: float
    scales: float
    arguments: int
    temporaries: int

    @property
    def predicted(self) -> float:
        """The weights, the cache, and the scales of both, which no plan counts."""
        return self.weights + self.kv + self.scales

    def __str__(self) -> str:
        scales = f", scales {binary(self.scales)}" if self.scales else ""
        parts = f"weights {binary(self.weights)}, cache {binary(self.kv)}{scales}"
        return (
            f"predicted {binary(self.predicted)}: {parts}; compiled {binary(self.arguments)}, "
            f"and {binary(self.temporaries)} of temporaries"
        )


def held(config: Config) -> StepMemory:
    """Return predicted and compiled memory of one decode step."""
    planned = _predicted_memory(config)
    memory = decode.program(config, greedy=True).memory
    return StepMemory(planned.weights, planned.kv, scales(config), memory.arguments, memory.temporaries)


def scales(config: Config) -> float:
    """Return the bytes of all scales on one device."""
    found = jax.tree_util.tree_leaves_with_path(config.structs)
    sizes = (
        math.prod(s.sharding.shard_shape(s.shape)) * s.dtype.itemsize
        for path, s in found
        if "scale" in str(path[-1])
    )
    return float(sum(sizes))


def _predicted_memory(config: Config) -> inference.ServingMemory:
    """Return the plan's memory for this configuration."""
    return inference.memory(
        config.model, plan(config), machine(config), batch=config.sequences, S=config.tokens
    )


@dataclass(frozen=True, slots=True)
class Largest(Result):
    """The largest number of sequences whose cache fits in `limit` bytes per device, and the bytes per
    sequence.
    """

    sequences: int
    tokens: int
    fixed: float
    per_sequence: float
    limit: float

    def __str__(self) -> str:
        free = self.limit - self.fixed - self.sequences * self.per_sequence
        fixed = f"{binary(self.fixed)} of weights and temporaries"
        return (
            f"{count(self.sequences)} sequences of {count(self.tokens)} tokens: {fixed}, "
            f"{binary(self.per_sequence)} a sequence, {binary(free)} of {binary(self.limit)} free"
        )


def largest_batch(config: Config, layers: int = 2) -> Largest:
    """Return the largest number of sequences of the whole model, from the plan's memory and compiled
    temporaries.

    Temporaries are compiled for a few layers at the batch of `config`, a guess that should be near the
    answer. They grow with the batch but hardly with the number of layers, which reuse them.
    """
    few = replace(config, model=replace(config.model, L=layers))
    temporaries = decode.program(few, greedy=True).memory.temporaries
    # memory is linear in the sequences, so two batches give the fixed part and the part per sequence
    once, twice = (replace(config, sequences=config.sequences * n) for n in (1, 2))
    low, high = (_predicted_memory(c).weights + _predicted_memory(c).kv + scales(c) for c in (once, twice))
    per_sequence = (high - low) / config.sequences
    fixed = low - per_sequence * config.sequences + temporaries
    limit = machine(config).chip.hbm_bytes - RESERVED
    return Largest(int((limit - fixed) // per_sequence), config.tokens, fixed, per_sequence, limit)
