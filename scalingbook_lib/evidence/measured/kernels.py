"""How near do real chips come to their rooflines? Published measurements, each beside its bound.

Every row stands in `data/kernels.csv` too, and a test holds both together; the library carries its own copy
because it also runs where that file is not: in a browser, or installed alone. Chapter: Rooflines.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from scalingbook_lib import roofline
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import Chip, Source
from scalingbook_lib.roofline import Roofline
from scalingbook_lib.units import BF16, FP8, DType, Told, count, percent, si


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(Told):
    """The measured time of one operation, beside the roofline of the same work at documented peaks."""

    chip: Chip
    what: str
    roofline: Roofline
    seconds: float
    source: Source
    batch: int = 1

    @property
    def attained(self) -> float:
        """The share of the roofline that was attained: 1 would be the lower bound itself."""
        return self.roofline.lower_s / self.seconds

    def __str__(self) -> str:
        bound = f"{self.roofline.bound}, at least {si(self.roofline.lower_s, 's')}"
        reached = f"{percent(self.attained)} of the roofline"
        return f"{self.chip.name}, {self.what}: {si(self.seconds, 's')} measured, {bound}: {reached}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """X[B, D] · W[D, F] → Y[B, F] with D = F = `width`, measured at many batches; Y is in bf16."""

    chip: Chip
    dtype: DType
    width: int
    microseconds: Mapping[int, float]
    source: Source

    def bound(self, batch: float) -> Roofline:
        """The roofline of this layer at any batch."""
        return roofline.matmul(batch, self.width, self.width, self.chip, self.dtype, out=BF16)  # type: ignore[arg-type]

    @property
    def break_even(self) -> float:
        """The batch above which the layer is compute-bound."""
        return roofline.break_even_batch(self.width, self.width, self.chip, self.dtype, out=BF16)

    @property
    def rows(self) -> tuple[Measured, ...]:
        """What was measured, from the smallest batch to the largest."""
        shape = f"[{count(self.width)}, {count(self.width)}]"
        return tuple(
            Measured(
                chip=self.chip, what=f"{self.dtype.name}[{count(B)}, {count(self.width)}] · {shape}",
                roofline=self.bound(B), seconds=us / 1e6, source=self.source, batch=B,
            )
            for B, us in self.microseconds.items()
        )  # fmt: skip

    def attained(self, *, above: bool) -> float:
        """The median share of the roofline that was attained above the break-even batch, or below it."""
        return median(row.attained for row in self.rows if (row.batch > self.break_even) == above)


def _sweep(chip: Chip, dtype: DType, width: int, file: str, microseconds: Mapping[int, float]) -> Sweep:
    text = f"aiconfigurator-core 0.12.0 (NVIDIA, Apache License 2.0), {file}/gemm_perf.parquet"
    source = Source(text=text, as_of="2026-11-21", url="https://pypi.org/project/aiconfigurator-core/")
    return Sweep(chip=chip, dtype=dtype, width=width, microseconds=microseconds, source=source)


def _recipe(page: str) -> Source:
    text = f"AI-Hypercomputer/tpu-recipes (Apache License 2.0), {page} at commit c8cfe2f"
    return Source(text=text, as_of="2026-11-21", url="https://github.com/AI-Hypercomputer/tpu-recipes")


def _square(chip: Chip, side: int, microseconds: float, source: Source) -> Measured:
    """X[B, B] · W[B, B] → Y[B, B] in bf16."""
    (row,) = Sweep(chip=chip, dtype=BF16, width=side, microseconds={side: microseconds}, source=source).rows
    return row


_A100, _H100, _B200 = (
    f"{folder}/gemm/trtllm/{version}"
    for folder, version in (("a100_sxm", "1.0.0"), ("h100_sxm", "1.3.0rc20"), ("b200_sxm", "1.3.0rc20"))
)

SWEEPS = {
    "A100, bf16, 16,384 wide": _sweep(chips.A100, BF16, 16384, _A100, {
        1: 320.683, 2: 316.45, 4: 318.362, 8: 321.434, 16: 326.451, 32: 336.589, 128: 360.516, 256: 548.454,
        1024: 2046.874, 2048: 4285.576, 8192: 16683.759,
    }),
    "H100, bf16, 16,384 wide": _sweep(chips.H100, BF16, 16384, _H100, {
        1: 186.144, 2: 185.077, 4: 186.752, 8: 185.541, 16: 185.856, 32: 187.643, 128: 192.997, 256: 208.939,
        1024: 736.816, 2048: 1614.912, 8192: 5826.822, 16384: 12522.874, 32768: 23558.479,
    }),
    "H100, bf16, 4,096 wide": _sweep(chips.H100, BF16, 4096, _H100, {
        1: 16.56, 2: 16.363, 4: 16.283, 8: 16.413, 16: 16.637, 32: 15.243, 128: 16.099, 256: 18.712,
        1024: 45.341, 2048: 87.957, 8192: 343.592, 16384: 697.52, 32768: 1427.133,
    }),
    "H100, fp8, 16,384 wide": _sweep(chips.H100, FP8, 16384, _H100, {
        1: 105.739, 2: 106.069, 4: 105.355, 8: 108.976, 16: 106.053, 32: 109.307, 128: 117.701, 256: 131.381,
        1024: 437.2, 2048: 905.003, 8192: 3304.576, 16384: 6747.888, 32768: 14080.229,
    }),
    "B200, bf16, 16,384 wide": _sweep(chips.B200, BF16, 16384, _B200, {
        1: 85.328, 2: 87.125, 4: 86.725, 8: 89.355, 16: 93.312, 32: 88.773, 128: 91.035, 256: 111.648,
        1024: 458.533, 2048: 720.821, 8192: 2615.435, 16384: 5719.493, 32768: 12589.077,
    }),
    "B200, fp8, 16,384 wide": _sweep(chips.B200, FP8, 16384, _B200, {
        1: 56.117, 2: 59.44, 4: 59.125, 8: 56.117, 16: 57.765, 32: 59.163, 128: 70.267, 256: 76.123,
        1024: 226.645, 2048: 419.323, 8192: 1577.685, 16384: 3142.085, 32768: 6282.96,
    }),
}  # fmt: skip
"""Batch sweeps on GPUs, by name."""

_TRILLIUM = _recipe("microbenchmarks/README.md")
_IRONWOOD = _recipe("microbenchmarks/ironwood/README.md")

SQUARES: tuple[Measured, ...] = (
    _square(chips.V6E, 8192, 1328.756, _TRILLIUM),
    *(
        _square(chips.HALF_TPU7X, side, us, _IRONWOOD)
        for side, us in {128: 1.619, 256: 1.835, 1024: 6.14, 2048: 25.291, 16384: 9257.791}.items()
    ),
)
"""Matmuls of square matrices on TPUs."""

COPY = Measured(
    chip=chips.V6E,
    what="a copy of 33.6 MB within HBM, read and written",
    roofline=roofline.operation(0, 2 * 2**25, chips.V6E),
    seconds=49.359e-6,
    source=_TRILLIUM,
)
"""A copy on a TPU v6e."""

MATMULS: tuple[Measured, ...] = (*(row for sweep in SWEEPS.values() for row in sweep.rows), *SQUARES)
"""Every measured matmul."""
