"""What does a matmul re-read when it is done in tiles, and does a tile fit on the chip?"""

import math
from dataclasses import dataclass
from typing import Unpack

from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.roofline.operations import Against, operation
from scalingbook_lib.roofline.thresholds import ridge
from scalingbook_lib.roofline.time import Roofline, at_least_one
from scalingbook_lib.units import BF16, DType, Told, binary, count


@dataclass(frozen=True, slots=True)
class TiledMatmul(Told):
    """A matmul that re-reads its inputs tile by tile, and the on-chip memory that a tile needs."""

    roofline: Roofline
    tiles: int
    vmem_bytes: float
    vmem_fraction: float | None

    @property
    def fits(self) -> bool | None:
        """Whether a tile fits the chip's VMEM; None where the chip's VMEM is not documented."""
        return None if self.vmem_fraction is None else self.vmem_fraction <= 1

    def __str__(self) -> str:
        share = {None: "", True: ", which fits", False: ", which does not fit"}[self.fits]
        return f"{self.roofline}; {count(self.tiles)} tiles, each in {binary(self.vmem_bytes)} of VMEM{share}"


def tiled_matmul(
    B: int,
    D: int,
    F: int,
    chip: Chip,
    dtype: DType = BF16,
    *,
    rows: int,
    columns: int,
    depth: int,
    **against: Unpack[Against],
) -> TiledMatmul:
    """X[B, D] · W[D, F] → Y[B, F] in tiles of `rows` of B and `columns` of F, along D in steps of `depth`.

    VMEM holds two buffers of each input tile (one computes while one fills) and an fp32 accumulator.
    """
    at_least_one(B=B, D=D, F=F, rows=rows, columns=columns, depth=depth)
    tiles, steps = math.ceil(B / rows) * math.ceil(F / columns), math.ceil(D / depth)
    inputs = dtype.bytes * depth * (rows + columns)  # one step's tiles of X and of W
    nbytes = tiles * steps * inputs + dtype.bytes * B * F  # each tile of Y reads its inputs anew
    vmem_bytes = 2 * inputs + 4 * rows * columns
    fraction = vmem_bytes / chip.vmem_bytes if chip.vmem_bytes else None
    return TiledMatmul(operation(2 * B * D * F, nbytes, chip, dtype, **against), tiles, vmem_bytes, fraction)


def square_tile(chip: Chip, dtype: DType = BF16, bytes_per_s: float | None = None) -> float:
    """The side above which square tiles are compute-bound: 2 b² d FLOPs for 2 a b d bytes, so a · ridge."""
    return dtype.bytes * ridge(chip, dtype, bytes_per_s)
