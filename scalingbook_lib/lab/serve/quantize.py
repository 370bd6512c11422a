"""How much does a model forget when its weights, or its cache, are written in 8 bits, or in 4?

`Narrow(model, mesh, stored=jnp.int8)` is a `layout.Config` whose weights are whole numbers, with a scale for
each output channel; `codec=CACHE8` keeps keys and values as int8 with a scale for each token's head. Nothing
is off by more than half a step. `compared` measures what becomes of the logits. Chapter: Serving.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from scalingbook_lib.lab.serve import decode
from scalingbook_lib.lab.serve.layout import Cache, Config, Params
from scalingbook_lib.lab.serve.paged_attention import Codec
from scalingbook_lib.lab.train import transformer
from scalingbook_lib.notation import parse
from scalingbook_lib.units import Result, percent

SUMMED = {"o": "NH", "down": "F", "expert down": "F", "embed": "D"}  # by a product, or read as one row
WIDE = ("norm", "router")  # what stays as it is

type Numbers = Mapping[str, jax.Array]  # {"whole": the numbers, "scale": of each channel}


def levels(stored: Any) -> int:
    """The largest whole number in use: 127 of int8, 7 of int4."""
    return int(jnp.iinfo(stored).max)


def narrow(
    x: jax.Array, axes: tuple[int, ...], stored: Any = jnp.int8, *, scale: Any = jnp.float32
) -> Numbers:
    """x in whole numbers, with a scale of its own for all that is summed over `axes`."""
    largest = jnp.abs(x.astype(jnp.float32)).max(axes, keepdims=True)
    # a channel of zeros has no largest number: any step will do, and 0 / 0 would not
    step = (jnp.where(largest == 0, 1, largest) / levels(stored)).astype(scale)
    whole = jnp.clip(jnp.round(x / step.astype(jnp.float32)), -levels(stored), levels(stored))
    return {"whole": whole.astype(stored), "scale": step}


def wide(numbers: Numbers, dtype: Any = jnp.float32) -> jax.Array:
    """The numbers again, each at most half a step off."""
    return numbers["whole"].astype(dtype) * numbers["scale"].astype(dtype)


def axes_of(name: str, *, in_layer: bool = True) -> tuple[int, ...]:
    """The dimensions of a weight over which its product sums."""
    dims = parse(transformer.SPLIT[name]).dims
    names = [dim.name for dim in dims if not (in_layer and dim.name == "L")]
    # a scale must be the same for all terms of a sum, or it could not be multiplied after it
    return tuple(k for k, n in enumerate(names) if n in SUMMED.get(name, "D"))


# --- the cache -------------------------------------------------------------------------------------------


def encoded(k: jax.Array, v: jax.Array) -> dict[str, jax.Array]:
    """int8 of k[b, t, K, H] and v, each with a scale for every token's head, in the type of k."""
    both = {name: narrow(x, (3,), scale=x.dtype) for name, x in (("k", k), ("v", v))}
    return {f"{name} {part}": x for name, numbers in both.items() for part, x in numbers.items()}


def decoded(kept: Mapping[str, jax.Array]) -> tuple[jax.Array, ...]:
    """The numbers that were kept, and their scales: attention multiplies by these after its products."""
    return tuple(kept[f"{name} {part}"] for part in ("whole", "scale") for name in "kv")


CACHE8 = Codec(encoded, decoded)


