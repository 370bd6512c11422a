"""Published kernel measurements, each with its roofline, from `evidence/data/kernels.csv`.

Chapter: Rooflines.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import median

from scalingbook_lib import roofline, rules
from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.reading.chip import chip
from scalingbook_lib.evidence.resources import Row
from scalingbook_lib.machines.chips import Chip, Source
from scalingbook_lib.roofline import Roofline
from scalingbook_lib.units import BF16, DType, Result, count, dtype, percent, si


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(Result):
    """The measured time of one operation, and its roofline at documented peaks."""

    chip: Chip
    what: str
    roofline: Roofline
    seconds: float
    source: Source
    batch: int = 1

    @property
    def attained(self) -> float:
        """The share of the roofline that was reached: 1 would be the lower bound itself."""
        # at documented peaks, a share above 1 would mean a wrong peak or a wrong time
        return self.roofline.lower_s / self.seconds

    def __str__(self) -> str:
        bound = f"{self.roofline.bound}, at least {si(self.roofline.lower_s, 's')}"
        reached = f"{percent(self.attained)} of the roofline"
        return f"{self.chip.name}, {self.what}: {si(self.seconds, 's')} measured, {bound}: {reached}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulSweep:
    """X[B, D] · W[D, F] → Y[B, F] with D = F = `width`, measured at many batch sizes; Y is in bf16."""

    chip: Chip
    dtype: DType
    width: int
    microseconds: Mapping[int, float]
    source: Source

    def bound(self, batch: float) -> Roofline:
        """The roofline of this layer at a batch size."""
        return roofline.matmul(batch, self.width, self.width, self.chip, self.dtype, out=BF16)  # type: ignore[arg-type]

    @property
    def break_even(self) -> float:
        """The batch size above which the layer is compute-bound."""
        return rules.matmul_critical_batch(self.width, self.width, self.chip, self.dtype, out=BF16)

    @property
    def rows(self) -> tuple[Measured, ...]:
        """The measurements, by ascending batch size."""
        shape = f"[{count(self.width)}, {count(self.width)}]"
        return tuple(
            Measured(
                chip=self.chip,
                what=f"{self.dtype.name}[{count(B)}, {count(self.width)}] · {shape}",
                roofline=self.bound(B),
                seconds=us / 1e6,
                source=self.source,
                batch=B,
            )
            for B, us in self.microseconds.items()
        )

    def attained(self, *, above: bool) -> float:
        """The median share of the roofline above the break-even batch, or below it."""
        return median(row.attained for row in self.rows if (row.batch > self.break_even) == above)


def sweeps() -> dict[str, MatmulSweep]:
    """Batch-size sweeps on GPUs, by name."""
    timed = (row for row in resources.rows("kernels") if row["sweep"])
    groups = resources.grouped(timed, lambda row: row["sweep"])
    return {name: _sweep(rows) for name, rows in groups.items()}


def _sweep(rows: list[Row]) -> MatmulSweep:
    """One layer, at the batch size of each row."""
    row = rows[0]  # all rows have the same chip, dtype and width
    return MatmulSweep(
        chip=chip(row["chip"]),
        dtype=dtype(row["dtype"]),
        width=int(row["n"]),
        microseconds={int(row["m"]): float(row["latency_us"]) for row in rows},
        source=resources.source(row),
    )


@cache
def squares() -> tuple[Measured, ...]:
    """Matmuls of square matrices on TPUs."""
    alone = (row for row in resources.rows("kernels") if row["op"] == "gemm" and not row["sweep"])
    return tuple(measured for row in alone for measured in _sweep([row]).rows)


def copy() -> Measured:
    """An HBM copy on a TPU v6e."""
    (row,) = (row for row in resources.rows("kernels") if row["op"] == "hbm_copy")
    on = chip(row["chip"])
    return Measured(
        chip=on,
        what="a copy of 33.6 MB within HBM, read and written",
        roofline=roofline.operation(0, 2 * 2**25, on),
        seconds=float(row["latency_us"]) / 1e6,
        source=resources.source(row),
    )


def matmuls() -> tuple[Measured, ...]:
    """Every measured matmul."""
    return (*(row for sweep in sweeps().values() for row in sweep.rows), *squares())
