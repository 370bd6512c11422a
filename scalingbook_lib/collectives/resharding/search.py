"""A search for the cheapest sequence of collectives between two shardings, and for its alternatives.

Every sharding is a node and every single collective an edge (`moves`); the cheapest sequence is a shortest
path (Dijkstra). Chapter: Sharding.
"""

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter

from scalingbook_lib.collectives.resharding.moves import (
    Edge,
    Moves,
    ReshardingStep,
    Subscripts,
    axes_of,
    layout,
)
from scalingbook_lib.collectives.resharding.routing import DeviceMesh
from scalingbook_lib.notation import Array, Mesh, axis_names, join_axes, parse
from scalingbook_lib.units import BF16, DType, Result, si

type Path = tuple[Edge, ...]
type Cost = tuple[float, int]  # seconds, then the number of steps

NEXT_BEST = 4  # the number of alternatives shown
DETOUR = 3  # how often a search for alternatives may pass the same sharding


@dataclass(frozen=True, slots=True)
class Sequence(Result):
    """A sequence of moves from one sharding to another, one after the other."""

    moves: tuple[ReshardingStep, ...]
    why: str = ""  # for an alternative, why it is slower

    @property
    def total_s(self) -> float:
        """The time of all moves in seconds, one after the other."""
        return sum(move.seconds for move in self.moves)

    @property
    def nbytes(self) -> float:
        """The bytes of all moves together, as the formulas count them."""
        return sum(move.nbytes for move in self.moves)

    @property
    def description(self) -> str:
        """The moves in words, as in 'slice A over Y, gather A over X'."""
        return ", ".join(move.description for move in self.moves) or "nothing to move"

    def __str__(self) -> str:
        cost = si(float(self.total_s), "s") if self.total_s else "free"
        return f"{self.description}: {cost}" + (f" ({self.why})" if self.why else "")


@dataclass(frozen=True, slots=True)
class Resharding(Result):
    """The cheapest sequence between two shardings, and the alternatives with why each is slower."""

    before: Array
    after: Array
    best: Sequence
    rejected: tuple[Sequence, ...]

    def __str__(self) -> str:
        text = f"{self.before} → {self.after}: {self.best}"
        return text + (f"; next best: {self.rejected[0]}" if self.rejected else "")


def reshard(
    before: Array | str,
    after: Array | str,
    machine: DeviceMesh,
    sizes: Mapping[str, int],
    dtype: DType = BF16,
    *,
    idle_links: bool = False,
) -> Resharding:
    """A[I_X, J] → A[I, J_X]: the cheapest sequence of slices, gathers, all-to-alls, permutes and reductions.

    With `idle_links`, axes that neither sharding names may help: if the array is replicated along one, each
    replica can fetch a part over links that would be idle. Raises a ValueError if the arrays differ in
    dimensions or do not divide evenly.
    """
    a, b = (parse(x) if isinstance(x, str) else x for x in (before, after))
    _check_pair(a, b)
    for array in (a, b):
        check_even(array, machine, sizes)
    start, goal = split_only(a, machine), split_only(b, machine)
    over = frozenset(machine.sizes) if idle_links else axes_of(start, goal)
    moves = Moves(start, machine, sizes, dtype, over)
    paths = _alternatives(moves, layout(start), layout(goal))
    best, *others = (Sequence(tuple(map(moves.move, path))) for path in paths)
    return Resharding(a, b, best, tuple(replace(way, why=_comparison(way, best)) for way in others))


def check_even(array: Array, machine: DeviceMesh, sizes: Mapping[str, int]) -> None:
    """Raise a ValueError with the padded size if a dimension does not divide evenly over its mesh axes."""
    mesh = Mesh(**machine.sizes)
    array.check(mesh)
    for dim, size in zip(array.dims, array.shape(**sizes), strict=True):
        parts = mesh.size(dim.axes)
        if size % parts:
            raise ValueError(
                f"{array}: {dim.name} = {size} does not divide evenly over the {parts} chips of "
                f"{join_axes(dim.axes)}; pad it to {-(-size // parts) * parts}"
            )