# --- the weights -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Narrow(Config):
    """A configuration whose weights, norms and routers apart, are whole numbers with scales."""

    stored: Any = jnp.int8

    def __post_init__(self) -> None:
        super().__post_init__()
        # frozen, so set past the dataclass; not a default, for it depends on dtype
        object.__setattr__(self, "opened", functools.partial(opened, dtype=self.dtype))

    @functools.cached_property
    def structs(self) -> tuple[Params, Cache]:
        """Shape, type and place of every number and scale, and of the cache, with nothing allocated."""
        weights, cache = super().structs
        return self._each(self._struct_of, weights), cache

    def params(self, weights: Mapping[str, Any]) -> Params:
        """The trainer's weights, rounded, on these devices."""
        given = self.by_layer({name: jnp.asarray(w) for name, w in weights.items()})
        rounded = self._each(lambda w, axes: narrow(w, axes, self.stored), given)
        return jax.tree.map(
            lambda a, s: jax.device_put(a.astype(s.dtype), s.sharding), rounded, self.structs[0]
        )

    def _each(self, fn: Any, params: Params) -> Params:
        """Something instead of each weight that is to be narrow, given its axes of sums."""

        def of(weights: Mapping[str, Any]) -> Params:
            kept = {name: w for name, w in weights.items() if any(word in name for word in WIDE)}
            axes = {name: axes_of(name, in_layer=not self.scanned) for name in weights if name not in kept}
            return kept | {name: fn(weights[name], axes[name]) for name in axes}

        layers = params["layers"]
        ends = of({name: w for name, w in params.items() if name != "layers"})
        return ends | {"layers": of(layers) if self.scanned else [of(layer) for layer in layers]}

    def _struct_of(self, s: jax.ShapeDtypeStruct, axes: tuple[int, ...]) -> dict[str, jax.ShapeDtypeStruct]:
        spec = [*s.sharding.spec, *[None] * (s.ndim - len(s.sharding.spec))]
        left = [(1, None) if k in axes else pair for k, pair in enumerate(zip(s.shape, spec, strict=True))]
        place = NamedSharding(self.on, PartitionSpec(*(axis for _, axis in left)))
        scale = jax.ShapeDtypeStruct(tuple(n for n, _ in left), jnp.float32, sharding=place)
        return {"whole": jax.ShapeDtypeStruct(s.shape, self.stored, sharding=s.sharding), "scale": scale}


@dataclass(frozen=True, slots=True)
class QuantizedEmbedding:
    """Rows to look up: only those that are asked for are made wide."""

    numbers: Numbers
    dtype: Any

    def __getitem__(self, rows: jax.Array) -> jax.Array:
        return wide({part: x[rows] for part, x in self.numbers.items()}, self.dtype)


def opened(weights: Mapping[str, Any], dtype: Any) -> dict[str, Any]:
    """The weights of a layer, made wide on their way into their products."""
    narrow = {name: w for name, w in weights.items() if isinstance(w, Mapping)}
    # of an embedding only the rows that are looked up are made wide: all of it would be a second copy, in
    # bf16
    tables = {name: QuantizedEmbedding(w, dtype) for name, w in narrow.items() if name == "embed"}
    return {**weights, **{name: wide(w, dtype) for name, w in narrow.items() if name not in tables}, **tables}


# --- what becomes of it ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QuantizedComparison(Result):
    """Of the same tokens read by two configurations: how far the second's logits are from the first's.

    Perplexities are those of the next tokens. `agree` is the share of places where both would write the same.
    """

    largest: float
    rms: float
    spread: float  # the standard deviation of the first's logits
    perplexity: float
    narrow_perplexity: float
    agree: float

    @property
    def relative(self) -> float:
        """Root mean square of the error over the spread of the logits."""
        return self.rms / self.spread

    def __str__(self) -> str:
        both = f"{self.perplexity:.4f} → {self.narrow_perplexity:.4f}"
        return (
            f"logits off by {percent(self.relative)} (at most {self.largest:.3g}), perplexity {both}, "
            f"the same next token in {percent(self.agree, 3)}"
        )


def compared(
    plain: Config, narrow: Config, weights: Mapping[str, Any], tokens: np.ndarray
) -> QuantizedComparison:
    """Both read tokens[B, T + 1] with their caches, the last one only to be predicted."""
    a, b = (np.asarray(_read(c, c.params(weights), tokens[:, :-1]), np.float64) for c in (plain, narrow))
    error = b - a
    return QuantizedComparison(
        float(np.abs(error).max()),
        float(np.sqrt((error**2).mean())),
        float(a.std()),
        _perplexity(a, tokens[:, 1:]),
        _perplexity(b, tokens[:, 1:]),
        float((a.argmax(-1) == b.argmax(-1)).mean()),
    )


def _read(config: Config, params: Params, tokens: np.ndarray) -> jax.Array:
    """The logits [B, T, V] of all tokens, which go through the cache."""
    run = jax.jit(lambda w, tokens, cache: decode.prefill(w, config, tokens, cache, every=True)[0])
    return run(params, jnp.asarray(tokens, jnp.int32), config.cache())


def _perplexity(logits: np.ndarray, targets: np.ndarray) -> float:
    top = logits.max(-1, keepdims=True)
    total = np.log(np.exp(logits - top).sum(-1)) + top[..., 0]
    return float(np.exp((total - np.take_along_axis(logits, targets[..., None], -1)[..., 0]).mean()))
