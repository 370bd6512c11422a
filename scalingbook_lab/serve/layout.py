"""The configuration of a served model: its mesh, and the sharding of weights, KV cache and sequences.

`Config(model, Mesh(Y=8), sequences=16, tokens=128)` shards weights as in `decoder.SPLIT` and the cache by
heads (Y), by sequences (A, X, Z) or by tokens (C). The cache is paged if `blocks` is given. Chapter:
Inference.
"""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from scalingbook_lab import axes, devices
from scalingbook_lab.compiler import aot, sharding
from scalingbook_lab.serve import decoder, paged_attention
from scalingbook_lab.serve.paged_attention import Codec
from scalingbook_lab.train import transformer
from scalingbook_lib import models, notation
from scalingbook_lib.units import Result

type Params = dict[str, Any]
type Cache = Any  # a list with one dict per layer, or one dict of stacked arrays if layers are scanned

OUTER = "AXZ"  # the axes that shard sequences and their blocks


@dataclass(frozen=True)
class Config(Result):
    """A model on a mesh of the axes `decoder.AXES`, with a cache for `sequences` of `tokens` tokens each.

    With `blocks` the cache is paged: it has that many blocks of `block` tokens, and a table names those of
    each sequence. `experts` are the axes over which experts are sharded. `scanned` stacks weights and cache
    of all layers and scans over them. `dtype` is that of weights and activations, `cache_dtype` that of the
    cache. Raises ValueError if the axes do not divide the model, or if the model has parts that `transformer`
    lacks.
    """

    model: models.Transformer
    mesh: notation.Mesh | Mapping[str, int]
    sequences: int = 8
    tokens: int = 128
    blocks: int | None = None
    block: int = 16
    experts: str = "A"
    scanned: bool = False
    dtype: Any = jnp.float32
    cache_dtype: Any = jnp.float32
    topology: str | None = None
    grid: jax.sharding.Mesh | None = None
    dequantize: Callable = dict
    codec: Codec = paged_attention.PLAIN

    def __post_init__(self) -> None:
        transformer.check_supported(self.model)
        axes.refuse_others(self.experts, decoder.AXES)
        axes.refuse_uneven(self._splits(), self.sizes)

    def _splits(self) -> list[tuple[str, int, str]]:
        """Return each sharded dimension: its name, its size, and the axes that shard it."""
        m, e = self.model, self.model.experts
        rest = "".join(axis for axis in decoder.AXES if axis not in self.experts)
        rows = [("D", m.D, "XZCY"), ("K", m.K, "Y"), ("N", m.N, "YCZ"), ("V", m.V, "AZCY")]
        rows += [("E", e.E, self.experts), ("F of an expert", e.F, rest)] if e else [("F", m.F, decoder.AXES)]
        rows += [("sequences", self.sequences, OUTER), ("blocks", self.blocks or 0, OUTER)]
        return [*rows, ("tokens of a block", self.block_tokens, "C"), ("tokens", self.tokens, "C")]

    @functools.cached_property
    def sizes(self) -> dict[str, int]:
        """The size of each of the five axes."""
        return axes.sizes(self.mesh, decoder.AXES)

    def degree(self, over: str) -> int:
        """Return the number of shards over some axes, which is the product of their sizes."""
        return math.prod(self.sizes[axis] for axis in over)

    @property
    def block_tokens(self) -> int:
        """The tokens of one block; without paging, a sequence has a single block."""
        return self.block if self.blocks else self.tokens

    @property
    def width(self) -> int:
        """The number of blocks of a sequence of `tokens` tokens."""
        return -(-self.tokens // self.block_tokens)

    @functools.cached_property
    def device_mesh(self) -> jax.sharding.Mesh:
        """The JAX mesh of devices."""
        return self.grid or aot.mesh_for(self.topology, self.sizes)

    def placed(self, spec: PartitionSpec) -> NamedSharding:
        """Return a PartitionSpec bound to these devices."""
        return NamedSharding(self.device_mesh, spec)

    @functools.cached_property
    def structs(self) -> tuple[Params, Cache]:
        """Return the shape, dtype and sharding of every weight and of the cache, without allocating them."""
        shapes = transformer.shapes(self.model)
        # with fewer key-value heads than Y · Z devices, the devices of Z compute the same keys, and only Y
        # shards K
        layers, few = transformer.layer_weights(shapes), self.model.K % self.degree("YZ") > 0
        weights_structs = {}
        for name, shape in shapes.items():
            spec = sharding.spec(decoder.split(name, self.experts, few=few))
            weights_structs[name] = self.struct(shape, self.dtype, spec, layers=name in layers)
        return self.by_layer(weights_structs), self._cache()

    def struct(self, shape: tuple[int, ...], dtype: Any, spec: PartitionSpec, *, layers: bool = False) -> Any:
        """Return the shape, dtype and sharding of one array; with `layers`, of the array stacked over all
        layers.
        """
        spec = PartitionSpec(None, *spec) if layers else spec
        return jax.ShapeDtypeStruct(shape, dtype, sharding=self.placed(spec))

    def _cache(self) -> Cache:
        """Return the shape, dtype and sharding of the cache."""
        m, size = self.model, self.block_tokens
        zeros = jax.ShapeDtypeStruct((self.blocks or self.sequences, size, m.K, m.H), self.cache_dtype)
        # JAX derives the codec's arrays without computing them; there may be scales in addition to k and v
        arrays = jax.eval_shape(self.codec.encode, zeros, zeros)
        place = sharding.spec(paged_attention.CACHE)
        if self.scanned:
            all_layers = ((name, (m.L, *a.shape), a.dtype) for name, a in arrays.items())
            return {name: self.struct(shape, kind, place, layers=True) for name, shape, kind in all_layers}
        layer_cache = {name: self.struct(a.shape, a.dtype, place) for name, a in arrays.items()}
        return [dict(layer_cache) for _ in range(m.L)]

    def by_layer(self, weights: Mapping[str, Any]) -> Params:
        """Return the trainer's stacked weights as this configuration holds them: stacked, or as a list of
        layers.
        """
        layers = transformer.layer_weights(weights)
        ends: Params = {name: a for name, a in weights.items() if name not in layers}
        if not self.scanned:
            layers = [{name: _layer(a, i) for name, a in layers.items()} for i in range(self.model.L)]
        return ends | {"layers": layers}

    def params(self, weights: Mapping[str, Any]) -> Params:
        """Place the trainer's weights (those of a state, or of `trainer.initial`) on these devices."""
        # converted to the dtype before they are placed, so that no device ever holds them in fp32
        given = self.by_layer({name: np.asarray(w) for name, w in weights.items()})
        return jax.tree.map(
            lambda a, s: jax.device_put(a.astype(s.dtype), s.sharding), given, self.structs[0]
        )

    def cache(self) -> Cache:
        """Return an empty cache on these devices."""
        return jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype, device=s.sharding), self.structs[1])

    @functools.cached_property
    def programs(self) -> dict[tuple[int, int, bool, bool], aot.Program]:
        """The programs that `decode.program` has compiled so far, by T, rows, `every` and `greedy`."""
        return {}

    def __str__(self) -> str:
        paged = f"{self.blocks} blocks of {self.block} tokens, " if self.blocks else ""
        sequences = f"{self.sequences} sequences of {self.tokens} tokens"
        return f"{self.model.name} on {axes.format_mesh(self.sizes)}: {paged}{sequences}"


def _layer(a: Any, i: int) -> Any:
    """Return layer i of a stacked array, or of its shape."""
    if not isinstance(a, jax.ShapeDtypeStruct):
        return a[i]
    place = NamedSharding(a.sharding.mesh, PartitionSpec(*a.sharding.spec[1:]))
    return jax.ShapeDtypeStruct(a.shape[1:], a.dtype, sharding=place)


def on_other_devices(config: Config, mesh: notation.Mesh | Mapping[str, int], **changed: Any) -> Config:
    """Return the same configuration on devices that `config` does not use, for disaggregated prefill.

    Raises ValueError if too few devices are left.
    """
    sizes = axes.sizes(mesh, decoder.AXES)
    used, needed = set(config.device_mesh.devices.flat), math.prod(sizes.values())
    free = [device for device in devices.get() if device not in used]
    if len(free) < needed:
        raise ValueError(
            f"{needed} devices are needed besides {len(used)}, and {len(free)} are left; use fewer"
        )
    device_mesh = sharding.mesh(notation.Mesh(**sizes), free[:needed])
    return replace(config, mesh=sizes, grid=device_mesh, topology=None, **changed)