def split_only(array: Array, machine: DeviceMesh) -> Array:
    """The array without mesh axes of size 1, which shard nothing."""
    real = {name for name, size in machine.sizes.items() if size > 1}
    axes = {dim.name: [name for name in dim.axes if name in real] for dim in array.dims}
    return array.with_axes(**axes).with_partial([name for name in array.partial if name in real])


def cheapest_from(moves: Moves, start: Subscripts) -> dict[Subscripts, Path]:
    """The cheapest path from `start` to every reachable layout."""
    return dict(_paths_by_cost(start, moves.edges))


def cheapest_to(moves: Moves, goal: Subscripts, starts: Iterable[Subscripts]) -> dict[Subscripts, Path]:
    """The cheapest path to `goal` from every layout that is reached on the way from these starts."""
    into: dict[Subscripts, list[Edge]] = {}
    ahead, known = list(starts), set()
    while ahead:
        at = ahead.pop()
        if at not in known:
            known.add(at)
            for edge in moves.edges(at):
                into.setdefault(edge.after, []).append(edge)
                ahead.append(edge.after)
    # one search from the goal, along reversed edges, serves all starts
    backwards = _paths_by_cost(goal, lambda at: into.get(at, []), there=attrgetter("before"))
    return {at: path[::-1] for at, path in backwards}


def _paths_by_cost(
    start: Subscripts,
    edges: Callable[[Subscripts], list[Edge]],
    *,
    there: Callable[[Edge], Subscripts] = attrgetter("after"),
    most: int = 1,
    goal: Subscripts | None = None,
) -> Iterator[tuple[Subscripts, Path]]:
    """Every loop-free path and its end, the cheapest first (Dijkstra's algorithm).

    `there` returns the far end of an edge. A layout reached `most` times is not expanded again; neither is
    the goal, which any number of paths may reach.
    """
    tie = itertools.count()  # of two paths with equal cost, the one found first
    passed: Counter[Subscripts] = Counter()
    heap: list[tuple[Cost, int, Subscripts, Path]] = [((0, 0), next(tie), start, ())]
    while heap:
        (seconds, length), _, at, path = heapq.heappop(heap)
        passed[at] += 1
        if passed[at] > most and at != goal:
            continue
        yield at, path
        seen = {start, *map(there, path)}
        for edge in edges(at) if at != goal else ():
            end = there(edge)
            # returning to a sharding never pays
            if end not in seen and (passed[end] < most or end == goal):
                # moves are serialized; between equal times, the path with fewer moves wins
                cost = (seconds + edge.transfer.total_s, length + 1)
                heapq.heappush(heap, (cost, next(tie), end, (*path, edge)))


def _alternatives(moves: Moves, start: Subscripts, goal: Subscripts) -> list[Path]:
    """The cheapest path and the next-best ones that are not detours of a better one."""
    found: list[Path] = []
    for at, path in _paths_by_cost(start, moves.edges, most=DETOUR, goal=goal):
        if at == goal and not any(_detour(path, better) for better in found):
            found.append(path)
        if len(found) > NEXT_BEST:  # the best and NEXT_BEST alternatives
            break
    return found


def _detour(path: Path, better: Path) -> bool:
    """Whether a path makes all the moves of a better one and possibly more; slices do not count."""
    moved = [
        [(e.kind, frozenset(axis_names(e.axes))) for e in p if e.kind != "slice"] for p in (path, better)
    ]
    return Counter(moved[0]) >= Counter(moved[1])


def _comparison(way: Sequence, best: Sequence) -> str:
    if not best.total_s:
        return "the cheapest sequence is free"
    times = way.total_s / best.total_s
    return f"{times:.3g} times as long" if times > 1.001 else "equally long, with more or different steps"


def _check_pair(a: Array, b: Array) -> None:
    if a.names != b.names:
        raise ValueError(f"{a} and {b} have different dimensions; resharding only changes subscripts")
    missing = [name for name in b.partial if name not in a.partial]
    if missing:
        raise ValueError(f"{a} is not a partial sum over {join_axes(missing)}; no resharding makes it one")
