"""Prefill and decode of a Transformer as pure functions, on any mesh.

`prefill(params, config, tokens, cache)` and `decode(params, config, tokens, cache, lengths)` are functions of
global arrays, to be jitted with the cache donated. `program(config, T)` is such a step, compiled for this
machine or for a TPU slice. `config` is a `layout.Config`: the model, its mesh and its cache. Chapter:
Inference.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from scalingbook_lab.compiler import aot, sharding
from scalingbook_lab.serve import decoder
from scalingbook_lab.serve.decoder import DecoderPlacement
from scalingbook_lab.serve.layout import Cache, Config, Params
from scalingbook_lab.train import transformer
from scalingbook_lib import models

TOKENS, ROWS, TABLES = (sharding.spec(a) for a in ("A[B_A, T]", "A[B_A]", "A[B_AXZ, M]"))


def extend(
    params: Params,
    config: Config,
    tokens: jax.Array,
    cache: Cache,
    where: DecoderPlacement,
    *,
    every: bool = False,
    greedy: bool = False,
) -> tuple[jax.Array, Cache]:
    """Append tokens[B, T] to the cache; return logits[B, V] of each sequence's last token, and the cache.

    With `every`, return the logits [B, T, V] of all tokens. With `greedy`, return the most likely tokens
    instead, [B] or [B, T]. `where` says how many of the T tokens are real and where they go; its block tables
    count blocks within a group of devices.
    """
    weights, cache_specs = (jax.tree.map(lambda s: s.sharding.spec, part) for part in config.structs)
    how = {"experts": config.experts, "every": every, "dequantize": config.dequantize, "codec": config.codec}

    def local(params: Params, tokens: jax.Array, cache: Cache, *where: jax.Array) -> tuple[jax.Array, Cache]:
        logits, cache = decoder.extend(config.model, params, tokens, cache, DecoderPlacement(*where), **how)
        return (decoder.greedy(logits) if greedy else logits), cache

    rank = (None,) if every else ()
    out = PartitionSpec() if greedy else PartitionSpec(None, *rank, tuple(decoder.COLUMNS))
    # check_vma=False: logits that are gathered over all axes are replicated, which their type cannot express
    # before JAX 0.9
    inputs = [part for part in where if part is not None]  # the tables may be missing
    reads = (weights, TOKENS, cache_specs, *(ROWS, ROWS, TABLES)[: len(inputs)])
    spread = jax.shard_map(
        local, mesh=config.device_mesh, in_specs=reads, out_specs=(out, cache_specs), check_vma=False
    )
    return spread(params, tokens, cache, *inputs)


def prefill(
    params: Params,
    config: Config,
    tokens: jax.Array,
    cache: Cache,
    where: DecoderPlacement | None = None,
    **how: bool,
) -> tuple[jax.Array, Cache]:
    """Append tokens[B, T] of prompts, or their next chunk; return logits[B, V] after the last token, and the
    cache.

    Unless `where` says otherwise, all tokens are real and the cache is empty.
    """
    B, T = tokens.shape
    where = where or DecoderPlacement(jnp.zeros(B, jnp.int32), jnp.full(B, T, jnp.int32))
    return extend(params, config, tokens, cache, where, **how)


def decode(
    params: Params,
    config: Config,
    tokens: jax.Array,
    cache: Cache,
    lengths: jax.Array,
    *,
    tables: jax.Array | None = None,
    **how: bool,
) -> tuple[jax.Array, Cache]:
    """Append one token to each sequence, tokens[B], after lengths[B] cached tokens.

    Returns logits[B, V] and the cache.
    """
    where = DecoderPlacement(lengths, jnp.ones_like(lengths), tables)
    return extend(params, config, tokens[:, None], cache, where, **how)


def program(
    config: Config, T: int = 1, rows: int | None = None, *, every: bool = False, greedy: bool = False
) -> aot.Program:
    """Compile a step of T new tokens for `rows` sequences (default: all): extend(params, tokens, cache, …).

    The cache is donated. `greedy` returns tokens instead of logits, and `every` those of all T positions.
    """
    key = (T, rows or config.sequences, every, greedy)
    if key not in config.programs:
        config.programs[key] = _compile(config, *key)
    return config.programs[key]


def _compile(config: Config, T: int, rows: int, every: bool, greedy: bool) -> aot.Program:
    def step(params: Params, tokens: jax.Array, cache: Cache, *where: jax.Array) -> tuple[jax.Array, Cache]:
        return extend(params, config, tokens, cache, DecoderPlacement(*where), every=every, greedy=greedy)

    weights, cache_specs = config.structs
    places = [((rows,), ROWS), ((rows,), ROWS)]  # start and tokens
    places += [((rows, config.width), TABLES)] if config.blocks else []
    tokens, *where = (config.struct(shape, jnp.int32, of) for shape, of in [((rows, T), TOKENS), *places])
    inputs = (weights, tokens, cache_specs, *where)
    return aot.compile(step, *inputs, mesh=config.device_mesh, topology=config.topology, donate=(2,))


def logits_without_cache(
    model: models.Transformer, weights: Mapping[str, Any], tokens: jax.Array
) -> jax.Array:
    """Return logits[B, T, V] of whole sequences from the training program, on one device without a cache."""
    one = sharding.mesh(**dict.fromkeys(transformer.AXES, 1))
    layers = transformer.layer_weights(weights)

    def local(tokens: jax.Array) -> jax.Array:
        x = transformer.embed(jnp.asarray(weights["embed"]), tokens)
        x = transformer.stage(model, layers, x, context="ring", remat=False)
        return transformer.norm(x, jnp.asarray(weights["final norm"])) @ weights["unembed"]

    plain = PartitionSpec()
    return jax.shard_map(local, mesh=one, in_specs=plain, out_specs=plain, check_vma=False)(tokens)
