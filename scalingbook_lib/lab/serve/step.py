"""Does a compiled decode step communicate what `inference` says it must, and hold what it says?

`serving_step.of(config)` sets prediction and compiled program side by side: kind, axes, how often, how many
bytes; `held(config)` the compiler's arguments beside `inference.memory`, byte for byte, and
`largest_batch(config)` is the most sequences of a whole model that the compiler's limit lets in. `config`
is a `layout.Config`, for this machine's devices or for a TPU slice. Where the laboratory's program differs
from the plan on purpose, the difference is a line of this module with its reason and its exact size.
Chapters: Inference, Serving.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from scalingbook_lib import inference
from scalingbook_lib.inference import traffic
from scalingbook_lib.inference.shape import shape
from scalingbook_lib.lab.compiler import sharding
from scalingbook_lib.lab.compiler.predicted import KINDS, Amount, Key, Row, Sums
from scalingbook_lib.lab.serve import decode, decoder
from scalingbook_lib.lab.serve.layout import Config
from scalingbook_lib.lab.serve.quantize import Narrow
from scalingbook_lib.lab.train import agreement
from scalingbook_lib.lab.train.agreement import SHAPES, Agreement
from scalingbook_lib.machines import chips, slices
from scalingbook_lib.units import DTYPES, FP32, DType, GiB, Result, binary, count

WIDTHS = {"Y": decoder.AXES, "C": decoder.INNER, "G": decoder.INNER, "B": "Z", "S": "C"}  # by plan's letters
INDEX = 4  # bytes of a word's number, sent with its logit


def of(config: Config, T: int = 1) -> Agreement:
    """Prediction and compiled program of one step of T new tokens for each sequence."""
    told = agreement.beside(predicted(config, T), decode.program(config, T, greedy=True).collectives)
    return Agreement(tuple(line for line in told.lines if line.predicted or line.compiled))


def plan(config: Config) -> inference.Layout:
    """The configuration's mesh and types as a layout: all axes together share every weight."""
    n = config.sizes
    narrow = min((s.dtype for s in jax.tree.leaves(config.structs[1])), key=lambda kind: kind.itemsize)
    return inference.Layout(
        tp=config.ways(decoder.AXES),
        rows=n["X"],
        attention_dp=n["A"],
        kv_batch=n["X"] * n["Z"],
        kv_sequence=n["C"],
        weights=dtype(config.stored if isinstance(config, Narrow) else config.dtype),
        kv=dtype(narrow),
        activations=dtype(config.dtype),
    )


def dtype(kind: Any) -> DType:
    """JAX's data type in the book's words."""
    return next(
        DTYPES[name] for name, other in sharding.JAX_DTYPES.items() if jnp.dtype(other) == jnp.dtype(kind)
    )


def machine(config: Config) -> slices.Slice:
    """A slice of so many chips: bytes do not depend on its shape."""
    return slices.Slice(chips.V5E, SHAPES[config.ways(decoder.AXES)])


def predicted(config: Config, T: int = 1) -> Sums:
    """What the plan says, and what the laboratory's program does otherwise."""
    told = traffic.rows(shape(config.model, plan(config)), machine(config), inference.PEAK)
    rows = [row for t in told for row in _said(config, t, T)]
    return agreement.over_devices([*rows, *_otherwise(config, T)], config.sizes)


def _said(config: Config, t: inference.ServingCollective, T: int) -> Iterator[Row]:
    """One row of the prediction in the laboratory's terms; a sum is a reduce-scatter and an all-gather."""
    nbytes = t.times * t.nbytes(config.sequences * T, config.sequences)
    # the laboratory writes an all-reduce as its two halves, with the norm and the next gather between them
    for kind in ("reduce-scatter", "all-gather") if t.what == "AllReduce" else (KINDS[t.what],):
        yield Key(kind, WIDTHS.get(t.axis, t.axis)), Amount(t.times, nbytes)


def _otherwise(config: Config, T: int) -> Iterator[Row]:
    """Where the program differs."""
    yield from _ends(config, T)
    if config.sizes["C"] > 1:
        yield from _sums_over_tokens(config, T)
    if config.sizes["X"] > 1:
        yield from _rows(config, T)


def _ends(config: Config, T: int) -> Iterator[Row]:
    """Embeddings are split over D, so a lookup is local, and what is looked up lies where layers want it.

    Every group has its own sequences; only for the words do all see all: first those of a group, then all.
    """
    m, n, tokens = config.model, config.sizes, config.sequences * T
    whole = plan(config).activations.bytes * tokens * m.D
    yield Key("reduce-scatter", decoder.AXES), Amount(-1, -whole)
    last = whole / T
    if n["A"] == n["X"] == 1:
        yield Key("all-gather", decoder.AXES), Amount(0, last - whole)
        return
    words = -(FP32.bytes + INDEX) * config.sequences * config.ways(decoder.AXES)
    yield Key("all-gather", decoder.AXES), Amount(-2, words - whole)
    yield Key("all-gather", decoder.INNER), Amount(1, last / (n["A"] * n["X"]))
    if n["A"] > 1:
        yield Key("all-gather", "A"), Amount(1, last / n["X"])
    yield Key("all-gather", decoder.COLUMNS), Amount(1, -words / n["X"])


