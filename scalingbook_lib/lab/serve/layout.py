"""Where does everything lie when a Transformer writes: weights, cache, sequences?

`Config(model, Mesh(Y=8), sequences=16, tokens=128)`: weights as `decoder.SPLIT` has them, the cache by heads
(Y), by sequences (A, X, Z) or by tokens (C), paged where blocks are given. Chapter: Inference.
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

from scalingbook_lib import models, notation
from scalingbook_lib.lab import axes, devices
from scalingbook_lib.lab.compiler import aot, sharding
from scalingbook_lib.lab.serve import decoder, paged_attention
from scalingbook_lib.lab.serve.paged_attention import Codec
from scalingbook_lib.lab.train import transformer
from scalingbook_lib.units import Result

type Params = dict[str, Any]
type Cache = Any  # a list of a dict for each layer; one dict of stacked arrays where layers are scanned

OUTER = "AXZ"  # the axes over which sequences, and the blocks that they may have, are split


@dataclass(frozen=True)
class Config(Result):
    """A model on a mesh of the axes `decoder.AXES`, with a cache for `sequences` of `tokens` each.

    With `blocks` the cache is paged: so many blocks of `block` tokens, and a sequence names its own in a
    table. `experts` are the axes over which experts lie. `scanned` keeps weights and cache of all layers in
    one array each, and scans. `dtype` is that of weights and activations, `kept` that of the cache.
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
    kept: Any = jnp.float32
    topology: str | None = None
    grid: jax.sharding.Mesh | None = None
    opened: Callable = dict
    codec: Codec = paged_attention.PLAIN

    def __post_init__(self) -> None:
        transformer.refuse(self.model)
        axes.refuse_others(self.experts, decoder.AXES)
        axes.refuse_uneven(self._splits(), self.sizes)

    def _splits(self) -> list[tuple[str, int, str]]:
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

    def ways(self, over: str) -> int:
        """The product of the sizes of some axes: as many parts as what is split over them has."""
        return math.prod(self.sizes[axis] for axis in over)

    @property
    def block_tokens(self) -> int:
        """The tokens of one block; without paging a sequence has one block."""
        return self.block if self.blocks else self.tokens

    @property
    def width(self) -> int:
        """The blocks of a sequence of `tokens` tokens."""
        return -(-self.tokens // self.block_tokens)

    @functools.cached_property
    def on(self) -> jax.sharding.Mesh:
        """The mesh of devices."""
        return self.grid or aot.mesh_for(self.topology, self.sizes)

    def placed(self, spec: PartitionSpec) -> NamedSharding:
        """That way of splitting, on these devices."""
        return NamedSharding(self.on, spec)

    @functools.cached_property
    def structs(self) -> tuple[Params, Cache]:
        """Shape, type and place of every weight and of the cache, with nothing allocated."""
        shapes = transformer.shapes(self.model)
        # with fewer key-value heads than Y · Z devices, those of Z make the same keys: then K is split over Y
        # alone
        layers, few = transformer.of_layers(shapes), self.model.K % self.ways("YZ") > 0
        whole = {}
        for name, shape in shapes.items():
            spec = sharding.spec(decoder.split(name, self.experts, few=few))
            whole[name] = self.struct(shape, self.dtype, spec, layers=name in layers)
        return self.by_layer(whole), self._cache()

    def struct(self, shape: tuple[int, ...], dtype: Any, spec: PartitionSpec, *, layers: bool = False) -> Any:
        """The shape, type and place of one array, or of one array for all layers."""
        spec = PartitionSpec(None, *spec) if layers else spec
        return jax.ShapeDtypeStruct(shape, dtype, sharding=self.placed(spec))

    def _cache(self) -> Cache:
        m, size = self.model, self.block_tokens
        zeros = jax.ShapeDtypeStruct((self.blocks or self.sequences, size, m.K, m.H), self.kept)
        # what a codec makes of k and v is asked of JAX, with nothing computed: it may have scales beside
        # numbers
        kept = jax.eval_shape(self.codec.encode, zeros, zeros)
        place = sharding.spec(paged_attention.CACHE)
        if self.scanned:
            all_layers = ((name, (m.L, *a.shape), a.dtype) for name, a in kept.items())
            return {name: self.struct(shape, kind, place, layers=True) for name, shape, kind in all_layers}
        one = {name: self.struct(a.shape, a.dtype, place) for name, a in kept.items()}
        return [dict(one) for _ in range(m.L)]

    def by_layer(self, weights: Mapping[str, Any]) -> Params:
        """The trainer's weights, those of all layers in one array, as this configuration has them."""
        layers = transformer.of_layers(weights)
        ends: Params = {name: a for name, a in weights.items() if name not in layers}
        if not self.scanned:
            layers = [{name: _at(a, i) for name, a in layers.items()} for i in range(self.model.L)]
        return ends | {"layers": layers}

    def params(self, weights: Mapping[str, Any]) -> Params:
        """The trainer's weights (those of a state, or of `trainer.initial`), on these devices."""
        # rounded to the type of weights before they are placed: no device ever has them in 32 bits
        given = self.by_layer({name: np.asarray(w) for name, w in weights.items()})
        return jax.tree.map(
            lambda a, s: jax.device_put(a.astype(s.dtype), s.sharding), given, self.structs[0]
        )

    def cache(self) -> Cache:
        """An empty cache on these devices."""
        return jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype, device=s.sharding), self.structs[1])

    @functools.cached_property
    def programs(self) -> dict[tuple[int, int, bool, bool], aot.Program]:
        """What `decode.program` compiled so far, by T, rows, `every` and `greedy`."""
        return {}

    def __str__(self) -> str:
        paged = f"{self.blocks} blocks of {self.block} tokens, " if self.blocks else ""
        held = f"{self.sequences} sequences of {self.tokens} tokens"
        return f"{self.model.name} on {axes.told(self.sizes)}: {paged}{held}"


def _at(a: Any, i: int) -> Any:
    """Layer i of what is stacked."""
    if not isinstance(a, jax.ShapeDtypeStruct):
        return a[i]
    place = NamedSharding(a.sharding.mesh, PartitionSpec(*a.sharding.spec[1:]))
    return jax.ShapeDtypeStruct(a.shape[1:], a.dtype, sharding=place)


def beside(config: Config, mesh: notation.Mesh | Mapping[str, int], **changed: Any) -> Config:
    """The same on a mesh of its own, of devices that `config` does not use: to read where others write."""
    sizes = axes.sizes(mesh, decoder.AXES)
    used, needed = set(config.on.devices.flat), math.prod(sizes.values())
    left = [device for device in devices.get() if device not in used]
    if len(left) < needed:
        raise ValueError(
            f"{needed} devices are needed beside {len(used)}, and {len(left)} are left; use fewer"
        )
    on = sharding.mesh(notation.Mesh(**sizes), left[:needed])
    return replace(config, mesh=sizes, grid=on, topology=None, **changed)
