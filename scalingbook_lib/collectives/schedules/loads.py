"""How much does every link of a torus carry from start to end, without laying out the steps?

The totals of the plans in `plan`, in closed form: a torus of 4,096 chips takes no longer than one of four.
Both directions of an axis carry the same, mirrored. Chapter: Sharding.
"""

import math

from scalingbook_lib.machines.torus import Axis

type Shares = tuple[tuple[float, ...], ...]  # for each axis, for each place on it


def all_gather_shares(*axes: Axis) -> Shares:
    """The share of the gathered array on the link upwards from every place of every axis.

    A part of the array runs through the axes in turn, and each multiplies what travels together.
    """
    real = [k for k, axis in enumerate(axes) if axis.size > 1]
    n, totals = math.prod(axis.size for axis in axes), [0.0] * len(axes)
    for first in range(len(real)):
        together = 1
        for turn in range(len(real)):
            k = real[(first + turn) % len(real)]
            totals[k] += together / (n * len(real))
            together *= axes[k].size
    pairs = zip(totals, axes, strict=True)
    return tuple(tuple(total * shards for shards in _gathered(axis)) for total, axis in pairs)


def all_to_all_shares(*axes: Axis) -> Shares:
    """The share of the whole array on the link upwards from every place of every axis."""
    n = math.prod(axis.size for axis in axes)
    return tuple(tuple(1 / (axis.size * n) * chunks for chunks in _exchanged(axis)) for axis in axes)


def _gathered(axis: Axis) -> list[float]:
    """Shards over each link of one ring or line: half of the others' on a ring, all from below on a line."""
    if axis.wrapped:
        return [(axis.size - 1) / 2] * axis.size
    return [float(i + 1) for i in range(axis.size - 1)]


def _exchanged(axis: Axis) -> list[float]:
    """Chunks over each link: on a ring the sum of all distances, on a line all pairs that it joins."""
    n = axis.size
    if axis.wrapped:
        return [(n * n - n % 2) / 8] * n
    return [float((i + 1) * (n - 1 - i)) for i in range(n - 1)]
