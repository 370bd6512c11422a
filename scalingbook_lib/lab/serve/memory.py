"""How much of each device does a compiled decode step fill, and how many sequences does that leave room for?

`held(config)` sets the compiler's arguments beside `inference.memory`, byte for byte; `largest_batch(config)`
is the most sequences of a whole model that the compiler's limit lets in. Chapters: Inference, Serving.
"""

import math
from dataclasses import dataclass, replace

import jax

from scalingbook_lib import inference
from scalingbook_lib.lab.serve import decode, step
from scalingbook_lib.lab.serve.layout import Config
from scalingbook_lib.units import GiB, Told, binary, count

RESERVED = GiB / 4  # of each chip, by the TPU compiler for itself: 15.75 GiB of v5e's 16 are left


@dataclass(frozen=True, slots=True)
class Held(Told):
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


def held(config: Config) -> Held:
    """Prediction and compiled program of one decode step."""
    told = _predicted(config)
    memory = decode.program(config, greedy=True).memory
    return Held(told.weights, told.kv, scales(config), memory.arguments, memory.temporaries)


def scales(config: Config) -> float:
    """The bytes of all scales on one device."""
    found = jax.tree_util.tree_leaves_with_path(config.structs)
    sizes = (
        math.prod(s.sharding.shard_shape(s.shape)) * s.dtype.itemsize
        for path, s in found
        if "scale" in str(path[-1])
    )
    return float(sum(sizes))


def _predicted(config: Config) -> inference.Memory:
    plan, machine = step.plan(config), step.machine(config)
    return inference.memory(config.model, plan, machine, B=config.sequences, S=config.tokens)


@dataclass(frozen=True, slots=True)
class Largest(Told):
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
    limit = step.machine(config).chip.hbm_bytes - RESERVED
    return Largest(int((limit - fixed) // each), config.tokens, fixed, each, limit)
