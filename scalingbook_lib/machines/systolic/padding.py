"""The peak rate of a systolic array, the cycles of a matmul on it, and the fraction lost to padding.

FLOPs/s are counted from cells and clock. With side t and M rows streamed past every tile of weights, the
cycle formulas equal the counts of `array.simulate`; sizes that are not multiples of the side are padded with
zeros. Memory layouts have their own tiles. Chapter: TPUs.
"""

import math
from dataclasses import dataclass

from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.units import BF16, DType, Result, percent, require_min, si
from scalingbook_lib.words import pluralize

SUBLANES, LANES = 8, 128  # a register: rows and columns of 32-bit elements


@dataclass(frozen=True, slots=True)
class Padding(Result):
    """X[M, K] · W[K, N] on an array of one side, weight-stationary, W split into padded tiles."""

    M: int
    K: int
    N: int
    side: int

    @property
    def k_tiles(self) -> int:
        """The number of tiles along K, the contracting dimension."""
        return math.ceil(self.K / self.side)

    @property
    def n_tiles(self) -> int:
        """The number of tiles along N, the columns of the result."""
        return math.ceil(self.N / self.side)

    @property
    def tiles(self) -> int:
        """The number of tiles of W."""
        return self.k_tiles * self.n_tiles  # each of side² weights, padding included

    @property
    def useful_flops(self) -> int:
        """The FLOPs of the matmul itself: 2 M K N."""
        return 2 * self.M * self.K * self.N  # a multiply and an add for each of M K N terms

    @property
    def performed_flops(self) -> int:
        """The FLOPs that the array performs while M rows pass all tiles, zeros included."""
        # a cell multiplies by the zeros of the padding as by any weight
        return 2 * self.M * self.tiles * self.side**2

    @property
    def useful(self) -> float:
        """The fraction of performed FLOPs that is not padding: K N over the padded K N."""
        return self.useful_flops / self.performed_flops  # M cancels: rows are never padded

    @property
    def cycles(self) -> int:
        """The cycles of one array for all tiles, with weights double buffered and the first tile loaded."""
        return cycles(self.M, self.side, self.tiles)

    @property
    def utilization(self) -> float:
        """Useful multiplications over cell-cycles: padding, small M, filling and draining together."""
        # multiply-adds over cells times cycles
        return self.M * self.K * self.N / (self.side**2 * self.cycles)

    @property
    def activation_stationary(self) -> "Padding":
        """The same matmul with X stationary: Wᵀ[N, K] · Xᵀ[K, M].

        A compiler may choose the better of the two.
        """
        # (X · W)ᵀ = Wᵀ · Xᵀ: M is split into tiles, and N rows stream past them
        return Padding(self.N, self.K, self.M, self.side)

    def __str__(self) -> str:
        return (
            f"[{self.M:,}, {self.K:,}] · [{self.K:,}, {self.N:,}] in {self.tiles:,} "
            f"tile{'s' * (self.tiles > 1)} of side {self.side}: {percent(self.useful, 3)} of the weight "
            f"cells are used, {percent(self.utilization, 3)} of the cell-cycles do useful work"
        )


def padding(M: int, K: int, N: int, side: int) -> Padding:
    """The padding of X[M, K] · W[K, N] on an array of that side: its tiles and the useful fraction."""
    require_min(1, M=M, K=K, N=N, side=side)
    return Padding(M, K, N, side)


@dataclass(frozen=True, slots=True)
class Storage(Result):
    """A matrix as a TPU stores it, with its dimensions in order, in whole tiles of 8 x 128."""

    rows: int
    columns: int
    dtype: DType

    @property
    def padded(self) -> tuple[int, int]:
        """The rows and columns including padding."""
        return (
            SUBLANES * math.ceil(self.rows / SUBLANES),
            LANES * math.ceil(self.columns / LANES),
        )

    @property
    def useful_bytes(self) -> float:
        """The bytes of the elements themselves."""
        return self.dtype.bytes * self.rows * self.columns

    @property
    def bytes(self) -> float:
        """The bytes stored, padding included."""
        rows, columns = self.padded
        return self.dtype.bytes * rows * columns

    def __str__(self) -> str:
        rows, columns = self.padded
        return (
            f"{self.dtype}[{self.rows:,}, {self.columns:,}] is stored as [{rows:,}, {columns:,}]: "
            f"{si(self.bytes, 'B')}, {percent(self.useful_bytes / self.bytes, 3)} of it used"
        )


def storage(rows: int, columns: int, dtype: DType = BF16) -> Storage:
    """The padded storage of a matrix in HBM, for types of 8 bits or more.

    This is how XLA compiled `bf16[20, 200]` and `int8[20, 200]` for v5e to TPU7x: 24 x 256 elements. XLA may
    also transpose a matrix to avoid padding, so only the compiled program is authoritative. Raises a
    ValueError for types of fewer bits.
    """
    require_min(1, rows=rows, columns=columns)
    if dtype.bytes < 1:
        raise ValueError(f"{dtype} packs several elements into a byte; write int8, bf16 or fp32")
    return Storage(rows, columns, dtype)


