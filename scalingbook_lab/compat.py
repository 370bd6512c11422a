"""One name for each function that JAX has renamed between 0.7.2 and 0.12.

A notebook that has to run on Colab's JAX as well as on the newest says `compat.varying(x, "X")` where today's
JAX says `jax.lax.pcast(x, "X", to="varying")` and older ones `jax.lax.pvary(x, "X")`. Chapter: JAX.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp

type Axes = str | Sequence[str]


def varying(x: jax.Array, axes: Axes) -> jax.Array:
    """Within `shard_map`, treat a value that is the same on all devices as one that may differ along axes.

    `jax.lax.pcast(x, axes, to="varying")` since 0.8.2, `jax.lax.pvary(x, axes)` before. Nothing moves.
    """
    lax: Any = jax.lax  # either has one of the two names alone
    named = (axes,) if isinstance(axes, str) else axes
    missing = tuple(axis for axis in named if axis not in varies(x))
    if not missing:
        return x
    return lax.pcast(x, missing, to="varying") if hasattr(lax, "pcast") else lax.pvary(x, missing)


def varies(x: jax.Array) -> tuple[str, ...]:
    """Within `shard_map`, the mesh axes along which x may differ from device to device, sorted."""
    of = jax.typeof(x)
    kind: Any = getattr(of, "manual_axis_type", None)
    return tuple(sorted(kind.varying if kind is not None else getattr(of, "vma", ())))


def all_gather(x: jax.Array, axis_name: str, *, axis: int = 0) -> jax.Array:
    """Within `shard_map`, gather shards into an array that is known to be the same on all devices.

    `jax.lax.all_gather(..., tiled=True, to="invarying")` since 0.9. Before, JAX had no public way to say so:
    each device puts its shard into zeros and all are summed, twice the bytes for the same result.
    """
    if hasattr(jax.lax, "pcast"):
        return jax.lax.all_gather(x, axis_name, axis=axis, tiled=True, to="invarying")
    n, me, size = jax.lax.axis_size(axis_name), jax.lax.axis_index(axis_name), x.shape[axis]
    empty = jnp.zeros((*x.shape[:axis], n * size, *x.shape[axis + 1 :]), x.dtype)
    return jax.lax.psum(jax.lax.dynamic_update_slice_in_dim(empty, x, me * size, axis), axis_name)


@contextmanager
def refused(about: str = "") -> Iterator[list[str]]:
    """Expect JAX to refuse the block; afterwards the list holds the name of the error and its message.

    With `about`, only the part of the message from there to the end of the sentence. Raises AssertionError
    where JAX accepts the block.
    """
    found: list[str] = []
    try:
        yield found
    except Exception as error:
        words = " ".join(str(error).split())
        found += [type(error).__name__, words[words.find(about) :].partition(". ")[0] if about else words]
    if not found:
        raise AssertionError("JAX refused nothing here; the text around this block expects that it does")
