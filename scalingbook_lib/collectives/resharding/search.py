"""What is the cheapest way from one sharding of an array to another?

Every sharding is a node, every single collective an edge (`moves`); the cheapest sequence is a shortest path,
and the next-best ones say why they lose. Chapter: Sharding.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from scalingbook_lib.collectives.resharding.device_mesh import DeviceMesh
from scalingbook_lib.collectives.resharding.moves import Edge, Layout, Move, Moves, layout
from scalingbook_lib.notation import Array, Mesh, parse
from scalingbook_lib.units import BF16, DType, Told, si

type Path = tuple[tuple[Layout, Edge], ...]
type Cost = tuple[float, int]  # seconds, and then the number of steps
type Steps = Callable[[Layout], list[tuple[Layout, Layout, Edge]]]  # to where, and the edge with its start

NEXT_BEST = 4  # how many other ways are shown
DETOUR = 3  # how often a search for other ways may pass the same sharding


@dataclass(frozen=True, slots=True)
class Sequence(Told):
    """Moves one after the other, from one sharding to another."""

    moves: tuple[Move, ...]
    why: str = ""  # where it lost: why

    @property
    def total_s(self) -> float:
        """All moves, one after the other."""
        return sum(move.seconds for move in self.moves)

    @property
    def nbytes(self) -> float:
        """What the formulas count as moved, all moves together."""
        return sum(move.nbytes for move in self.moves)

    @property
    def says(self) -> str:
        """'slice A over Y, gather A over X'."""
        return ", ".join(move.says for move in self.moves) or "nothing to move"

    def __str__(self) -> str:
        cost = si(float(self.total_s), "s") if self.total_s else "free"
        return f"{self.says}: {cost}" + (f" ({self.why})" if self.why else "")


@dataclass(frozen=True, slots=True)
class Resharding(Told):
    """The cheapest sequence between two shardings, and the other ways that lost to it."""

    before: Array
    after: Array
    best: Sequence
    rejected: tuple[Sequence, ...]

    @property
    def steps(self) -> tuple[Move, ...]:
        """The moves of the cheapest sequence."""
        return self.best.moves

    @property
    def total_s(self) -> float:
        """How long the cheapest sequence takes."""
        return self.best.total_s

    def __str__(self) -> str:
        told = f"{self.before} → {self.after}: {self.best}"
        return told + (f"; next best: {self.rejected[0]}" if self.rejected else "")


def reshard(
    before: Array | str,
    after: Array | str,
    machine: DeviceMesh,
    sizes: Mapping[str, int],
    dtype: DType = BF16,
    *,
    idle_links: bool = False,
) -> Resharding:
    """A[I_X, J] → A[I, J_X]: the cheapest sequence of slices, gathers, exchanges, permutes and sums.

    With `idle_links`, axes that neither sharding names may help: where the array is replicated along one, its
    replicas can each fetch a part over links that would be idle.
    """
    a, b = (parse(x) if isinstance(x, str) else x for x in (before, after))
    _check_pair(a, b)
    for array in (a, b):
        check_even(array, machine, sizes)
    start, goal = split_only(a, machine), split_only(b, machine)
    over = machine.sizes if idle_links else (*start.axes, *start.partial, *goal.axes)
    moves = Moves(start, machine, sizes, dtype, frozenset(over))
    paths = _ways(moves, layout(start), layout(goal))
    ways = [Sequence(tuple(moves.move(*step) for step in path)) for path in paths]
    best, *others = ways
    return Resharding(a, b, best, tuple(Sequence(way.moves, _why(way, best)) for way in others))


def check_even(array: Array, machine: DeviceMesh, sizes: Mapping[str, int]) -> None:
    """Refuse what does not split into equal blocks, and say what size would."""
    mesh = Mesh(**machine.sizes)
    array.check(mesh)
    for dim, size in zip(array.dims, array.shape(**sizes), strict=True):
        parts = mesh.size(dim.axes)
        if size % parts:
            raise ValueError(
                f"{array}: {dim.name} = {size} does not split evenly over the {parts} chips of "
                f"{''.join(dim.axes)}; pad it to {-(-size // parts) * parts}"
            )


def split_only(array: Array, machine: DeviceMesh) -> Array:
    """The array without the axes of one chip, which split nothing."""
    real = {name for name, size in machine.sizes.items() if size > 1}
    axes = {dim.name: [name for name in dim.axes if name in real] for dim in array.dims}
    return array.with_axes(**axes).with_partial([name for name in array.partial if name in real])


def cheapest_from(moves: Moves, start: Layout) -> dict[Layout, Path]:
    """The cheapest path from `start` to every layout that can be reached."""
    return _search(start, lambda at: [(edge.after, at, edge) for edge in moves.edges(at)], forward=True)


def cheapest_to(moves: Moves, goal: Layout, starts: Iterable[Layout]) -> dict[Layout, Path]:
    """The cheapest path to `goal` from every layout on the way from these starts."""
    into: dict[Layout, list[tuple[Layout, Layout, Edge]]] = {}
    ahead, known = list(starts), set()
    while ahead:
        at = ahead.pop()
        if at not in known:
            known.add(at)
            for edge in moves.edges(at):
                into.setdefault(edge.after, []).append((at, at, edge))
                ahead.append(edge.after)
    return _search(goal, lambda at: into.get(at, []), forward=False)


def _search(start: Layout, steps: Steps, forward: bool) -> dict[Layout, Path]:
    """Dijkstra's: always go on from the cheapest layout reached so far."""
    tie = itertools.count()
    paths: dict[Layout, Path] = {}
    heap: list[tuple[Cost, int, Layout, Path]] = [((0, 0), next(tie), start, ())]
    while heap:
        (seconds, length), _, at, path = heapq.heappop(heap)
        if at in paths:
            continue
        paths[at] = path
        for there, source, edge in steps(at):
            if there not in paths:
                longer = (*path, (source, edge)) if forward else ((source, edge), *path)
                cost = (seconds + edge.transfer.total_s, length + 1)
                heapq.heappush(heap, (cost, next(tie), there, longer))
    return paths


