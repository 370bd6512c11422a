"""Cycle-by-cycle simulation of a weight-stationary systolic array.

Cell (k, n) holds a weight W[k, n]. In each cycle it takes an activation from its left neighbor and a partial
sum from above, adds the product, and passes both on: the activation to the right, the sum down. Row m of X
enters skewed, its element k in cycle m + k, so that the terms of one sum meet; Y[m, n] leaves below column n.

Weights enter from above with the same skew, t cycles per tile. With double buffering each cell has a second
register for the next weight, and switches to it when the next tile's first row arrives.
"""

from dataclasses import dataclass, replace

from scalingbook_lib.machines.systolic.feed import Arriving, Feed, Matrix, feed
from scalingbook_lib.units import Result
from scalingbook_lib.words import pluralize

type Cells = tuple[tuple[ArrayCell, ...], ...]
type Falling = tuple[int, int] | None  # a tile and one of its weights


@dataclass(frozen=True, slots=True)
class ArrayCell:
    """One cell at the end of a cycle; a field is None if the cell holds no such value.

    `waiting` is the second weight register. `useful`: both operands are matrix elements and not padding.
    """

    weight: int | None = None
    tile: int | None = None
    waiting: int | None = None
    waiting_tile: int | None = None
    activation: int | None = None
    partial: int | None = None
    row: int | None = None
    useful: bool = False
    loading: bool = False

    @property
    def busy(self) -> bool:
        """Whether the cell multiplied in this cycle."""
        return self.activation is not None


@dataclass(frozen=True, slots=True)
class ArrayFrame(Result):
    """The whole array after one cycle; cycle 0 is when the first weight enters."""

    cycle: int
    cells: Cells
    line = "busy", "useful", "loading"

    @property
    def busy(self) -> int:
        """The number of cells that multiplied."""
        return sum(cell.busy for row in self.cells for cell in row)  # of t² cells

    @property
    def useful(self) -> int:
        """The number of cells that multiplied something other than padding."""
        return sum(cell.busy and cell.useful for row in self.cells for cell in row)

    @property
    def loading(self) -> int:
        """The number of cells that loaded a weight."""
        return sum(cell.loading for row in self.cells for cell in row)

    @property
    def heading(self) -> str:
        """The cycle, and the number of cells."""
        return f"cycle {self.cycle}, {len(self.cells) ** 2} cells"


@dataclass(frozen=True, slots=True)
class ArrayRun(Result):
    """A simulated matmul: the result Y and the array after every cycle."""

    side: int
    rows: int
    tiles: int
    double_buffered: bool
    Y: tuple[tuple[int, ...], ...]
    frames: tuple[ArrayFrame, ...]
    line = "cycles", "load_cycles", "utilization"

    @property
    def load_cycles(self) -> int:
        """The cycles before the first multiplication, in which the first tile's weights enter row by row."""
        return next(frame.cycle for frame in self.frames if frame.busy)  # t, one row of weights per cycle

    @property
    def cycles(self) -> int:
        """The cycles from the first multiplication to the last result."""
        return len(self.frames) - self.load_cycles

    @property
    def busy(self) -> tuple[int, ...]:
        """The number of cells that multiply, by cycle."""
        return tuple(frame.busy for frame in self.frames)

    @property
    def drain_cycles(self) -> int:
        """The cycles after the last one in which the maximum number of cells multiplied."""
        return self.busy[::-1].index(max(self.busy))

    @property
    def utilization(self) -> float:
        """The fraction of cell-cycles after loading in which a cell multiplies, padding included."""
        return sum(self.busy) / (self.cycles * self.side**2)  # busy cell-cycles over all cell-cycles

    @property
    def useful(self) -> float:
        """The fraction of cell-cycles after loading in which a cell multiplies anything but padding."""
        return sum(frame.useful for frame in self.frames) / (self.cycles * self.side**2)

    @property
    def heading(self) -> str:
        """The rows, the tiles and the side of the array."""
        tiles = pluralize(self.tiles, "tile")
        return f"{self.rows} rows past {tiles} of {self.side} x {self.side} cells"


