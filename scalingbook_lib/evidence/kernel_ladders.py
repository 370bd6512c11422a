"""Published step-by-step optimizations of a matmul kernel, each step with the ceiling that it can reach.

`kernel_ladders.csv` has the tile and stages of each step and the rate that its authors measured. Chapter:
Kernels on GPUs.
"""

from dataclasses import dataclass
from math import ceil

from scalingbook_lib.evidence import resources
from scalingbook_lib.machines.chips import Chip, Source, find
from scalingbook_lib.roofline.gpu_kernels import MatmulTile, matmul_tile, wave_efficiency
from scalingbook_lib.units import KiB, Result, percent


@dataclass(frozen=True, slots=True)
class Rung(Result):
    """One step of a ladder: what changed, its ceiling, and the measured rate. Fractions are of the peak."""

    chip: Chip
    step: str
    detail: str
    tile: MatmulTile | None  # None if the kernel does not use Tensor Cores
    used: float  # fraction of SM time in the waves of tiles
    flops_per_s: float
    operands: str  # 'normal' for random numbers, 'identity' for a matrix with ones on its diagonal
    source: Source

    @property
    def ceiling(self) -> float:
        """The largest fraction of the peak: that of the tile, times that of its waves."""
        if self.tile is None:
            return (self.chip.vector_flops_per_s or 0) / self.chip.bf16_flops_per_s
        return self.tile.ceiling * self.used

    @property
    def bound(self) -> str:
        """What sets the ceiling: 'CUDA cores', 'SMEM', 'L2' or 'latency' of the tile, or 'waves'."""
        if self.tile is None:
            return "CUDA cores"
        return "waves" if self.tile.bound == "math" else self.tile.bound

    @property
    def reached(self) -> float:
        """The measured fraction of the documented peak."""
        return self.flops_per_s / self.chip.bf16_flops_per_s

    @property
    def of_ceiling(self) -> float:
        """The measured fraction of the ceiling."""
        return self.reached / self.ceiling

    def __str__(self) -> str:
        return (
            f"{self.step}: {percent(self.reached)} of the peak measured, ceiling {percent(self.ceiling)} "
            f"({self.bound})"
        )


def ladder(chip: Chip) -> tuple[Rung, ...]:
    """The steps recorded for this chip, in order; a ValueError if there are none."""
    rows = [row for row in resources.rows("kernel_ladders") if row["chip"] == chip.name]
    if not rows:
        known = sorted({row["chip"] for row in resources.rows("kernel_ladders")})
        raise ValueError(f"no steps are recorded for {chip.name}; choose one of {', '.join(known)}")
    return tuple(_rung(row) for row in rows)


def _rung(row: resources.Row) -> Rung:
    chip = find(row["chip"])
    tile, used = None, 1.0
    if row["rows"]:
        rows, columns, sms = (int(row[name]) for name in ("rows", "columns", "sms"))
        kept = int(row["output_kib"]) * KiB
        depths = {name: int(row[name]) for name in ("stages", "blocks")}
        tile = matmul_tile(chip, rows, columns, sms=sms, output_bytes=kept, **depths)
        side, workers = int(row["side"]), int(row["workers"])
        tiles = ceil(side / rows) * ceil(side / columns)
        used = wave_efficiency(tiles, workers) * workers * sms / (chip.cores or 0)
    return Rung(
        chip=chip,
        step=row["step"],
        detail=row["detail"],
        tile=tile,
        used=used,
        flops_per_s=float(row["tflops"]) * 1e12,
        operands=row["operands"],
        source=resources.source(row),
    )