def _ways(moves: Moves, start: Layout, goal: Layout) -> list[Path]:
    """The cheapest path and the next-best that are no mere detours of a better one."""
    tie = itertools.count()
    heap: list[tuple[Cost, int, Layout, Path]] = [((0, 0), next(tie), start, ())]
    passed: dict[Layout, int] = {}
    found: list[Path] = []
    while heap and len(found) <= NEXT_BEST:
        (seconds, length), _, at, path = heapq.heappop(heap)
        passed[at] = passed.get(at, 0) + 1
        if at == goal:
            if not any(_detour(path, better) for better in found):
                found.append(path)
        elif passed[at] <= DETOUR:
            seen = {layout for layout, _ in path}
            for edge in moves.edges(at):
                if edge.after not in seen:
                    cost = (seconds + edge.transfer.total_s, length + 1)
                    heapq.heappush(heap, (cost, next(tie), edge.after, (*path, (at, edge))))
    return found


def _detour(path: Path, better: Path) -> bool:
    """Whether a path does all that a better one does, and perhaps more besides."""
    mine, theirs = (_does(p) for p in (path, better))
    return all(mine.count(step) >= theirs.count(step) for step in theirs)


def _does(path: Path) -> list[tuple[str, frozenset[str]]]:
    """What a path moves, whatever dimension or order of axes it goes by; slices move nothing."""
    return [(edge.kind, frozenset(edge.axes)) for _, edge in path if edge.kind != "slice"]


def _why(way: Sequence, best: Sequence) -> str:
    if not best.total_s:
        return "the cheapest way is free"
    times = way.total_s / best.total_s
    return f"{times:.3g} times as long" if times > 1.001 else "as long, in more or other steps"


def _check_pair(a: Array, b: Array) -> None:
    if a.names != b.names:
        raise ValueError(f"{a} and {b} have different dimensions; resharding only changes subscripts")
    missing = [name for name in b.partial if name not in a.partial]
    if missing:
        raise ValueError(f"{a} is no partial sum over {''.join(missing)}, and no resharding makes it one")
