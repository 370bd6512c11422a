"""Which collective moves what, as one device of a mesh writes it?

Each vanishes where its axis has one device. Differentiated, each turns into its counterpart: gather into
scatter, scatter into gather, shift and exchange into themselves the other way round, a sum into a sum.
Chapter: Training.
"""

from collections.abc import Callable, Sequence

import jax
from jax import lax


def spread(collective: Callable, x: jax.Array, axis: str) -> jax.Array:
    """`lax.psum` or `lax.pmax` over an axis."""
    return x if lax.axis_size(axis) == 1 else collective(x, axis)


def gather(x: jax.Array, axes: str | Sequence[str], dim: int) -> jax.Array:
    """All blocks of `dim`, in order: A[I_XY] → A[I]."""
    real = _real(axes)
    return lax.all_gather(x, real, axis=dim, tiled=True) if real else x


def scatter(x: jax.Array, axes: str | Sequence[str], dim: int) -> jax.Array:
    """The sum over the axes, of which this device keeps its block of `dim`: A[I]{U_X} → A[I_X]."""
    real = _real(axes)
    return lax.psum_scatter(x, real, scatter_dimension=dim, tiled=True) if real else x


def shift(x: jax.Array, axis: str, *, ring: bool = True) -> jax.Array:
    """What the device before this one has; the first of a line gets zeros, of a ring the last one's."""
    n = lax.axis_size(axis)
    if n == 1:
        return x
    return lax.ppermute(x, axis, [(i, (i + 1) % n) for i in range(n if ring else n - 1)])


def exchange(x: jax.Array, axis: str, split: int, concat: int) -> jax.Array:
    """Cut `split` in as many parts as there are devices, one for each; join what arrives along `concat`."""
    if lax.axis_size(axis) == 1:
        return x
    return lax.all_to_all(x, axis, split_axis=split, concat_axis=concat, tiled=True)


def _real(axes: Sequence[str]) -> tuple[str, ...]:
    """The axes that have more than one device: over the others nothing is to be moved."""
    return tuple(axis for axis in axes if lax.axis_size(axis) > 1)
