"""The single collectives that change how an array is sharded, with the bytes and time of each.

`A[I_X, J]` can be sliced locally (free), all-gathered, permuted or passed through an all-to-all; a partial
sum can also be reduce-scattered or all-reduced. `Subscripts` are an array without its sizes, which is cheap
to search; a `ReshardingStep` has arrays, bytes and time. Chapter: Sharding.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from scalingbook_lib import collectives
from scalingbook_lib.collectives.resharding import routing
from scalingbook_lib.collectives.resharding.routing import DeviceMesh
from scalingbook_lib.collectives.transfer import Collective
from scalingbook_lib.notation import Array, join_axes
from scalingbook_lib.units import DType, Result, si


class Subscripts(NamedTuple):
    """The subscripts of an array: the mesh axes on each dimension, and those of the partial sum."""

    dims: tuple[tuple[str, ...], ...]
    partial: tuple[str, ...] = ()


def layout(array: Array) -> Subscripts:
    """The subscripts of an array, with the axes of a partial sum in alphabetical order."""
    return Subscripts(tuple(dim.axes for dim in array.dims), tuple(sorted(array.partial)))


def axes_of(*arrays: Array) -> frozenset[str]:
    """Every mesh axis in the subscripts and partial sums of these arrays."""
    return frozenset(axis for array in arrays for axis in array.axes + array.partial)


class Edge(NamedTuple):
    """One move between layouts: its kind, axes, bytes as the formulas count them, and time."""

    kind: str
    axes: str
    nbytes: float
    transfer: collectives.Transfer
    before: Subscripts
    after: Subscripts


@dataclass(frozen=True, slots=True)
class ReshardingStep(Result):
    """One step of a resharding: the array before, a collective over mesh axes, the array after."""

    kind: str
    axes: str
    before: Array
    after: Array
    nbytes: float
    transfer: collectives.Transfer

    @property
    def seconds(self) -> float:
        """The seconds of the collective; 0 for a local slice."""
        return self.transfer.total_s  # bytes and hops

    @property
    def description(self) -> str:
        """The move in a few words, as in 'gather A over X'."""
        # for a permute, the resulting layout says more than the axes that swap roles
        swaps = self.kind == Collective.PERMUTE
        where = f"to {self.after.canonical()}" if swaps else f"over {self.axes}"
        return f"{VERBS[self.kind]} {self.before.name} {where}"

    def __str__(self) -> str:
        cost = f"{si(self.nbytes, 'B')}, {si(self.seconds, 's')}" if self.seconds else "free"
        over = "" if self.kind == Collective.PERMUTE else f" over {self.axes}"
        return f"{self.kind}{over}: {self.before.canonical()} → {self.after.canonical()}, {cost}"


VERBS = {
    "slice": "slice",
    Collective.ALL_GATHER: "gather",
    Collective.ALL_TO_ALL: "all-to-all",
    Collective.PERMUTE: "permute",
    Collective.REDUCE_SCATTER: "reduce-scatter",
    Collective.ALL_REDUCE: "all-reduce",
}


@dataclass(frozen=True)
class Moves:
    """The layouts of one array over some mesh axes of a machine, and the collectives between them."""

    array: Array
    machine: DeviceMesh
    sizes: Mapping[str, int]
    dtype: DType
    over: frozenset[str]  # the mesh axes that may be used
    _edges_from: dict[Subscripts, list[Edge]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _arrays: dict[Subscripts, Array] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def chips(self) -> dict[str, int]:
        """The size of each mesh axis, cached because a search reads it thousands of times."""
        return dict(self.machine.sizes)

    def parts(self, axes: tuple[str, ...] | str) -> int:
        """The number of chips along these mesh axes."""
        return math.prod(self.chips[name] for name in axes)

    def local_bytes(self, at: Subscripts) -> float:
        """The bytes that one chip holds in that layout."""
        cells = math.prod(self.sizes[dim.name] for dim in self.array.dims)  # elements of the whole array
        # a partial sum is not sharded by its axes: every chip holds a whole summand
        return self.dtype.bytes * cells / math.prod(self.parts(axes) for axes in at.dims)

    def fits(self, at: Subscripts) -> bool:
        """Whether every dimension divides evenly over its mesh axes."""
        return all(
            self.sizes[dim.name] % self.parts(axes) == 0
            for dim, axes in zip(self.array.dims, at.dims, strict=True)
        )

    def named(self, at: Subscripts) -> Array:
        """The array in that layout, with its name and dimensions."""
        if at not in self._arrays:
            axes = {dim.name: used for dim, used in zip(self.array.dims, at.dims, strict=True)}
            self._arrays[at] = self.array.with_partial("").with_axes(**axes).with_partial(at.partial)
        return self._arrays[at]

    def move(self, edge: Edge) -> ReshardingStep:
        """The edge as a `ReshardingStep`, with its arrays."""
        before, after = self.named(edge.before), self.named(edge.after)
        return ReshardingStep(edge.kind, edge.axes, before, after, edge.nbytes, edge.transfer)

    def edges(self, at: Subscripts) -> list[Edge]:
        """Every single collective from this layout to one that divides evenly."""
        if at not in self._edges_from:
            kinds = (self._slices, self._gathers, self._exchanges, self._sums, self._permutes)
            found = itertools.chain.from_iterable(kind(at) for kind in kinds)
            self._edges_from[at] = [edge for edge in found if self.fits(edge.after)]
        return self._edges_from[at]

    def _free(self, at: Subscripts) -> list[str]:
        free = self.over.difference(at.partial, *at.dims)
        return [name for name, size in self.chips.items() if size > 1 and name in free]

    def _slices(self, at: Subscripts) -> Iterator[Edge]:
        """[I] → [I_X]: every chip keeps its slice of the data it already has."""
        for name, d in itertools.product(self._free(at), range(len(at.dims))):
            yield Edge("slice", name, 0, collectives.NOTHING, at, _with(at, d, (*at.dims[d], name)))

    def _gathers(self, at: Subscripts) -> Iterator[Edge]:
        """[I_XY, J_Z] → [I_X, J_Z], [I, J_Z] or, over several dimensions at once, [I_X, J], [I, J].

        Only the fastest axes of a dimension can be gathered, so that a block stays contiguous.
        """
        # the slowest axes of each dimension stay; the fastest ones, whose shards are adjacent, are gathered
        for stay in itertools.product(*(range(len(axes), -1, -1) for axes in at.dims)):
            after = Subscripts(tuple(axes[:k] for axes, k in zip(at.dims, stay, strict=True)), at.partial)
            gone = [name for axes, k in zip(at.dims, stay, strict=True) for name in axes[k:]]
            if gone:
                yield self._edge(Collective.ALL_GATHER, gone, self.local_bytes(after), at, after)

    def _exchanges(self, at: Subscripts) -> Iterator[Edge]:
        """[I_X, J] → [I, J_X]."""
        for d, e in itertools.permutations(range(len(at.dims)), 2):
            for k in range(len(at.dims[d])):
                # only the fastest axis can leave, so that a block stays contiguous
                moving = at.dims[d][k:]
                after = _with(_with(at, d, at.dims[d][:k]), e, (*at.dims[e], *moving))
                # as `collectives` counts it: the array over all participating chips
                nbytes = self.local_bytes(at) * self.parts(moving)
                yield self._edge(Collective.ALL_TO_ALL, moving, nbytes, at, after)

    def _sums(self, at: Subscripts) -> Iterator[Edge]:
        """[I]{U_X} → [I] or [I_X], also over several axes at once, with the scatter in either order."""
        # a reduction has the same bytes before and after, over any axes
        nbytes = self.local_bytes(at)
        for k in range(1, len(at.partial) + 1):
            for names in itertools.combinations(at.partial, k):
                done = Subscripts(at.dims, tuple(name for name in at.partial if name not in names))
                yield self._edge(Collective.ALL_REDUCE, names, nbytes, at, done)
                for order, d in itertools.product(itertools.permutations(names), range(len(at.dims))):
                    after = _with(done, d, (*at.dims[d], *order))
                    yield self._edge(Collective.REDUCE_SCATTER, order, nbytes, at, after)

    def _permutes(self, at: Subscripts) -> Iterator[Edge]:
        """[I_XY] → [I_YX], or X and Y of equal size swap roles: chips exchange whole shards."""
        # a swap and a reordering may give the same layout: the first one found is kept
        nbytes, seen = self.local_bytes(at), {at}
        for after, roles in itertools.chain(self._reordered(at), self._traded(at)):
            if after not in seen:
                seen.add(after)
                before = self._roles(at)
                moved = join_axes(x for x, y in zip(before, roles, strict=True) if x != y)
                yield Edge(Collective.PERMUTE, moved, nbytes, self._shuffle(nbytes, before, roles), at, after)

    def _reordered(self, at: Subscripts) -> Iterator[tuple[Subscripts, list[str]]]:
        for d, axes in enumerate(at.dims):
            for order in itertools.permutations(axes):
                after = _with(at, d, order)
                yield after, self._roles(after)

    def _traded(self, at: Subscripts) -> Iterator[tuple[Subscripts, list[str]]]:
        """Layouts in which two axes of equal size swap roles, or a used axis swaps with a free one."""
        used, sizes = [name for axes in at.dims for name in axes], self.chips
        for x, y in itertools.combinations(self._roles(at), 2):
            if sizes[x] == sizes[y] and x in used:
                trade = {x: y, y: x}
                dims = tuple(tuple(trade.get(n, n) for n in axes) for axes in at.dims)
                yield Subscripts(dims, at.partial), [trade.get(n, n) for n in self._roles(at)]

    def _roles(self, at: Subscripts) -> list[str]:
        """Every axis in the order of the subscripts, then the unused ones, which index replicas."""
        return [name for axes in at.dims for name in axes] + self._free(at)

    def _shuffle(self, nbytes: float, before: list[str], after: list[str]) -> collectives.Transfer:
        """The time of the permutation that gives the axes other roles.

        Leading and trailing axes that are equal stay in place.
        """
        # roles are the digits of a shard's index: equal leading or trailing digits move nothing
        differ = [k for k in range(len(before)) if before[k] != after[k]]
        between = slice(min(differ), max(differ) + 1)
        torus = {name: self.machine.axes(name) for name in self.chips if name in before[between]}
        return routing.relabel(nbytes, torus, before[between], after[between])

    def _edge(self, kind: Collective, names: Iterable[str], nbytes: float, *ends: Subscripts) -> Edge:
        over = join_axes(names)
        return Edge(kind, over, nbytes, collectives.FORMULAS[kind](nbytes, *self.machine.axes(over)), *ends)


def _with(at: Subscripts, dim: int, axes: tuple[str, ...]) -> Subscripts:
    return at._replace(dims=(*at.dims[:dim], axes, *at.dims[dim + 1 :]))
