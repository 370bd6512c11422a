"""What happens in every cell of a systolic array in every cycle?

Cell (k, n) keeps a weight W[k, n]. In each cycle it takes an activation from its left neighbor and a partial
sum from above, adds their product, and hands both on: the activation to the right, the sum down. Row m of X
enters skewed, its element k in cycle m + k, so that products of one sum meet; Y[m, n] leaves below column n.

Weights enter from above with the same skew, t cycles for a tile. With double buffering each cell has a
second register for the next weight, and changes over when the next tile's first row arrives.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from scalingbook_lib.machines.systolic.cell import Arriving, Cell, Loading, load, multiply
from scalingbook_lib.machines.systolic.feed import Feed, Matrix, feed
from scalingbook_lib.units import Told, percent

type Cells = tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Frame(Told):
    """The whole array after one cycle; cycles count from 0, where the first weight enters."""

    cycle: int
    cells: Cells

    @property
    def busy(self) -> int:
        """How many cells multiplied."""
        return sum(cell.busy for row in self.cells for cell in row)

    @property
    def useful(self) -> int:
        """How many of them multiplied something that is no padding."""
        return sum(cell.busy and cell.useful for row in self.cells for cell in row)

    @property
    def loading(self) -> int:
        """How many cells took over a weight."""
        return sum(cell.loading for row in self.cells for cell in row)

    def __str__(self) -> str:
        cells = len(self.cells) ** 2
        return f"cycle {self.cycle}: {self.busy} of {cells} cells multiply, {self.loading} take a weight"


@dataclass(frozen=True, slots=True)
class Run(Told):
    """A product computed cell by cell: Y, and every cycle on the way to it."""

    side: int
    rows: int
    tiles: int
    double_buffered: bool
    Y: tuple[tuple[int, ...], ...]
    frames: tuple[Frame, ...]

    @property
    def load_cycles(self) -> int:
        """Before the first multiplication: the first tile's weights enter, a row of them a cycle."""
        return next(frame.cycle for frame in self.frames if frame.busy)

    @property
    def cycles(self) -> int:
        """From the first multiplication to the last result."""
        return len(self.frames) - self.load_cycles

    @property
    def busy(self) -> tuple[int, ...]:
        """Cells that multiply, cycle by cycle."""
        return tuple(frame.busy for frame in self.frames)

    @property
    def drain_cycles(self) -> int:
        """Cycles after the largest number of cells multiplied for the last time."""
        return self.busy[::-1].index(max(self.busy))

    @property
    def utilization(self) -> float:
        """The share of cell-cycles after loading in which a cell multiplies, padding included."""
        return sum(self.busy) / (self.cycles * self.side**2)

    @property
    def useful(self) -> float:
        """The same without products with padding."""
        return sum(frame.useful for frame in self.frames) / (self.cycles * self.side**2)

    def __str__(self) -> str:
        tiles = f"{self.tiles} tile{'s' * (self.tiles > 1)}"
        return (
            f"{self.rows} rows past {tiles} of {self.side} x {self.side}: {self.cycles} cycles after "
            f"{self.load_cycles} of loading, {percent(self.utilization)} of the cells at work"
        )


def simulate(X: Matrix, W: Matrix, *, side: int | None = None, double_buffered: bool = True) -> Run:
    """Y[M, N] = X[M, K] · W[K, N], played on an array of `side` (one that holds all of W, if not given)."""
    return play(feed(X, W, side, double_buffered))


def play(work: Feed) -> Run:
    """Tick until every sum has left the array."""
    cells: Cells = ((Cell(),) * work.t,) * work.t
    frames: list[Frame] = []
    Y = [[0] * len(work.W[0]) for _ in work.X]
    missing = len(work.X) * work.t * work.tiles  # sums that have not left the array
    while missing:
        cells = _step(cells, work, len(frames))
        frames.append(Frame(len(frames), cells))
        missing -= _collect(cells[-1], work, Y)
    return Run(work.t, len(work.X), work.tiles, work.double_buffered, tuple(map(tuple, Y)), tuple(frames))


def _collect(bottom: Sequence[Cell], work: Feed, Y: list[list[int]]) -> int:
    """Add what leaves below to Y, whose accumulators lie outside the array; return how many sums left."""
    left = 0
    for n, cell in enumerate(bottom):
        if cell.partial is None or cell.row is None or cell.tile is None:
            continue
        left += 1
        if (column := work.column(cell.tile, n)) < len(Y[0]):
            Y[cell.row][column] += cell.partial
    return left


def _step(cells: Cells, work: Feed, cycle: int) -> Cells:
    """One tick: every cell reads what its neighbors held before it."""
    t, after = work.t, [[Cell()] * work.t for _ in range(work.t)]
    for k, n in product(range(t), range(t)):
        arriving = _handed(cells[k][n - 1]) if n else work.arriving(k, cycle)
        above = (cells[k - 1][n].partial or 0) if k else 0
        cell = multiply(cells[k][n], arriving, above)
        if cell.busy and cell.tile is not None:
            cell = replace(cell, useful=work.inside(cell.tile, k, n))
        after[k][n] = load(cell, _falling(cells, work, cycle, k, n), work.double_buffered)
    return tuple(map(tuple, after))


def _handed(left: Cell) -> Arriving:
    if left.activation is None or left.tile is None or left.row is None:
        return None
    return left.tile, left.row, left.activation


def _falling(cells: Cells, work: Feed, cycle: int, k: int, n: int) -> Loading:
    """The weight that reaches cell (k, n) from above: the lowest row's weights enter first."""
    if not (entering := work.entering(n, cycle)) or entering[1] < k:
        return None
    tile, entered = entering
    if k == 0:
        return tile, work.weight(tile, work.t - 1 - entered, n)
    above = cells[k - 1][n]
    held, weight = (above.waiting_tile, above.waiting) if work.double_buffered else (above.tile, above.weight)
    if held != tile or weight is None:
        raise AssertionError("a weight is not where it was left")
    return tile, weight
