"""What does a legal result cost to make? The collectives behind a type, by the formulas of this book.

JAX's rules say which sharding comes out and not how. For a product whose operands split J alike, every
`out_sharding` is one way to end the same partial sum; other products are solved, other arrays resharded.
"""

from dataclasses import dataclass
from functools import lru_cache

from scalingbook_lib import sharded_matmul
from scalingbook_lib.collectives.resharding import Move, Moves, cheapest_from, layout, reshard
from scalingbook_lib.notation import Array, Dim, Product
from scalingbook_lib.notation.types import spec
from scalingbook_lib.notation.types.operands import MESH, Operands
from scalingbook_lib.notation.types.rules import PRODUCT, RESHARD, contracted
from scalingbook_lib.sharded_matmul.machines import machine
from scalingbook_lib.units import BF16, Told

CHIP = "TPU v5e"


@dataclass(frozen=True, slots=True)
class Way(Told):
    """One way to a result, or one of several results: its name, and what has to move for it."""

    name: str
    moves: tuple[Move, ...] = ()

    @property
    def seconds(self) -> float:
        """All moves, one after the other."""
        return float(sum(move.seconds for move in self.moves))

    @property
    def nbytes(self) -> float:
        """What the formulas count as moved."""
        return float(sum(move.nbytes for move in self.moves))

    @property
    def says(self) -> str:
        """'reduce-scatter C over Y'; slices, which are free, are left out."""
        return ", ".join(move.says for move in self.moves if move.seconds) or "nothing to move"

    @property
    def kinds(self) -> str:
        """'AllReduce', 'ReduceScatter, AllGather', or 'free'."""
        return ", ".join(dict.fromkeys(move.kind for move in self.moves if move.seconds)) or "free"

    def __str__(self) -> str:
        return f"{self.name}: {self.says}"


def ways(operation: str, o: Operands, made: Array) -> tuple[Way, ...]:
    """The cheapest ways to a legal result, the cheapest first."""
    sizes = tuple(o.sizes[d] for d in "IJK")
    if operation == PRODUCT:
        c, sums = Array("C", made.dims, made.partial), partial(o)
        return _ends(sums, (c,), sizes) if sums else _products(o.a, o.b, c, sizes)
    start, goal = _apart(operation, o, made)
    if start == goal:
        return (Way("nothing to move"),)
    found = reshard(start, goal, machine(CHIP, X=2, Y=4), o.sizes, BF16)
    return tuple(Way(s.says, s.moves) for s in (found.best, *found.rejected))


@lru_cache(maxsize=256)
def _products(a: Array, b: Array, c: Array, sizes: tuple[int, ...]) -> tuple[Way, ...]:
    """The strategies for A · B -> C, those that move least first, and of these the least work."""
    on = machine(CHIP, X=2, Y=4)
    found = sharded_matmul.solve(Product(a, b, c), on, dict(zip("IJK", sizes, strict=True))).strategies
    return tuple(Way(s.name, s.steps) for s in sorted(found, key=lambda s: (s.comms_s, s.chip_s)))


def partial(o: Operands) -> Array | None:
    """C as the blocks give it where both operands split J alike; None where they do not, or clash."""
    left, right = contracted(o)
    kept = (*o.a.axes_of("I"), *o.b.axes_of("K"))
    if not left or left != right or len(set(kept)) < len(kept) or o.a.partial or o.b.partial:
        return None
    return Array("C", (Dim("I", o.a.axes_of("I")), Dim("K", o.b.axes_of("K"))), left)


def answers(o: Operands, specs: tuple[str, ...]) -> tuple[Way, ...]:
    """The `out_sharding`s of these that keep how I and K are split, whole C, and what was asked for."""
    sums = partial(o)
    if sums is None:
        return ()
    wanted = [spec.read(text, 2, MESH, "C", "IK") for text in specs]
    legal = [c for c in wanted if c.partial in ((), sums.partial)]
    shown = tuple(c for c in legal if _keeps(c, sums) or c == o.out or not c.axes + c.partial)
    found = _ends(sums, shown, tuple(o.sizes[d] for d in "IJK"))
    return tuple(sorted(found, key=lambda way: way.seconds))


def _keeps(c: Array, sums: Array) -> bool:
    """Is every dimension split as in the sum, or by more axes after those?"""
    pairs = zip(c.dims, sums.dims, strict=True)
    return all(x.axes[: len(y.axes)] == y.axes for x, y in pairs)


@lru_cache(maxsize=256)
def _ends(sums: Array, goals: tuple[Array, ...], sizes: tuple[int, ...]) -> tuple[Way, ...]:
    """The cheapest way from a partial sum to each of these, over the axes that either of the two names."""
    on, ways = machine(CHIP, X=2, Y=4), {}
    for over in {_axes(sums) | _axes(goal) for goal in goals}:
        moves = Moves(sums, on, {"I": sizes[0], "K": sizes[2]}, BF16, over)
        paths = cheapest_from(moves, layout(sums))
        for goal in goals:
            if _axes(sums) | _axes(goal) == over:
                steps = tuple(moves.move(*step) for step in paths[layout(goal)])
                ways[goal] = Way(spec.spec(goal), steps)
    return tuple(ways[goal] for goal in goals)


def _axes(array: Array) -> frozenset[str]:
    return frozenset(array.axes + array.partial)


def _apart(operation: str, o: Operands, made: Array) -> tuple[Array, Array]:
    """The array that lies there before anything moves, and the one that is wanted."""
    if operation == RESHARD:
        return _padded(o.a, made), Array("A", made.dims, made.partial)
    if operation in ("A.sum(0)", "A.sum(1)"):
        gone = next(dim for dim in o.a.dims if dim.name not in made.names)
        return made.with_partial((*made.partial, *gone.axes)), made
    if operation == "A.reshape(-1)" and o.a.dims[1].axes:
        return o.a, o.a.with_axes(I=made.dims[0].axes, J="")
    return o.a, o.a


def _padded(a: Array, goal: Array) -> Array:
    """The array with zeros around its blocks, a partial sum for nothing, over the axes that become one."""
    new = [axis for axis in goal.partial if axis not in a.partial]
    axes = {dim.name: [x for x in dim.axes if x not in new] for dim in a.dims}
    return a.with_axes(**axes).with_partial((*a.partial, *new))