def cycles(M: int, t: int, tiles: int = 1, double_buffered: bool = True) -> int:
    """The cycles from the first multiplication to the last result, once the first tile's weights are loaded.

    M + 2t - 2 for one tile: a row enters every cycle, and the last one crosses t - 1 cells to the right and t
    - 1 down after its first. Every earlier tile costs one more period.
    """
    require_min(1, M=M, t=t, tiles=tiles)
    # every tile but the last costs a period, because the next one follows immediately
    return (tiles - 1) * tile_period(M, t, double_buffered) + M + 2 * t - 2


def tile_period(M: int, t: int, double_buffered: bool = True) -> int:
    """The cycles from one tile's first row to the next tile's.

    New weights take t cycles to enter. With a second register in every cell they enter while M rows pass,
    max(M, t); with one register a cell either loads or multiplies, M + t.
    """
    require_min(1, M=M, t=t)
    return max(M, t) if double_buffered else M + t


def utilization(M: int, t: int, tiles: int = 1, double_buffered: bool = True) -> float:
    """The fraction of cell-cycles that multiply, from the first multiplication to the last result."""
    return tiles * M / cycles(M, t, tiles, double_buffered)  # each cell multiplies once per row and tile


def rows_for(share: float, t: int) -> float:
    """The number of rows M at which one isolated tile reaches this utilization: M / (M + 2t - 2) = share."""
    require_min(1, t=t)
    if not 0 < share < 1:
        raise ValueError(f"share={share}: write a fraction between 0 and 1, as in 0.9")
    return share * (2 * t - 2) / (1 - share)  # solved for M


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak(Result):
    """The peak rate from cores, matrix units per core, cells per unit and clock.

    Each cell does one multiply-add per cycle. `arrays_per_unit` is 1 up to v5p. For v6e and later the
    datasheet's FLOPs/s are twice what the documented units give (v6e: two of 256 x 256 at 1.75 GHz make 459
    of its 918 TFLOPs/s), so each unit must count as two arrays, or each cell must do two multiply-adds per
    cycle. No source documents which; 2 covers both.
    """

    cores: int
    units: int
    side: int
    clock_hz: float
    arrays_per_unit: int = 1

    def __post_init__(self) -> None:
        if min(self.cores, self.units, self.side, self.clock_hz, self.arrays_per_unit) <= 0:
            raise ValueError(
                f"{self.cores} cores of {self.units} units of side {self.side} at {self.clock_hz} Hz "
                "compute nothing; write positive numbers"
            )

    @property
    def cells(self) -> int:
        """The number of cells of the chip."""
        # one multiply-add per cell and cycle
        return self.cores * self.units * self.arrays_per_unit * self.side**2

    @property
    def flops_per_cycle(self) -> int:
        """The FLOPs per cycle: a multiply and an add in every cell."""
        return 2 * self.cells

    @property
    def flops_per_s(self) -> float:
        """The peak rate of the chip, in FLOPs/s."""
        return self.flops_per_cycle * self.clock_hz  # cells · 2 · Hz ("TPUs: the chip")

    def datasheet_ratio(self, datasheet_flops_per_s: float) -> float:
        """The datasheet's FLOPs/s over these: 1 if the count explains it, 2 for v6e's units."""
        return datasheet_flops_per_s / self.flops_per_s

    def __str__(self) -> str:
        twice = f" ({self.arrays_per_unit} arrays each)" if self.arrays_per_unit > 1 else ""
        return (
            f"{pluralize(self.cores, 'core')} x {pluralize(self.units, 'unit')}{twice} "
            f"of {self.side} x {self.side} cells at {si(self.clock_hz, 'Hz')}: "
            f"{si(self.flops_per_s, 'FLOPs/s')}"
        )


def peak(cores: int, units: int, side: int, clock_hz: float, *, arrays_per_unit: int = 1) -> Peak:
    """The peak of cores · units of each · 2 side² · clock, in FLOPs/s."""
    return Peak(cores=cores, units=units, side=side, clock_hz=clock_hz, arrays_per_unit=arrays_per_unit)


def peak_of(chip: Chip, *, clock_hz: float | None = None, arrays_per_unit: int = 1) -> Peak:
    """The peak of a catalog chip, counted from its documented units, side and clock.

    For v6e and later no clock is documented: pass one, 1.75 GHz for v6e. Raises a ValueError if a number is
    missing.
    """
    clock = clock_hz or chip.clock_hz
    if not (chip.cores and chip.matrix_units and chip.matrix_side):
        raise ValueError(
            f"{chip.name} has no documented number of cores, matrix units or side of a unit; "
            "write them to peak(cores, units, side, clock_hz)"
        )
    if not clock:
        raise ValueError(f"{chip.name} has no documented clock; give one, as in clock_hz=1.75e9")
    units = chip.matrix_units // chip.cores
    return peak(chip.cores, units, chip.matrix_side, clock, arrays_per_unit=arrays_per_unit)
