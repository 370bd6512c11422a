"""One function for each collective, on the axes of a torus or on the levels of a cluster.

`nbytes` is always the array *after* sharding over other axes is accounted for:

    all_gather       the gathered array, as every chip holds it at the end
    reduce_scatter   the unreduced array, as every chip holds it at the start
    all_reduce       the array, as every chip holds it before and after
    all_to_all       the array over the whole axis: each of N chips holds nbytes / N before and after
    permute          the shard that one chip sends

Chapters: Sharding; GPUs.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeGuard

from scalingbook_lib.collectives import rings, switched
from scalingbook_lib.collectives.transfer import Collective, Transfer
from scalingbook_lib.machines import Axis, Level

type Network = Axis | Level


def all_gather(nbytes: float, *axes: Network, bidirectional: bool = True, overlap: bool = True) -> Transfer:
    """[I_X] → [I]: every chip receives the (1 - 1/N) of the array that it lacks, over all its links at once.

    `bidirectional` applies to rings, `overlap` (all levels busy at once) to the levels of a cluster.
    """
    if _levels(axes):
        return switched.all_gather(nbytes, *axes, overlap=overlap)
    return rings.all_gather(nbytes, *_torus(axes), bidirectional=bidirectional)


def reduce_scatter(
    nbytes: float, *axes: Network, bidirectional: bool = True, overlap: bool = True
) -> Transfer:
    """[I]{U_X} → [I_X]: an AllGather run backwards, which adds where the AllGather copies.

    In-network reduction saves nothing here: every chip still sends all but its own part.
    """
    gather = all_gather(nbytes, *axes, bidirectional=bidirectional, overlap=overlap)
    # the same bytes over the same links, in the opposite direction
    return replace(gather, name=Collective.REDUCE_SCATTER)


def all_reduce(
    nbytes: float,
    *axes: Network,
    bidirectional: bool = True,
    in_switch: bool = False,
    overlap: bool = True,
) -> Transfer:
    """[I]{U_X} → [I]: a reduce-scatter, then an all-gather.

    `in_switch` lets switches reduce. Raises a ValueError if it is set on a torus.
    """
    if _levels(axes):
        return switched.all_reduce(nbytes, *axes, in_switch=in_switch, overlap=overlap)
    if in_switch:
        raise ValueError("a torus has no switch that can reduce; write in_switch=False, or give levels")
    return rings.all_reduce(nbytes, *_torus(axes), bidirectional=bidirectional)


def all_to_all(nbytes: float, *axes: Network, bidirectional: bool = True, overlap: bool = True) -> Transfer:
    """[I_X, J] → [I, J_X]: every chip sends a different 1/N of its shard to every other chip."""
    if _levels(axes):
        return switched.all_to_all(nbytes, *axes, overlap=overlap)
    return rings.all_to_all(nbytes, *_torus(axes), bidirectional=bidirectional)


def permute(nbytes: float, axis: Network, shift: int = 1) -> Transfer:
    """Every chip sends its shard `shift` positions along the axis in the shorter direction.

    A line does not wrap.
    """
    if isinstance(axis, Level):
        return switched.permute(nbytes, axis, shift)
    return rings.permute(nbytes, axis, shift)


FORMULAS: dict[str, Callable[..., Transfer]] = {
    Collective.ALL_GATHER: all_gather,
    Collective.REDUCE_SCATTER: reduce_scatter,
    Collective.ALL_REDUCE: all_reduce,
    Collective.ALL_TO_ALL: all_to_all,
    Collective.PERMUTE: permute,
}
"""The function of each collective, by its name in the book; `permute` takes one axis or level."""


def latency_bound_below(*axes: Network, collective: Callable[..., Transfer] = all_gather) -> float:
    """The array size in bytes at which latency equals transfer time; smaller arrays are latency-bound."""
    # the bandwidth term is linear in the bytes, and the latency term is constant
    one_byte = collective(1, *axes)
    return one_byte.latency_s / one_byte.bandwidth_s if one_byte.bandwidth_s else 0.0


def _levels(axes: tuple[Network, ...]) -> TypeGuard[tuple[Level, ...]]:
    return bool(axes) and all(isinstance(axis, Level) for axis in axes)


def _torus(axes: tuple[Network, ...]) -> tuple[Axis, ...]:
    found = tuple(axis for axis in axes if isinstance(axis, Axis))
    if len(found) < len(axes):
        raise ValueError("give the axes of one torus or the levels of one cluster, not some of each")
    return found
