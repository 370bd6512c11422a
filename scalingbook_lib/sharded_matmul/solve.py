"""The strategies of a sharded matmul, by enumeration.

A strategy brings the operands into shardings whose local blocks can be multiplied, multiplies them, and
brings the result into the requested sharding. Every assignment of mesh axes to the matmul's dimensions is one
strategy.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from scalingbook_lib.collectives.resharding import (
    DeviceMesh,
    Moves,
    Path,
    ReshardingStep,
    Subscripts,
    axes_of,
    cheapest_from,
    cheapest_to,
    check_even,
    layout,
    split_only,
)
from scalingbook_lib.notation import Array, Mesh, Product, join_axes, parse_product
from scalingbook_lib.sharded_matmul.strategy import RejectedStrategy, Solution, Strategy
from scalingbook_lib.units import BF16, DType, binary

type Paths = dict[Subscripts, Path]
type Roles = dict[str, tuple[str, ...]]  # the mesh axes on each dimension during the local matmul


def solve(
    product: Product | str,
    machine: DeviceMesh,
    sizes: Mapping[str, int],
    dtype: DType = BF16,
    *,
    idle_axes: bool = False,
) -> Solution:
    """All strategies for A · B -> C on that machine, for these sizes of the matmul's dimensions.

    Arrays are replicated over mesh axes that the matmul does not name; with `idle_axes` these axes may shard
    the work too. Raises a ValueError if no strategy works or a dimension does not divide evenly.
    """
    product = parse_product(product) if isinstance(product, str) else product
    for array in product.arrays:
        check_even(array, machine, sizes)
    # an axis of one chip shards nothing, and each axis multiplies the number of assignments
    axes = [x for x in machine.sizes if machine.sizes[x] > 1 and (idle_axes or x in product.axes)]
    split = Product(*(split_only(array, machine) for array in product.arrays))
    found = list(_Job(split, machine, sizes, dtype, axes).strategies())
    works = [s for s in found if isinstance(s, Strategy)]
    rejected = tuple(s for s in found if isinstance(s, RejectedStrategy))
    if not works:
        raise ValueError(f"{product} has no strategy on {machine.chip.name}: {rejected[0]}")
    best: dict[str, Strategy] = {}  # by name: strategies with the same name differ only in the order of axes
    for strategy in sorted(works, key=lambda s: (s.lower_s, s.upper_s, len(s.steps))):
        best.setdefault(strategy.name, strategy)
    return Solution(product, cases(product), tuple(best.values()), rejected)


def cases(product: Product) -> dict[str, int]:
    """The case, from 1 to 4, of each mesh axis of the operands."""
    return {axis: _case(product, axis) for axis in dict.fromkeys(product.a.axes + product.b.axes)}


def _case(product: Product, axis: str) -> int:
    split = [next((dim.name for dim in x.dims if axis in dim.axes), None) for x in (product.a, product.b)]
    summed = [name in product.contracting for name in split]
    if split[0] == split[1]:
        return 3 if summed[0] else 1
    if any(summed):
        return 2
    return 1 if None in split else 4


@lru_cache(maxsize=64)
def _locals(product: Product, axes: tuple[str, ...]) -> list[tuple[Roles, Product]]:
    """For every assignment of the axes, the operands as multiplied and the result as produced."""
    found = []
    for roles in _roles(product, axes):
        a, b, c = (x.with_partial("").with_axes(**{d: roles[d] for d in x.names}) for x in product.arrays)
        sums = sorted(axis for name in product.contracting for axis in roles[name])
        found.append((roles, Product(a, b, c.with_partial(sums))))
    return found


def _roles(product: Product, axes: tuple[str, ...]) -> Iterator[Roles]:
    """Every assignment of each mesh axis to one dimension, or to none (its chips then repeat the work)."""
    for choice in itertools.product((*product.names, None), repeat=len(axes)):
        given = {name: [x for x, d in zip(axes, choice, strict=True) if d == name] for name in product.names}
        orders = [_orders(product, name, used) for name, used in given.items()]
        for order in itertools.product(*orders):
            yield dict(zip(product.names, order, strict=True))


def _orders(product: Product, name: str, axes: list[str]) -> list[tuple[str, ...]]:
    """The orders in which a subscript may list these axes: each array's own order, and the mesh's."""
    found = {}
    for array in product.arrays:
        own = array.axes_of(name) if name in array.names else ()
        found[tuple([x for x in own if x in axes] + [x for x in axes if x not in own])] = None
    return list(found)


@dataclass
class _Job:
    """One matmul on one machine, with a cache of its moves and paths."""

    product: Product
    machine: DeviceMesh
    sizes: Mapping[str, int]
    dtype: DType
    axes: list[str]

    def __post_init__(self) -> None:
        self.mesh = Mesh(**self.machine.sizes)
        self.locals = _locals(self.product, tuple(self.axes))
        self._known: dict[tuple[Array, frozenset[str]], tuple[Moves, Paths]] = {}

    def strategies(self) -> Iterator[Strategy | RejectedStrategy]:
        """For every assignment of the mesh axes, the strategy, or the reason why there is none."""
        for roles, local in self.locals:
            yield self._strategy(roles, local)

    def _strategy(self, roles: Roles, local: Product) -> Strategy | RejectedStrategy:
        for name, axes in roles.items():
            if self.sizes[name] % self.mesh.size(axes):
                uneven = f"{name} = {self.sizes[name]} does not divide evenly over {join_axes(axes)}"
                return RejectedStrategy(local, uneven)
        before = self._bring(self.product.a, local.a) + self._bring(self.product.b, local.b)
        after = self._deliver(local.c)
        if after is None:
            return RejectedStrategy(local, f"no collective turns it into {self.product.c.canonical()}")
        peak, chip = self._peak(local, before + after), self.machine.chip
        if peak > chip.hbm_bytes:
            return RejectedStrategy(
                local, f"needs {binary(peak)} per chip, {chip.name} has {binary(chip.hbm_bytes)}"
            )
        # one multiply and one add per term, shared by the chips that shard some dimension
        flops = (
            2
            * math.prod(self.sizes[name] for name in roles)
            // math.prod(map(self.mesh.size, roles.values()))
        )
        hbm_bytes = sum(map(self._local_bytes, local.arrays))  # both operands read, the result written
        return Strategy(
            before=before,
            local=local,
            after=after,
            flops=flops,
            math_s=flops / chip.flops_per_s(self.dtype),
            hbm_bytes=hbm_bytes,
            hbm_s=hbm_bytes / chip.hbm_bytes_per_s,
        )

    def _bring(self, held: Array, wanted: Array) -> tuple[ReshardingStep, ...]:
        """The cheapest moves of an operand, over the axes that either sharding names."""
        # one search from the given sharding serves every sharding that a strategy needs
        moves, paths = self._paths(held, wanted, lambda moves: cheapest_from(moves, layout(held)))
        return tuple(map(moves.move, paths[layout(wanted)]))

    def _deliver(self, made: Array) -> tuple[ReshardingStep, ...] | None:
        """The cheapest moves of the result to the requested sharding; None if there are none."""
        goal = self.product.c

        def all_to_goal(moves: Moves) -> Paths:
            starts = [layout(x.c) for _, x in self.locals if axes_of(x.c, goal) == moves.over]
            return cheapest_to(moves, layout(goal), starts)

        moves, paths = self._paths(goal, made, all_to_goal)
        path = paths.get(layout(made))
        return None if path is None else tuple(map(moves.move, path))

    def _paths(self, end: Array, other: Array, find: Callable[[Moves], Paths]) -> tuple[Moves, Paths]:
        """The moves over the axes that either array names, and the paths that `find` returns.

        They are cached by `end`.
        """
        over = axes_of(end, other)
        if (key := (end, over)) not in self._known:
            moves = Moves(end, self.machine, self.sizes, self.dtype, over)
            self._known[key] = moves, find(moves)
        return self._known[key]

    def _peak(self, local: Product, steps: tuple[ReshardingStep, ...]) -> float:
        """The peak bytes on one chip: given operands, moved operands, and the result."""
        # a set: an operand that is multiplied as given is held once
        held = {*self.product.arrays[:2], *local.arrays, *(move.after for move in steps)}
        return sum(map(self._local_bytes, held))

    def _local_bytes(self, array: Array) -> float:
        cells = math.prod(self.sizes[dim.name] for dim in array.dims)
        # an axis of a partial sum shards nothing
        return self.dtype.bytes * cells / self.mesh.size(array.axes)
