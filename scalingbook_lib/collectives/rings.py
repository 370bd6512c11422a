"""Times of collectives on rings, lines and tori.

All torus axes work at once. A time has a bandwidth term with its exact (1 - 1/N) and a latency term that
counts hops. Only + - * / are used, so exact inputs (fractions.Fraction) give exact times;
tests/core/link_simulator.py moves every chunk over every link and obtains the same fractions. Chapter:
Sharding.
"""

import math
from dataclasses import replace

from scalingbook_lib.collectives.transfer import NOTHING, Collective, Transfer
from scalingbook_lib.machines import Axis, Level
from scalingbook_lib.units import require_min


def all_gather(nbytes: float, *axes: Axis, bidirectional: bool = True) -> Transfer:
    """[I_X] → [I]: every chip receives the (1 - 1/N) of the array that it lacks, over all its links at once.

    The chip with the fewest links (a corner, if axes do not wrap) finishes last. The time is exact for axes
    of equal size; for axes of different sizes it is the bound that balanced trees over all links approach.
    Raises a ValueError if `nbytes` is negative, or if a line is to be used in one direction only.
    """
    axes = _nontrivial(nbytes, axes, bidirectional)
    if not axes:
        return replace(NOTHING, name=Collective.ALL_GATHER)
    n = chips(*axes)
    # the bandwidth into the worst-placed chip; the end chip of a line has only one link anyway
    inflow = sum(axis.bytes_per_s if bidirectional else axis.link_bytes_per_s for axis in axes)
    bandwidth_s = (n - 1) * nbytes / (n * inflow)  # all but the 1/n that a chip already has
    latency_s = sum(hops(axis, bidirectional) * axis.hop_s for axis in axes)
    return Transfer(Collective.ALL_GATHER, bandwidth_s, latency_s, _textbook(nbytes, axes))


def all_reduce(nbytes: float, *axes: Axis, bidirectional: bool = True) -> Transfer:
    """[I]{U_X} → [I]: a reduce-scatter, which takes as long as an all-gather, then an all-gather."""
    half = all_gather(nbytes, *axes, bidirectional=bidirectional)
    return replace(half + half, name=Collective.ALL_REDUCE)  # chan2007collective


def all_to_all(nbytes: float, *axes: Axis, bidirectional: bool = True) -> Transfer:
    """[I_X, J] → [I, J_X]: every chip sends a different 1/N of its shard to every other chip.

    Over d axes the shards travel in d equal parts, each starting on another axis, so that all links are busy
    in every phase; the slowest axis determines the time.
    """
    axes = _nontrivial(nbytes, axes, bidirectional)
    if not axes:
        return replace(NOTHING, name=Collective.ALL_TO_ALL)
    slowest = max((_exchange(nbytes, axis, axes, bidirectional) for axis in axes), key=lambda t: t.total_s)
    n, wide = chips(*axes), max(axis.size / (8 * axis.link_bytes_per_s) for axis in axes)
    return replace(slowest, textbook_s=nbytes / n * wide)  # M · max(A, B, C) / (4 N W) with W = 2 links


def _exchange(nbytes: float, axis: Axis, axes: tuple[Axis, ...], bidirectional: bool) -> Transfer:
    """The all-to-all of one axis among several: N/n rings of n chips, each with n/N of the bytes."""
    share = axis.size * nbytes / (chips(*axes) * axis.link_bytes_per_s)  # the bytes of one ring over one link
    bandwidth_s = busiest_link_chunks(axis, bidirectional) * share / (8 * axis.size**2)
    return Transfer(Collective.ALL_TO_ALL, bandwidth_s, len(axes) * hops(axis, bidirectional) * axis.hop_s, 0)


def busiest_link_chunks(axis: Axis, bidirectional: bool = True) -> int:
    """The load of the busiest link of an all-to-all in one direction, in *eighths* of a chunk.

    A chunk is 1/n² of the array.
    """
    n = axis.size
    if not axis.wrapped:
        return 8 * (n // 2) * ((n + 1) // 2)  # the middle link carries everything from one half to the other
    return (
        n * n - n % 2 if bidirectional else 4 * n * (n - 1)
    )  # Σ of the distances, with the antipode's chunk split over both directions


def permute(nbytes: float, axis: Axis, shift: int = 1) -> Transfer:
    """Every chip sends its shard `shift` positions along the axis in the shorter direction.

    A line does not wrap.
    """
    n = axis.size
    away = min(shift % n, -shift % n) if axis.wrapped else abs(shift)
    if not _nontrivial(nbytes, (axis,)) or not shift % n or away > n:
        return replace(NOTHING, name=Collective.PERMUTE)
    halves = 2 if axis.wrapped and 2 * away == n else 1  # for the antipode, half the shard in each direction
    bandwidth_s = away * nbytes / (halves * axis.link_bytes_per_s)
    return Transfer(Collective.PERMUTE, bandwidth_s, away * axis.hop_s, bandwidth_s)


def hierarchical_all_reduce(nbytes: float, *axes: Axis, dcn: Axis) -> Transfer:
    """[I]{U_SX} → [I] over slices S: ReduceScatter in the slice, AllReduce over DCN, AllGather in the slice.

    `dcn` is an unwrapped axis whose link is one chip's share of the data-center network.
    """
    n, inside = chips(*axes), all_gather(nbytes, *axes)
    # the textbook formula ignores DCN latency; each chip's share carries 1/n of the array
    between = replace(all_reduce(nbytes / n, dcn), textbook_s=2 * nbytes / (n * dcn.link_bytes_per_s))
    return replace(inside + between + inside, name="hierarchical AllReduce")


def hop_crossover_bytes(axis: Axis) -> float:
    """W1 · α, a rule of thumb: the bytes of a *shard* below which latency exceeds transfer time."""
    return axis.link_bytes_per_s * axis.hop_s


def hops(axis: Axis, bidirectional: bool = True) -> int:
    """The maximum number of hops of any chunk: halfway around a ring, or from end to end of a line."""
    return axis.diameter_hops if bidirectional else axis.size - 1


def _textbook(nbytes: float, axes: tuple[Axis, ...]) -> float:
    """The textbook's time max(α · Σ X/2, M / Σ W): every axis is a ring, and (1 - 1/N) is taken as 1."""
    latency_s = sum(axis.size * axis.hop_s / 2 for axis in axes)
    return max(latency_s, nbytes / sum(2 * axis.link_bytes_per_s for axis in axes))


def _nontrivial(nbytes: float, axes: tuple[Axis, ...], bidirectional: bool = True) -> tuple[Axis, ...]:
    """The axes of more than one chip.

    Raises a ValueError for negative bytes, or if a line is to be used in one direction only.
    """
    require_min(0, nbytes=nbytes)
    if not bidirectional and not all(axis.wrapped or axis.size == 1 for axis in axes):
        raise ValueError("a line has no wraparound: bidirectional=False needs wrapped axes")
    return tuple(axis for axis in axes if axis.size > 1)


def chips(*axes: Axis | Level) -> int:
    """The number of participating chips: the product of the sizes."""
    return math.prod(axis.size for axis in axes)
