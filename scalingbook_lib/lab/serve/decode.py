"""How does a Transformer write, one token a step, however it is spread over devices?

`prefill(params, config, tokens, cache)` and `decode(params, config, tokens, cache, lengths)` are pure
functions of whole arrays, to be jitted with the cache donated; `program(config, T)` is one of their steps
compiled, for this machine or for a TPU slice. `config` is a `layout.Config`: the model, its mesh, its cache.
Chapter: Inference.
"""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from scalingbook_lib import models
from scalingbook_lib.lab.compiler import aot, sharding
from scalingbook_lib.lab.serve import decoder
from scalingbook_lib.lab.serve.layout import Cache, Config, Params
from scalingbook_lib.lab.train import transformer

TOKENS, ROWS, TABLES = (sharding.spec(a) for a in ("A[B_A, T]", "A[B_A]", "A[B_AXZ, M]"))


def extend(
    params: Params,
    config: Config,
    tokens: jax.Array,
    cache: Cache,
    start: jax.Array,
    count: jax.Array,
    tables: jax.Array | None = None,
    *,
    every: bool = False,
    greedy: bool = False,
) -> tuple[jax.Array, Cache]:
    """The first count[b] of tokens[b, T] go after start[b] others: logits[B, V] of the last one, the cache.

    With `every` those of all tokens, [B, T, V]; with `greedy` the most likely words instead, [B] or [B, T].
    Where `tables[b, M]` are given they name the blocks of each row, counted within its group of devices.
    """
    has_tables = tables is not None
    weights, kept = (jax.tree.map(lambda s: s.sharding.spec, part) for part in config.structs)
    how = {"experts": config.experts, "every": every, "opened": config.opened, "codec": config.codec}

    def local(params: Params, tokens: jax.Array, cache: Cache, *where: jax.Array) -> tuple[jax.Array, Cache]:
        logits, cache = decoder.extend(config.model, params, tokens, cache, *where, **how)
        return (decoder.greedy(logits) if greedy else logits), cache

    rank = (None,) if every else ()
    out = PartitionSpec() if greedy else PartitionSpec(None, *rank, tuple(decoder.COLUMNS))
    spread = jax.shard_map(
        local, mesh=config.on, in_specs=(weights, TOKENS, kept, ROWS, ROWS, *[TABLES] * has_tables),
        out_specs=(out, kept), check_vma=False,
    )  # fmt: skip
    return spread(params, tokens, cache, start, count, *([tables] if has_tables else []))


def prefill(
    params: Params,
    config: Config,
    tokens: jax.Array,
    cache: Cache,
    start: jax.Array | None = None,
    count: jax.Array | None = None,
    tables: jax.Array | None = None,
    **how: bool,
) -> tuple[jax.Array, Cache]:
    """tokens[B, T] of prompts, or the next chunk of them: logits[B, V] after the last one, and the cache.

    `start` is what the cache has of each before (0), `count` how many of its T tokens are real (all).
    """
    B, T = tokens.shape
    start = jnp.zeros(B, jnp.int32) if start is None else start
    count = jnp.full(B, T, jnp.int32) if count is None else count
    return extend(params, config, tokens, cache, start, count, tables, **how)


def decode(
    params: Params,
    config: Config,
    tokens: jax.Array,
    cache: Cache,
    lengths: jax.Array,
    tables: jax.Array | None = None,
    **how: bool,
) -> tuple[jax.Array, Cache]:
    """One more token of each sequence, tokens[B], after the lengths[B] that the cache has: logits[B, V]."""
    return extend(params, config, tokens[:, None], cache, lengths, jnp.ones_like(lengths), tables, **how)


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
    row = functools.partial(_ints, config)
    weights, kept = config.structs
    tables = [row((rows, config.width), TABLES)] if config.blocks else []

    def step(params: Params, tokens: jax.Array, cache: Cache, *where: jax.Array) -> tuple[jax.Array, Cache]:
        return extend(params, config, tokens, cache, *where, every=every, greedy=greedy)

    return aot.compile(
        step, weights, row((rows, T), TOKENS), kept, row((rows,), ROWS), row((rows,), ROWS), *tables,
        mesh=config.on, topology=config.topology, donate=(2,),
    )  # fmt: skip


def _ints(config: Config, shape: tuple[int, ...], spec: PartitionSpec) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.int32, sharding=config.placed(spec))


def recomputed(model: models.Transformer, weights: Mapping[str, Any], tokens: jax.Array) -> jax.Array:
    """Logits[B, T, V] of whole sequences by the training chapter's program, on one device, with no cache."""
    one = sharding.mesh(**dict.fromkeys(transformer.AXES, 1))
    layers = {name: w for name, w in weights.items() if transformer.SPLIT[name].startswith("W[L")}

    def local(tokens: jax.Array) -> jax.Array:
        x = transformer.embed(jnp.asarray(weights["embed"]), tokens)
        x = transformer.stage(model, layers, x, context="ring", remat=False)
        return transformer.norm(x, jnp.asarray(weights["final norm"])) @ weights["unembed"]

    plain = PartitionSpec()
    return jax.shard_map(local, mesh=one, in_specs=plain, out_specs=plain, check_vma=False)(tokens)


def recomputing(model: models.Transformer, T: int, rows: int = 1) -> aot.Program:
    """`recomputed` for sequences of T tokens, compiled: what a word costs where nothing is kept."""
    shapes = transformer.shapes(model)
    weights = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}
    return aot.compile(
        functools.partial(recomputed, model), weights, jax.ShapeDtypeStruct((rows, T), jnp.int32)
    )
