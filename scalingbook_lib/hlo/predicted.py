"""Sums predicted or compiled transfers by kind of collective and mesh axes, as runs and bytes."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from scalingbook_lib.collectives import Collective
from scalingbook_lib.collectives.resharding import ReshardingStep
from scalingbook_lib.hlo.compiled_collectives import CompiledCollective
from scalingbook_lib.hlo.replica_groups import split_axes
from scalingbook_lib.notation import join_axes
from scalingbook_lib.sharded_matmul import Solution, Strategy
from scalingbook_lib.training.links import BACK, RING, TrainingCollective

# The collectives that implement what a plan names; a ring permutes shards from neighbor to neighbor.
KINDS: dict[str, str] = {
    **{kind: kind.hlo for kind in Collective},
    RING: Collective.PERMUTE.hlo,
    BACK: Collective.PERMUTE.hlo,
}


class Key(NamedTuple):
    """A kind of collective, by its HLO name, and the mesh axes that it runs over."""

    kind: str
    axes: str


class Amount(NamedTuple):
    """How often a collective runs (None if unknown), and the bytes of its arrays over all runs."""

    times: float | None
    nbytes: float


type Row = tuple[Key, Amount]
type Sums = dict[Key, Amount]

NOTHING = Amount(0, 0)


def read(given: Any, mesh: Mapping[str, int] | None = None) -> Sums:
    """The transfers of a solution (its best strategy), strategy, rows of traffic, dict or compiled program.

    Axes are put in alphabetical order: a collective over XY is one over YX. Raises a TypeError or ValueError
    if `given` is none of these.
    """
    return summed((Key(kind, ordered(axes, mesh)), amount) for (kind, axes), amount in _rows(given))


def summed(rows: Iterable[Row]) -> Sums:
    """Rows of the same kind and axes as one, which runs an unknown number of times if one of them does."""
    sums: Sums = {}
    for key, amount in rows:
        before = sums.get(key, NOTHING)
        times = None if amount.times is None or before.times is None else before.times + amount.times
        sums[key] = Amount(times, before.nbytes + amount.nbytes)
    return sums


def ordered(axes: str, mesh: Mapping[str, int] | None = None) -> str:
    """The axes in alphabetical order."""
    return join_axes(sorted(split_axes(axes, mesh or {})))


def on_axes(traffic: Iterable[TrainingCollective], **axes: str) -> tuple[TrainingCollective, ...]:
    """Rows of `training.traffic` on the axes of a mesh: `on_axes(rows, X="fsdp", Y="model")`.

    X are the chips that shard the weights: with context parallelism those of both axes, `X="XC"`.
    """

    def mesh_axes(letters: str) -> str:
        return join_axes(name for letter in letters for name in split_axes(axes.get(letter, letter), {}))

    return tuple(replace(row, axes=mesh_axes(row.axes)) for row in traffic)


def group_size(axes: str, mesh: Mapping[str, int]) -> int:
    """The number of devices in a group over these axes."""
    return math.prod(mesh.get(name, 1) for name in split_axes(axes, mesh))


def _rows(given: Any) -> Iterator[Row]:
    match given:
        case Solution():
            yield from _rows(given.best)
        case Strategy():
            yield from _rows(given.steps)
        case Mapping():
            yield from (_of_dict(name, value) for name, value in given.items())
        case Iterable() if not isinstance(given, str):
            yield from (each for row in given for each in _row(row))
        case _ if hasattr(given, "collectives"):
            yield from _rows(given.collectives)
        case _:
            raise TypeError(
                f"{type(given).__name__} is not a prediction; give a strategy of sharded_matmul, the rows of "
                "training.traffic, or bytes by collective and axes, as in {'all-gather X': 16777216}"
            )


def _row(row: Any) -> Iterator[Row]:
    """One move, compiled collective or row of traffic; nothing for a copy to the host or a local slice."""
    match row:
        case TrainingCollective() if row.what in KINDS and row.n > 1:
            yield of_traffic(row)
        case ReshardingStep() if row.kind in KINDS:
            yield Key(KINDS[row.kind], row.axes), Amount(1, row.nbytes)
        case CompiledCollective():  # in a loop of unknown length, it counts as if it ran once
            yield (
                Key(row.kind, row.axes),
                Amount(row.times, (1 if row.times is None else row.times) * row.nbytes),
            )
        case TrainingCollective() | ReshardingStep():
            pass  # a copy to the host is not a collective, and a slice moves nothing
        case _:
            raise TypeError(f"{row!r} is not a row of a prediction; give rows of training.traffic, or moves")


def of_traffic(row: TrainingCollective) -> Row:
    """A row of traffic as one kind of collective.

    A ring of n devices is n - 1 permutes, each of 1/n of the array.
    """
    times, nbytes = row.times, row.times * row.nbytes
    if row.what in (RING, BACK):
        times, nbytes = times * (row.n - 1), nbytes * (row.n - 1) / row.n
    return Key(KINDS[row.what], row.axes), Amount(times, nbytes)


def _of_dict(name: str, value: Any) -> Row:
    """An entry such as {'all-gather X': 4096}, or with a pair (times, bytes).

    Raises a ValueError if the name is not a collective over axes.
    """
    kind, _, axes = name.partition(" ")
    if kind not in set(KINDS.values()) or not axes:
        raise ValueError(f"{name!r} is not a collective over axes; write one as in 'all-gather X'")
    # bytes alone, {"all-gather X": 4096}, do not say how often it runs
    times, nbytes = value if isinstance(value, tuple) else (None, value)
    return Key(kind, axes), Amount(times, nbytes)
