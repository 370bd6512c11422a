"""Provide one name for each function that JAX renamed between 0.7.2 and 0.12.

A notebook has to run on Colab's JAX as well as on the newest release. It calls `compat.varying(x, "X")`,
which is `jax.lax.pcast(x, "X", to="varying")` in current releases and `jax.lax.pvary(x, "X")` in older ones.
Chapter: JAX.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp

type Axes = str | Sequence[str]


def varying(x: jax.Array, axes: Axes) -> jax.Array:
    """Within `shard_map`, mark a value that is the same on all devices as one that may vary along the axes.

    This is `jax.lax.pcast(x, axes, to="varying")` since JAX 0.8.2, and `jax.lax.pvary(x, axes)` before. It
    moves no data.
    """
    lax: Any = jax.lax  # Any: each release has only one of the two names
    named = (axes,) if isinstance(axes, str) else axes
    missing = tuple(axis for axis in named if axis not in varies(x))
    if not missing:
        return x
    return lax.pcast(x, missing, to="varying") if hasattr(lax, "pcast") else lax.pvary(x, missing)


def varies(x: jax.Array) -> tuple[str, ...]:
    """Within `shard_map`, return the mesh axes along which x may vary, sorted."""
    of = jax.typeof(x)
    kind: Any = getattr(of, "manual_axis_type", None)
    return tuple(sorted(kind.varying if kind is not None else getattr(of, "vma", ())))


def all_gather(x: jax.Array, axis_name: str, *, axis: int = 0) -> jax.Array:
    """Within `shard_map`, gather shards into an array whose type says that it is the same on all devices.

    This is `jax.lax.all_gather(..., tiled=True, to="invarying")` since JAX 0.9. Earlier releases have no
    public way to express this, so each device writes its shard into zeros and a psum adds them, which moves
    twice the bytes for the same result.
    """
    if hasattr(jax.lax, "pcast"):
        return jax.lax.all_gather(x, axis_name, axis=axis, tiled=True, to="invarying")
    n, me, size = jax.lax.axis_size(axis_name), jax.lax.axis_index(axis_name), x.shape[axis]
    empty = jnp.zeros((*x.shape[:axis], n * size, *x.shape[axis + 1 :]), x.dtype)
    return jax.lax.psum(jax.lax.dynamic_update_slice_in_dim(empty, x, me * size, axis), axis_name)


@contextmanager
def refused(about: str = "") -> Iterator[list[str]]:
    """Expect JAX to reject the block; afterwards the list holds the name of the error and its message.

    With `about`, only the part of the message from that text to the end of the sentence is kept. Raises
    AssertionError if JAX accepts the block.
    """
    found: list[str] = []
    try:
        yield found
    except Exception as error:
        words = " ".join(str(error).split())
        found += [type(error).__name__, words[words.find(about) :].partition(". ")[0] if about else words]
    if not found:
        raise AssertionError("JAX refused nothing here; the text around this block expects that it does")