def simulate(X: Matrix, W: Matrix, *, side: int | None = None, double_buffered: bool = True) -> ArrayRun:
    """Y[M, N] = X[M, K] · W[K, N], simulated on an array of `side` (default: one that holds all of W).

    Raises a ValueError if the shapes of the matrices do not match.
    """
    return run(feed(X, W, side, double_buffered))


def run(work: Feed) -> ArrayRun:
    """Step the array until every sum has left it; Y's accumulators lie outside, below the columns."""
    cells: Cells = ((ArrayCell(),) * work.t,) * work.t
    frames: list[ArrayFrame] = []
    Y = [[0] * len(work.W[0]) for _ in work.X]
    missing = len(work.X) * work.t * work.tiles  # sums that have not left the array
    while missing:
        cycle = len(frames)
        cells = tuple(
            tuple(_next_cell(cells, work, cycle, k, n) for n in range(work.t)) for k in range(work.t)
        )
        frames.append(ArrayFrame(cycle, cells))
        for n, cell in enumerate(cells[-1]):
            if cell.row is None or cell.tile is None:
                continue
            missing -= 1  # each column emits at most one sum per cycle, with its row
            column = work.column(cell.tile, n)
            if column < len(Y[0]):  # skip sums of padding
                Y[cell.row][column] += cell.partial or 0
    return ArrayRun(
        work.t, len(work.X), work.tiles, work.double_buffered, tuple(map(tuple, Y)), tuple(frames)
    )


def _next_cell(cells: Cells, work: Feed, cycle: int, k: int, n: int) -> ArrayCell:
    """Cell (k, n) after one cycle, in which every cell reads the previous values of its neighbors.

    It multiplies first: with the first activation of a new tile it switches to the waiting weight, whose
    register is then free for the weight that comes from above.
    """
    cell = replace(cells[k][n], activation=None, partial=None, row=None, useful=False, loading=False)
    if arriving := _activation_from(cells[k][n - 1]) if n else work.arriving(k, cycle):
        tile, row, activation = arriving
        if cell.tile != tile:
            cell = replace(cell, weight=cell.waiting, tile=cell.waiting_tile)
        assert cell.tile == tile, "a row met the weights of another tile"
        above = (cells[k - 1][n].partial or 0) if k else 0
        partial = above + activation * (cell.weight or 0)  # one multiply and one add (kung1982systolic)
        cell = replace(cell, activation=activation, row=row, partial=partial, useful=work.inside(tile, k, n))
    if falling := _weight_from_above(cells, work, cycle, k, n):
        tile, weight = falling
        if work.double_buffered:
            return replace(cell, waiting=weight, waiting_tile=tile, loading=True)
        assert not cell.busy, "a cell with one register cannot load while it multiplies"
        return replace(cell, weight=weight, tile=tile, loading=True)
    return cell


def _activation_from(left: ArrayCell) -> Arriving:
    """The tile, row and activation that a cell passes to its right neighbor; None if it holds none."""
    if left.activation is None or left.tile is None or left.row is None:
        return None
    return left.tile, left.row, left.activation


def _weight_from_above(cells: Cells, work: Feed, cycle: int, k: int, n: int) -> Falling:
    """The tile and weight that reach cell (k, n) from above; the lowest row's weights enter first."""
    entering = work.entering(n, cycle)
    if not entering or entering[1] < k:
        return None
    tile, entered = entering
    if k == 0:
        return tile, work.weight(tile, work.t - 1 - entered, n)
    above = cells[k - 1][n]
    held, weight = (above.waiting_tile, above.waiting) if work.double_buffered else (above.tile, above.weight)
    assert held == tile, "a weight is not where it was left"
    return tile, weight or 0
