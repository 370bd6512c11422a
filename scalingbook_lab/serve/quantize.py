"""Quantize weights to int8 or int4 and the KV cache to int8, and measure the error of the logits.

`QuantizedConfig(model, mesh, stored=jnp.int8)` is a `layout.Config` whose weights are integers with a scale
per output channel; `codec=CACHE8` stores keys and values as int8 with a scale per token per head. The error
of each number is at most half a quantization step. `compare_logits` measures the effect on the logits.
Chapter: Serving.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from scalingbook_lab.serve import decode
from scalingbook_lab.serve.layout import Cache, Config, Params
from scalingbook_lab.serve.paged_attention import Codec
from scalingbook_lab.train import transformer
from scalingbook_lib.notation import parse
from scalingbook_lib.units import Result, percent

CONTRACTED = {
    "o": "NH",
    "down": "F",
    "expert down": "F",
    "embed": "D",
}  # the dimensions that a matmul contracts, or those of one row of a lookup
UNQUANTIZED = ("norm", "router")  # weights that are not quantized

type Quantized = Mapping[str, jax.Array]  # {"whole": the integers, "scale": of each channel}


def max_level(stored: Any) -> int:
    """Return the largest integer in use: 127 for int8, 7 for int4."""
    return int(jnp.iinfo(stored).max)


def quantize(
    x: jax.Array, axes: tuple[int, ...], stored: Any = jnp.int8, *, scale: Any = jnp.float32
) -> Quantized:
    """Return x as integers, with one scale for all elements that are summed over `axes`."""
    largest = jnp.abs(x.astype(jnp.float32)).max(axes, keepdims=True)
    # a channel of zeros would divide 0 by 0, so its step is 1
    step = (jnp.where(largest == 0, 1, largest) / max_level(stored)).astype(scale)
    integers = jnp.clip(jnp.round(x / step.astype(jnp.float32)), -max_level(stored), max_level(stored))
    return {"whole": integers.astype(stored), "scale": step}


def dequantize(numbers: Quantized, dtype: Any = jnp.float32) -> jax.Array:
    """Return the numbers that `quantize` encoded, each with an error of at most half a step."""
    return numbers["whole"].astype(dtype) * numbers["scale"].astype(dtype)


def summed_axes(name: str, *, in_layer: bool = True) -> tuple[int, ...]:
    """Return the dimensions of a weight over which its matmul sums."""
    dims = parse(transformer.SPLIT[name]).dims
    names = [dim.name for dim in dims if not (in_layer and dim.name == "L")]
    # a scale must be the same for all terms of a sum, so that it can multiply the sum
    return tuple(k for k, n in enumerate(names) if n in CONTRACTED.get(name, "D"))


# --- cache -----------------------------------------------------------------------------------------------


def encoded(k: jax.Array, v: jax.Array) -> dict[str, jax.Array]:
    """Return k[b, t, K, H] and v as int8, with a scale per token per head in the data type of k."""
    both = {name: quantize(x, (3,), scale=x.dtype) for name, x in (("k", k), ("v", v))}
    return {f"{name} {part}": x for name, numbers in both.items() for part, x in numbers.items()}


def decoded(cache: Mapping[str, jax.Array]) -> tuple[jax.Array, ...]:
    """Return the stored integers and their scales, which attention applies after its matmuls."""
    return tuple(cache[f"{name} {part}"] for part in ("whole", "scale") for name in "kv")


CACHE8 = Codec(encoded, decoded)


# --- weights ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QuantizedConfig(Config):
    """A configuration whose weights, except norms and routers, are integers with scales."""

    stored: Any = jnp.int8

    def __post_init__(self) -> None:
        super().__post_init__()
        # the dataclass is frozen, and a default cannot depend on `dtype`
        object.__setattr__(self, "dequantize", functools.partial(dequantized, dtype=self.dtype))

    @functools.cached_property
    def structs(self) -> tuple[Params, Cache]:
        """Return the shape, dtype and sharding of every integer array and scale, and of the cache,
        unallocated.
        """
        weights, cache = super().structs
        return self._each(self._struct_of, weights), cache

    def params(self, weights: Mapping[str, Any]) -> Params:
        """Quantize the trainer's weights and place them on these devices."""
        given = self.by_layer({name: jnp.asarray(w) for name, w in weights.items()})
        rounded = self._each(lambda w, axes: quantize(w, axes, self.stored), given)
        return jax.tree.map(
            lambda a, s: jax.device_put(a.astype(s.dtype), s.sharding), rounded, self.structs[0]
        )

    def _each(self, fn: Any, params: Params) -> Params:
        """Replace each weight to be quantized by `fn` of the weight and its summed axes."""

        def quantize_all(weights: Mapping[str, Any]) -> Params:
            unchanged = {name: w for name, w in weights.items() if any(word in name for word in UNQUANTIZED)}
            axes = {
                name: summed_axes(name, in_layer=not self.scanned)
                for name in weights
                if name not in unchanged
            }
            return unchanged | {name: fn(weights[name], axes[name]) for name in axes}

        layers = params["layers"]
        ends = quantize_all({name: w for name, w in params.items() if name != "layers"})
        return ends | {
            "layers": quantize_all(layers) if self.scanned else [quantize_all(layer) for layer in layers]
        }

    def _struct_of(self, s: jax.ShapeDtypeStruct, axes: tuple[int, ...]) -> dict[str, jax.ShapeDtypeStruct]:
        """Return the shapes of a quantized weight and of its scale."""
        spec = [*s.sharding.spec, *[None] * (s.ndim - len(s.sharding.spec))]
        scale_dims = [
            (1, None) if k in axes else pair for k, pair in enumerate(zip(s.shape, spec, strict=True))
        ]
        place = NamedSharding(self.device_mesh, PartitionSpec(*(axis for _, axis in scale_dims)))
        scale = jax.ShapeDtypeStruct(tuple(n for n, _ in scale_dims), jnp.float32, sharding=place)
        return {"whole": jax.ShapeDtypeStruct(s.shape, self.stored, sharding=s.sharding), "scale": scale}


