"""What does a matmul take on a systolic array, and lose where its sizes are no multiples of the side?

Side t, M rows streamed past every tile of weights: the formulas of cycles are those that `array.simulate`
counts. Memory has tiles of its own.
"""

import math
from dataclasses import dataclass

from scalingbook_lib.units import BF16, DType, Told, at_least, percent, si

SUBLANES, LANES = 8, 128  # a register: rows and columns of 32-bit elements


@dataclass(frozen=True, slots=True)
class Padding(Told):
    """X[M, K] · W[K, N] on an array of one side, W stationary and cut into padded tiles."""

    M: int
    K: int
    N: int
    side: int

    @property
    def deep(self) -> int:
        """Tiles along K, the dimension that is summed over."""
        return math.ceil(self.K / self.side)

    @property
    def across(self) -> int:
        """Tiles along N, the columns of the result."""
        return math.ceil(self.N / self.side)

    @property
    def tiles(self) -> int:
        """All tiles of W."""
        return self.deep * self.across

    @property
    def useful_flops(self) -> int:
        """2 M K N: what the product asks for."""
        return 2 * self.M * self.K * self.N

    @property
    def performed_flops(self) -> int:
        """What the array does while the M rows pass all tiles, zeros included."""
        # a cell multiplies by the zeros of the padding as by any weight
        return 2 * self.M * self.tiles * self.side**2

    @property
    def useful(self) -> float:
        """The share of the array's work that is not multiplication by padding: K N over the padded K N."""
        return self.useful_flops / self.performed_flops

    @property
    def cycles(self) -> int:
        """Cycles of one array for all tiles, weights double buffered, the first in place."""
        return cycles(self.M, self.side, self.tiles)

    @property
    def utilization(self) -> float:
        """Useful multiplications over cell-cycles: padding, few rows, filling and draining together."""
        return self.M * self.K * self.N / (self.side**2 * self.cycles)

    @property
    def swapped(self) -> "Padding":
        """The same product with X stationary: Wᵀ[N, K] · Xᵀ[K, M]. A compiler may choose the better one."""
        # (X · W)ᵀ = Wᵀ · Xᵀ: then M is cut into tiles, and N rows stream past them
        return Padding(self.N, self.K, self.M, self.side)

    def __str__(self) -> str:
        return (
            f"[{self.M:,}, {self.K:,}] · [{self.K:,}, {self.N:,}] in {self.tiles:,} "
            f"tile{'s' * (self.tiles > 1)} of side {self.side}: {percent(self.useful, 3)} of the weight "
            f"cells are used, {percent(self.utilization, 3)} of the cell-cycles"
        )


def padding(M: int, K: int, N: int, side: int) -> Padding:
    """X[M, K] · W[K, N] on an array of that side: tiles, and the share of the work that is not padding."""
    at_least(1, M=M, K=K, N=N, side=side)
    return Padding(M, K, N, side)


@dataclass(frozen=True, slots=True)
class Storage(Told):
    """A matrix as a TPU stores it when it keeps the order of dimensions: in whole tiles of 8 x 128."""

    rows: int
    columns: int
    dtype: DType

    @property
    def padded(self) -> tuple[int, int]:
        """Rows and columns with their padding."""
        return (
            SUBLANES * math.ceil(self.rows / SUBLANES),
            LANES * math.ceil(self.columns / LANES),
        )

    @property
    def useful_bytes(self) -> float:
        """What the elements themselves take."""
        return self.dtype.bytes * self.rows * self.columns

    @property
    def bytes(self) -> float:
        """What is stored."""
        rows, columns = self.padded
        return self.dtype.bytes * rows * columns

    def __str__(self) -> str:
        rows, columns = self.padded
        return (
            f"{self.dtype}[{self.rows:,}, {self.columns:,}] is stored as [{rows:,}, {columns:,}]: "
            f"{si(self.bytes, 'B')}, {percent(self.useful_bytes / self.bytes, 3)} of it used"
        )


def storage(rows: int, columns: int, dtype: DType = BF16) -> Storage:
    """The padded bytes of a matrix in HBM, for data of 8 bits or more.

    As XLA compiled `bf16[20, 200]` and `int8[20, 200]` for v5e to TPU7x: 24 x 256 elements. It may also turn
    dimensions round to avoid padding, so the compiled program has the last word.
    """
    at_least(1, rows=rows, columns=columns)
    if dtype.bytes < 1:
        raise ValueError(f"{dtype} packs several elements into a byte; write int8, bf16 or fp32")
    return Storage(rows, columns, dtype)


def cycles(M: int, t: int, tiles: int = 1, double_buffered: bool = True) -> int:
    """From the first multiplication to the last result, once the first tile's weights are in place.

    M + 2t - 2 for one tile: a row enters every cycle, and the last one crosses t - 1 cells to the right and
    t - 1 down after its first. Every tile before the last costs one more period.
    """
    at_least(1, M=M, t=t, tiles=tiles)
    return (tiles - 1) * tile_period(M, t, double_buffered) + M + 2 * t - 2


def tile_period(M: int, t: int, double_buffered: bool = True) -> int:
    """Cycles from one tile's first row to the next tile's.

    New weights take t cycles to enter. With a second register in every cell they do so while M rows pass,
    max(M, t); with one register a cell either loads or multiplies, M + t.
    """
    at_least(1, M=M, t=t)
    return max(M, t) if double_buffered else M + t


def utilization(M: int, t: int, tiles: int = 1, double_buffered: bool = True) -> float:
    """The share of cell-cycles that multiply, from the first multiplication to the last result."""
    return tiles * M / cycles(M, t, tiles, double_buffered)


def rows_for(share: float, t: int) -> float:
    """The rows M at which one isolated tile reaches this utilization: M / (M + 2t - 2) = share."""
    at_least(1, t=t)
    if not 0 < share < 1:
        raise ValueError(f"share={share}: one tile keeps between none and all cells busy; write 0.9")
    return share * (2 * t - 2) / (1 - share)