def _sums_over_tokens(config: Config, T: int) -> Iterator[Row]:
    """The largest score must be known before sums are scaled to it: one of two numbers is summed at once."""
    m, n = config.model, config.sizes
    scores = FP32.bytes * config.sequences * T * m.N / (n["Y"] * n["A"] * n["X"] * n["Z"])
    yield Key("reduce-scatter", "C"), Amount(0, -m.L * scores)
    yield Key("all-reduce", "C"), Amount(m.L, m.L * scores)


def _rows(config: Config, T: int) -> Iterator[Row]:
    """Over rows of D: the squares of every norm are summed, and so are logits, and scores of experts."""
    m, c, tokens = config.model, config.ways(decoder.COLUMNS), config.sequences * T
    kinds = plan(config).activations.bytes * 2 * m.K * m.H * tokens * m.L
    copies = kinds / min(m.K, config.ways("YZ")) - kinds / c  # keys and values, made by all of C
    yield Key("reduce-scatter", "X"), Amount(0, copies)
    yield Key("all-reduce", "X"), Amount(2 * m.L, FP32.bytes * tokens * 2 * m.L)
    yield Key("all-reduce", "X"), Amount(2, FP32.bytes * config.sequences * (1 + m.V / c))


RESERVED = GiB / 4  # of each chip, by the TPU compiler for itself: 15.75 GiB of v5e's 16 are left


@dataclass(frozen=True, slots=True)
class StepMemory(Result):
    """Bytes on one device: predicted weights, cache and scales, the compiler's arguments and temporaries."""

    weights: float
    kv: float
    scales: float
    arguments: int
    temporaries: int

    @property
    def predicted(self) -> float:
        """Weights, cache, and the scales of both, which no plan counts."""
        return self.weights + self.kv + self.scales

    def __str__(self) -> str:
        scales = f", scales {binary(self.scales)}" if self.scales else ""
        parts = f"weights {binary(self.weights)}, cache {binary(self.kv)}{scales}"
        return (
            f"predicted {binary(self.predicted)}: {parts}; compiled {binary(self.arguments)}, "
            f"and {binary(self.temporaries)} of temporaries"
        )


def held(config: Config) -> StepMemory:
    """Prediction and compiled program of one decode step."""
    told = _predicted(config)
    memory = decode.program(config, greedy=True).memory
    return StepMemory(told.weights, told.kv, scales(config), memory.arguments, memory.temporaries)


def scales(config: Config) -> float:
    """The bytes of all scales on one device."""
    found = jax.tree_util.tree_leaves_with_path(config.structs)
    sizes = (
        math.prod(s.sharding.shard_shape(s.shape)) * s.dtype.itemsize
        for path, s in found
        if "scale" in str(path[-1])
    )
    return float(sum(sizes))


def _predicted(config: Config) -> inference.ServingMemory:
    return inference.memory(config.model, plan(config), machine(config), B=config.sequences, S=config.tokens)


@dataclass(frozen=True, slots=True)
class Largest(Result):
    """The most sequences whose cache fits, of `limit` bytes a device, and what each of them takes there."""

    sequences: int
    tokens: int
    fixed: float
    each: float
    limit: float

    def __str__(self) -> str:
        left = self.limit - self.fixed - self.sequences * self.each
        fixed = f"{binary(self.fixed)} of weights and temporaries"
        return (
            f"{count(self.sequences)} sequences of {count(self.tokens)} tokens: {fixed}, "
            f"{binary(self.each)} a sequence, {binary(left)} of {binary(self.limit)} left"
        )


def largest_batch(config: Config, layers: int = 2) -> Largest:
    """The most sequences of the whole model: what the plan says it holds, and temporaries as compiled.

    These are compiled for a few layers at the batch of `config`, a guess that should be near the answer: they
    grow with the batch, and hardly with the layers, which use the same ones.
    """
    few = replace(config, model=replace(config.model, L=layers))
    temporaries = decode.program(few, greedy=True).memory.temporaries
    # what is held is linear in the sequences: two batches give the fixed part and that of each
    one, two = (replace(config, sequences=config.sequences * n) for n in (1, 2))
    low, high = (_predicted(c).weights + _predicted(c).kv + scales(c) for c in (one, two))
    each = (high - low) / config.sequences
    fixed = low - each * config.sequences + temporaries
    limit = machine(config).chip.hbm_bytes - RESERVED
    return Largest(int((limit - fixed) // each), config.tokens, fixed, each, limit)