@dataclass(frozen=True, slots=True)
class QuantizedEmbedding:
    """An embedding table that dequantizes only the rows that are looked up."""

    numbers: Quantized
    dtype: Any

    def __getitem__(self, rows: jax.Array) -> jax.Array:
        return dequantize({part: x[rows] for part, x in self.numbers.items()}, self.dtype)


def dequantized(weights: Mapping[str, Any], dtype: Any) -> dict[str, Any]:
    """Return the weights of a layer, dequantized on the way to their matmuls."""
    quantized = {name: w for name, w in weights.items() if isinstance(w, Mapping)}
    # of an embedding only the rows that are looked up are dequantized, so there is no second copy of the
    # table
    tables = {name: QuantizedEmbedding(w, dtype) for name, w in quantized.items() if name == "embed"}
    others = {name: dequantize(w, dtype) for name, w in quantized.items() if name not in tables}
    return {**weights, **others, **tables}


# --- error -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LogitError(Result):
    """The difference between the logits of two configurations for the same tokens.

    Perplexities are those of the next tokens. `agree` is the fraction of positions at which both predict the
    same token.
    """

    largest: float
    rms: float
    spread: float  # the standard deviation of the first configuration's logits
    perplexity: float
    quantized_perplexity: float
    agree: float

    @property
    def relative(self) -> float:
        """The root mean square of the error divided by the standard deviation of the logits."""
        return self.rms / self.spread

    def __str__(self) -> str:
        both = f"{self.perplexity:.4f} → {self.quantized_perplexity:.4f}"
        return (
            f"logits off by {percent(self.relative)} (at most {self.largest:.3g}), perplexity {both}, "
            f"the same next token in {percent(self.agree, 3)}"
        )


def compare_logits(
    plain: Config, quantized: Config, weights: Mapping[str, Any], tokens: np.ndarray
) -> LogitError:
    """Return the error of `quantized`'s logits for tokens[B, T + 1]; the last token is only a target."""
    a, b = (np.asarray(_logits(c, c.params(weights), tokens[:, :-1]), np.float64) for c in (plain, quantized))
    error = b - a
    return LogitError(
        float(np.abs(error).max()),
        float(np.sqrt((error**2).mean())),
        float(a.std()),
        _perplexity(a, tokens[:, 1:]),
        _perplexity(b, tokens[:, 1:]),
        float((a.argmax(-1) == b.argmax(-1)).mean()),
    )


def _logits(config: Config, params: Params, tokens: np.ndarray) -> jax.Array:
    """Return the logits [B, T, V] of all tokens, computed through the cache."""
    run = jax.jit(lambda w, tokens, cache: decode.prefill(w, config, tokens, cache, every=True)[0])
    return run(params, jnp.asarray(tokens, jnp.int32), config.cache())


def _perplexity(logits: np.ndarray, targets: np.ndarray) -> float:
    """Return the perplexity of the targets under these logits."""
    top = logits.max(-1, keepdims=True)
    total = np.log(np.exp(logits - top).sum(-1)) + top[..., 0]
    return float(np.exp((total - np.take_along_axis(logits, targets[..., None], -1)[..., 0]).mean()))
