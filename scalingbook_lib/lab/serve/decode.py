"""How does a Transformer write, one token a step, however it is spread over devices?

`prefill(params, config, tokens, cache)` and `decode(params, config, tokens, cache, lengths)` are pure
functions of whole arrays, to be jitted with the cache donated; `program(config, T)` is one of their steps
compiled, for this machine or for a TPU slice. `config` is a `layout.Config`: the model, its mesh, its cache.
Chapter: Inference.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from scalingbook_lib import models
from scalingbook_lib.lab.compiler import aot, sharding
from scalingbook_lib.lab.serve import decoder
from scalingbook_lib.lab.serve.decoder import Where
from scalingbook_lib.lab.serve.layout import Cache, Config, Params
from scalingbook_lib.lab.train import transformer

TOKENS, ROWS, TABLES = (sharding.spec(a) for a in ("A[B_A, T]", "A[B_A]", "A[B_AXZ, M]"))


def extend(
    params: Params,
    config: Config,
    tokens: jax.Array,
    cache: Cache,
    where: Where,
    *,
    every: bool = False,
    greedy: bool = False,
) -> tuple[jax.Array, Cache]:
    """The real ones of tokens[b, T] go to their places: logits[B, V] of the last one, the cache.

    With `every` those of all tokens, [B, T, V]; with `greedy` the most likely words instead, [B] or [B, T].
    Tables name the blocks of each row, counted within its group of devices.
    """
    weights, kept = (jax.tree.map(lambda s: s.sharding.spec, part) for part in config.structs)
    how = {"experts": config.experts, "every": every, "opened": config.opened, "codec": config.codec}

    def local(params: Params, tokens: jax.Array, cache: Cache, *where: jax.Array) -> tuple[jax.Array, Cache]:
        logits, cache = decoder.extend(config.model, params, tokens, cache, Where(*where), **how)
        return (decoder.greedy(logits) if greedy else logits), cache

    rank = (None,) if every else ()
    out = PartitionSpec() if greedy else PartitionSpec(None, *rank, tuple(decoder.COLUMNS))
    # check_vma=False: what is gathered over all axes is the same on all, which its type cannot say before JAX
    # 0.9
    given = [part for part in where if part is not None]  # there may be no tables
    reads = (weights, TOKENS, kept, *(ROWS, ROWS, TABLES)[: len(given)])
    spread = jax.shard_map(local, mesh=config.on, in_specs=reads, out_specs=(out, kept), check_vma=False)
    return spread(params, tokens, cache, *given)


def prefill(
    params: Params,
    config: Config,
    tokens: jax.Array,
    cache: Cache,
    where: Where | None = None,
    **how: bool,
) -> tuple[jax.Array, Cache]:
    """tokens[B, T] of prompts, or the next chunk of them: logits[B, V] after the last one, and the cache.

    Unless `where` says otherwise, all of them are real, and the cache has nothing before them.
    """
    B, T = tokens.shape
    where = where or Where(jnp.zeros(B, jnp.int32), jnp.full(B, T, jnp.int32))
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
    """One more token of each sequence, tokens[B], after the lengths[B] that the cache has: logits[B, V]."""
    where = Where(lengths, jnp.ones_like(lengths), tables)
    return extend(params, config, tokens[:, None], cache, where, **how)


def program(
    config: Config, T: int = 1, rows: int | None = None, *, every: bool = False, greedy: bool = False
) -> aot.Program:
    """A step of T new tokens for `rows` sequences (all), compiled once: extend(params, tokens, cache, …).

    The cache is donated. `greedy` gives words instead of logits, `every` those of all T tokens.
    """
    key = (T, rows or config.sequences, every, greedy)
    if key not in config.programs:
        config.programs[key] = _compiled(config, *key)
    return config.programs[key]


def _compiled(config: Config, T: int, rows: int, every: bool, greedy: bool) -> aot.Program:
    def step(params: Params, tokens: jax.Array, cache: Cache, *where: jax.Array) -> tuple[jax.Array, Cache]:
        return extend(params, config, tokens, cache, Where(*where), every=every, greedy=greedy)

    weights, kept = config.structs
    places = [((rows,), ROWS), ((rows,), ROWS)]  # start and tokens
    places += [((rows, config.width), TABLES)] if config.blocks else []
    tokens, *where = (config.struct(shape, jnp.int32, of) for shape, of in [((rows, T), TOKENS), *places])
    given = (weights, tokens, kept, *where)
    return aot.compile(step, *given, mesh=config.on, topology=config.topology, donate=(2,))


def recomputed(model: models.Transformer, weights: Mapping[str, Any], tokens: jax.Array) -> jax.Array:
    """Logits[B, T, V] of whole sequences by the training chapter's program, on one device, with no cache."""
    one = sharding.mesh(**dict.fromkeys(transformer.AXES, 1))
    layers = transformer.of_layers(weights)

    def local(tokens: jax.Array) -> jax.Array:
        x = transformer.embed(jnp.asarray(weights["embed"]), tokens)
        x = transformer.stage(model, layers, x, context="ring", remat=False)
        return transformer.norm(x, jnp.asarray(weights["final norm"])) @ weights["unembed"]

    plain = PartitionSpec()
    return jax.shard_map(local, mesh=one, in_specs=plain, out_specs=plain, check_vma=False)(tokens)
