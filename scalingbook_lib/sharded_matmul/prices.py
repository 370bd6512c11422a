"""The collectives that a legal sharding of a result costs.

JAX's rules say which sharding results but not how it is computed. For a matmul whose operands shard J the
same way, every `out_sharding` reduces the same partial sum; other matmuls are solved, and other arrays are
resharded. The explorers' machine is a mesh X by Y with the chip's own wraparound rule.
"""

from dataclasses import dataclass
from functools import lru_cache

from scalingbook_lib import sharded_matmul
from scalingbook_lib.collectives.resharding import (
    Moves,
    Rings,
    Sequence,
    axes_of,
    cheapest_from,
    layout,
    reshard,
)
from scalingbook_lib.machines import chips
from scalingbook_lib.notation import Array, Dim, Product
from scalingbook_lib.notation.types import spec
from scalingbook_lib.notation.types.operands import MESH, Operands
from scalingbook_lib.notation.types.rules import PRODUCT, RESHARD, contracted
from scalingbook_lib.units import BF16

CHIP = "TPU v5e"


@dataclass(frozen=True, slots=True)
class ProductPath(Sequence):
    """One sequence of moves to a result, or one of several results, with its name."""

    name: str = ""

    @property
    def description(self) -> str:
        """The moves that take time, as in 'reduce-scatter C over Y'; free slices are left out."""
        return ", ".join(move.description for move in self.moves if move.seconds) or "nothing to move"

    @property
    def kinds(self) -> str:
        """The collectives used, as in 'ReduceScatter, AllGather', or 'free'."""
        return ", ".join(dict.fromkeys(move.kind for move in self.moves if move.seconds)) or "free"


def ways(operation: str, o: Operands, made: Array) -> tuple[ProductPath, ...]:
    """The sequences of moves that produce a legal result, the cheapest first."""
    sizes = tuple(o.sizes[d] for d in "IJK")
    if operation == PRODUCT:
        c, sums = Array("C", made.dims, made.partial), partial(o)
        return (_end(sums, c, sizes),) if sums else _products(o.a, o.b, c, sizes)
    # one operand: the array before any move is resharded
    start, goal = _before_and_after(operation, o, made)
    if start == goal:
        return (ProductPath((), name="nothing to move"),)
    found = reshard(start, goal, machine(CHIP, X=2, Y=4), o.sizes, BF16)
    return tuple(ProductPath(s.moves, name=s.description) for s in (found.best, *found.rejected))


@lru_cache(maxsize=256)
def _products(a: Array, b: Array, c: Array, sizes: tuple[int, ...]) -> tuple[ProductPath, ...]:
    """The strategies for A · B -> C, the least communication first, then the least compute."""
    on = machine(CHIP, X=2, Y=4)
    found = sharded_matmul.solve(Product(a, b, c), on, dict(zip("IJK", sizes, strict=True))).strategies
    return tuple(
        ProductPath(s.steps, name=s.name) for s in sorted(found, key=lambda s: (s.comms_s, s.chip_s))
    )


def partial(o: Operands) -> Array | None:
    """C as the local blocks produce it if both operands shard J the same way; otherwise None."""
    left, right = contracted(o)
    free = (*o.a.axes_of("I"), *o.b.axes_of("K"))
    if not left or left != right or len(set(free)) < len(free) or o.a.partial or o.b.partial:
        return None
    return Array("C", (Dim("I", o.a.axes_of("I")), Dim("K", o.b.axes_of("K"))), left)


def out_shardings(o: Operands, specs: tuple[str, ...]) -> tuple[ProductPath, ...]:
    """The cheapest sequences to C unsharded, with the requested sharding, or with one of the `specs`.

    Only `specs` that keep how I and K are sharded are included; the cheapest sequence is first.
    """
    sums = partial(o)
    if sums is None:
        return ()
    wanted = [spec.read(text, 2, MESH, "C", "IK") for text in specs]
    # JAX refuses to leave a sum unreduced over axes other than those that shard J
    legal = [c for c in wanted if c.partial in ((), sums.partial)]
    # every dimension sharded as in the partial sum, or by more axes after those
    kept = [c for c in legal if all(c.axes_of(d.name)[: len(d.axes)] == d.axes for d in sums.dims)]
    shown = [c for c in legal if c in kept or c == o.out or not c.axes + c.partial]
    found = [_end(sums, c, tuple(o.sizes[d] for d in "IJK")) for c in shown]
    return tuple(sorted(found, key=lambda way: way.total_s))


@lru_cache(maxsize=256)
def _end(sums: Array, goal: Array, sizes: tuple[int, ...]) -> ProductPath:
    """The cheapest sequence from a partial sum to this sharding, over the axes that either names."""
    on = machine(CHIP, X=2, Y=4)
    moves = Moves(sums, on, {"I": sizes[0], "K": sizes[2]}, BF16, axes_of(sums, goal))
    path = cheapest_from(moves, layout(sums))[layout(goal)]
    return ProductPath(tuple(map(moves.move, path)), name=spec.spec(goal))


def _before_and_after(operation: str, o: Operands, made: Array) -> tuple[Array, Array]:
    """The array as it is before any move, and the requested array."""
    if operation == RESHARD:
        return _padded(o.a, made), Array("A", made.dims, made.partial)
    if operation in ("A.sum(0)", "A.sum(1)"):
        gone = next(dim for dim in o.a.dims if dim.name not in made.names)
        return made.with_partial((*made.partial, *gone.axes)), made
    if operation == "A.reshape(-1)" and o.a.dims[1].axes:
        return o.a, o.a.with_axes(I=made.dims[0].axes, J="")
    return o.a, o.a


def _padded(a: Array, goal: Array) -> Array:
    """The array as a partial sum over new axes, with blocks padded with zeros, which costs nothing."""
    # jax.reshard to unreduced={'X'}: one device of the axis keeps its block, the others hold zeros
    new = [axis for axis in goal.partial if axis not in a.partial]
    axes = {dim.name: [x for x in dim.axes if x not in new] for dim in a.dims}
    return a.with_axes(**axes).with_partial((*a.partial, *new))


@lru_cache(maxsize=256)
def machine(chip: str, **sizes: int) -> Rings:
    """A mesh whose axes are torus axes of the chip: rings if its generation wraps that size."""
    on = chips.find(chip)
    return Rings(on, **{name: on.axis(size) for name, size in sizes.items()})


def describe_mesh(mesh: Rings) -> str:
    """The mesh in words, as in 'ring X of 16, line Y of 4'; axes of one chip are left out."""
    axes = [(name, mesh.axes(name)[0]) for name, size in mesh.sizes.items() if size > 1]
    return (
        ", ".join(f"{'ring' if a.wrapped else 'line'} {name} of {a.size}" for name, a in axes) or "one chip"
    )
