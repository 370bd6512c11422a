"""Collectives as the program of one device calls them; along an axis of size 1 each of them does nothing.

Differentiation turns each collective into its counterpart: a gather becomes a scatter and a scatter a gather,
shift and exchange run in the opposite direction, and a sum stays a sum. Chapter: Training.
"""

from collections.abc import Callable, Sequence

import jax
from jax import lax


def spread(collective: Callable, x: jax.Array, axis: str) -> jax.Array:
    """Apply `lax.psum` or `lax.pmax` over an axis."""
    return x if lax.axis_size(axis) == 1 else collective(x, axis)


def gather(x: jax.Array, axes: str | Sequence[str], dim: int) -> jax.Array:
    """AllGather of `dim` over the axes: A[I_XY] → A[I]."""
    real = _real(axes)
    return lax.all_gather(x, real, axis=dim, tiled=True) if real else x


def scatter(x: jax.Array, axes: str | Sequence[str], dim: int) -> jax.Array:
    """ReduceScatter over the axes; this device keeps its shard of `dim`: A[I]{U_X} → A[I_X]."""
    real = _real(axes)
    return lax.psum_scatter(x, real, scatter_dimension=dim, tiled=True) if real else x


def shift(x: jax.Array, axis: str, *, ring: bool = True) -> jax.Array:
    """Return the array of the previous device on the axis (a collective permute).

    On a ring the first device receives the array of the last one; on a line it receives zeros.
    """
    n = lax.axis_size(axis)
    if n == 1:
        return x
    return lax.ppermute(x, axis, [(i, (i + 1) % n) for i in range(n if ring else n - 1)])


def exchange(x: jax.Array, axis: str, split: int, concat: int) -> jax.Array:
    """AllToAll: shard dimension `split` over the axis, and gather dimension `concat`."""
    if lax.axis_size(axis) == 1:
        return x
    return lax.all_to_all(x, axis, split_axis=split, concat_axis=concat, tiled=True)


def _real(axes: Sequence[str]) -> tuple[str, ...]:
    """Return the axes that have more than one device."""
    return tuple(axis for axis in axes if lax.axis_size(axis) > 1)
