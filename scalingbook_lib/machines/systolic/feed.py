"""The inputs of a systolic array in each cycle: rows of X from the left and weights from above, skewed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scalingbook_lib.units import require_min

type Matrix = Sequence[Sequence[int]]
type Arriving = tuple[int, int, int] | None  # a tile, a row of X and its element


@dataclass(frozen=True, slots=True)
class Feed:
    """A matmul split into tiles, along K first, and the cycles in which their weights and rows enter."""

    X: Matrix
    W: Matrix
    t: int
    deep: int
    double_buffered: bool
    loads: tuple[int, ...]
    starts: tuple[int, ...]

    @property
    def tiles(self) -> int:
        """The number of weight tiles."""
        return len(self.starts)

    def arriving(self, k: int, cycle: int) -> Arriving:
        """The tile, row of X and element that enter row k of cells from the left; None if nothing enters."""
        for tile, start in enumerate(self.starts):
            m = cycle - start - k  # the skew: row k of cells gets its element k cycles after row 0
            if 0 <= m < len(self.X):
                row = self.row(tile, k)
                return tile, m, self.X[m][row] if row < len(self.W) else 0
        return None

    def entering(self, n: int, cycle: int) -> tuple[int, int] | None:
        """The tile whose weights enter column n in this cycle, and how many of them entered before.

        None if none enters.
        """
        for tile, load in enumerate(self.loads):
            if 0 <= cycle - load - n < self.t:  # column n begins n cycles late: the skew
                return tile, cycle - load - n
        return None

    def row(self, tile: int, k: int) -> int:
        """The row of W in row k of the array with that tile; tiles are ordered along K first."""
        return tile % self.deep * self.t + k

    def column(self, tile: int, n: int) -> int:
        """The column of W in column n of the array with that tile."""
        return tile // self.deep * self.t + n

    def inside(self, tile: int, k: int, n: int) -> bool:
        """Whether that cell holds a weight of W and not padding."""
        return self.row(tile, k) < len(self.W) and self.column(tile, n) < len(self.W[0])

    def weight(self, tile: int, k: int, n: int) -> int:
        """The weight of that cell; padding is zero."""
        return self.W[self.row(tile, k)][self.column(tile, n)] if self.inside(tile, k, n) else 0


def feed(X: Matrix, W: Matrix, side: int | None, double_buffered: bool) -> Feed:
    """The feed of X · W. Raises a ValueError if their sizes do not match or `side` is below 1."""
    M, K, N = _sizes(X, W)
    t = max(K, N) if side is None else side
    require_min(1, side=t)
    deep = math.ceil(K / t)  # tiles along K
    loads, starts = _timetable(M, t, deep * math.ceil(N / t), double_buffered)
    return Feed(X, W, t, deep, double_buffered, loads, starts)


def _timetable(M: int, t: int, tiles: int, double_buffered: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The cycles in which each tile's first weight and first row enter: as early as the registers allow.

    Cell (0, 0) can take the next tile's weights once it has switched to this one's or, with one register,
    once this tile's rows have passed. Every other cell follows with the same delay throughout.
    """
    loads, starts = [0], [t]
    for _ in range(tiles - 1):
        loads.append(starts[-1] + (0 if double_buffered else M))
        # rows follow without a gap if the weights, which take t cycles, have arrived
        starts.append(max(starts[-1] + M, loads[-1] + t))
    return tuple(loads), tuple(starts)


def _sizes(X: Matrix, W: Matrix) -> tuple[int, int, int]:
    widths = {len(row) for row in X}, {len(row) for row in W}
    if any(len(width) != 1 or not min(width) for width in widths):
        raise ValueError(
            "X and W need rows of equal length, with at least one element, as in [[1, 2], [3, 4]]"
        )
    (K,), (N,) = widths
    if len(W) != K:
        raise ValueError(
            f"X has {K} columns but W has {len(W)} rows; the contracting dimensions must be equal"
        )
    return len(X), K, N
