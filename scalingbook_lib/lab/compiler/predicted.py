"""What does a prediction say is moved? Every kind of it as times and bytes by collective and axes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from scalingbook_lib.collectives import Collective
from scalingbook_lib.collectives.resharding import Move
from scalingbook_lib.lab.compiler.hlo import Collectives, CompiledCollective
from scalingbook_lib.sharded_matmul import Solution, Strategy
from scalingbook_lib.training.links import BACK, RING, Traffic

# What the compiler writes for what a plan names; a ring moves an array's pieces from neighbor to neighbor.
KINDS: dict[str, str] = {
    **{kind: kind.hlo for kind in Collective},
    RING: Collective.PERMUTE.hlo,
    BACK: Collective.PERMUTE.hlo,
}

type Key = tuple[str, str]  # kind, axes in alphabetical order


class Amount(NamedTuple):
    """How often, where that is known, and the bytes of all runs together."""

    times: float | None
    nbytes: float


def read(given: Any) -> dict[Key, Amount]:
    """A solution (its best), a strategy, rows of traffic, bytes by collective and axes, or a program's."""
    total: dict[Key, Amount] = {}
    for (kind, axes), amount in _rows(given):
        key = kind, ordered(axes)
        before = total.get(key, Amount(0, 0))
        times = None if amount.times is None or before.times is None else before.times + amount.times
        total[key] = Amount(times, before.nbytes + amount.nbytes)
    return total


def ordered(axes: str) -> str:
    """Axes in alphabetical order: a collective over XY is one over YX."""
    return "".join(sorted(axes))


def _rows(given: Any) -> Iterator[tuple[Key, Amount]]:
    match given:
        case Solution():
            yield from _rows(given.best)
        case Strategy():
            yield from _rows(given.steps)
        case Collectives():
            yield from map(_compiled, given)
        case Mapping():
            yield from (_of_dict(name, value) for name, value in given.items())
        case Iterable() if not isinstance(given, str):
            yield from (row for one in given for row in _one(one))
        case _ if hasattr(given, "collectives"):
            yield from _rows(given.collectives)
        case _:
            raise TypeError(
                f"{type(given).__name__} is no prediction; give a strategy of sharded_matmul, the rows of "
                "training.traffic, or bytes by collective and axes, as in {'all-gather X': 16777216}"
            )


def _one(row: Any) -> Iterator[tuple[Key, Amount]]:
    if isinstance(row, Traffic):
        if row.what in KINDS and row.n > 1:  # a copy to the host is no collective
            yield _traffic(row)
    elif isinstance(row, Move):
        if row.kind in KINDS:  # a slice moves nothing
            yield (KINDS[row.kind], row.axes), Amount(1, row.nbytes)
    elif isinstance(row, CompiledCollective):
        yield _compiled(row)
    else:
        raise TypeError(f"{row!r} is no row of a prediction; give rows of training.traffic, or moves")


def _traffic(row: Traffic) -> tuple[Key, Amount]:
    """A ring goes n - 1 hops with a piece of its array each."""
    times, nbytes = row.times, row.times * row.nbytes
    if row.what in (RING, BACK):
        times, nbytes = times * (row.n - 1), nbytes * (row.n - 1) / row.n
    return (KINDS[row.what], row.axes), Amount(times, nbytes)


def _compiled(c: CompiledCollective) -> tuple[Key, Amount]:
    times = c.times if c.times is not None else 1
    return (c.kind, c.axes), Amount(c.times, times * c.nbytes)


def _of_dict(name: str, value: Any) -> tuple[Key, Amount]:
    kind, _, axes = name.partition(" ")
    if kind not in set(KINDS.values()) or not axes:
        raise ValueError(f"{name!r} is no collective over axes; write one as in 'all-gather X'")
    times, nbytes = value if isinstance(value, tuple) else (None, value)
    return (kind, axes), Amount(times, nbytes)
