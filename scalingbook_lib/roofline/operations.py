"""How many FLOPs and how many bytes is each operation?

Counts are exact; the time follows from them and from two rates of the chip.
"""

from typing import Literal, TypedDict, Unpack

from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.roofline.time import Roofline
from scalingbook_lib.units import BF16, DType, at_least


class Against(TypedDict, total=False):
    """What an operation is held against, where it is not the chip's matrix unit and its HBM.

    `maths` is the type that the matrix unit computes in (by default, that of the activations);
    `flops_per_s` names another unit's rate, `bytes_per_s` another memory's or link's; `latency_s` is the
    least time that the operation takes however small it is; `over` is 'memory' or 'network'.
    """

    maths: DType | None
    flops_per_s: float | None
    bytes_per_s: float | None
    latency_s: float
    over: Literal["memory", "network"]


def operation(
    flops: float, nbytes: float, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]
) -> Roofline:
    """Any operation that does `flops` and moves `nbytes` between the chip and its HBM."""
    return Roofline(
        flops=flops,
        bytes=nbytes,
        flops_per_s=against.get("flops_per_s") or chip.flops_per_s(against.get("maths") or dtype),
        bytes_per_s=against.get("bytes_per_s") or chip.hbm_bytes_per_s,
        latency_s=against.get("latency_s", 0.0),
        over=against.get("over", "memory"),
    )


def dot(N: int, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]) -> Roofline:
    """x[N] · y[N] → a scalar: 1 FLOP for every element read, whatever N."""
    at_least(1, N=N)
    return operation(2 * N - 1, dtype.bytes * (2 * N + 1), chip, dtype, **against)


def elementwise(
    N: int, chip: Chip, dtype: DType = BF16, *, inputs: int = 2, flops: int = 1, **against: Unpack[Against]
) -> Roofline:
    """z[N] from `inputs` arrays of N elements, with `flops` for each element: x · y, or α · x + y with 2."""
    at_least(1, N=N)
    return operation(flops * N, dtype.bytes * (inputs + 1) * N, chip, dtype, **against)


def reduction(N: int, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]) -> Roofline:
    """Σ x[N] → a scalar."""
    at_least(1, N=N)
    return operation(N - 1, dtype.bytes * (N + 1), chip, dtype, **against)


def softmax(N: int, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]) -> Roofline:
    """exp(x[N] - max x) / Σ, read and written once: max, subtract, exp (as one FLOP), sum, divide."""
    return elementwise(N, chip, dtype, inputs=1, flops=5, **against)


def matvec(D: int, F: int, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]) -> Roofline:
    """x[D] · W[D, F] → y[F]: a matmul of one row."""
    return matmul(1, D, F, chip, dtype, **against)


def batched_matvec(
    B: int, D: int, F: int, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]
) -> Roofline:
    """x[B, D] · W[B, D, F] → y[B, F]: a private matrix for every row, so a larger B does not help."""
    at_least(1, B=B, D=D, F=F)
    return operation(2 * B * D * F, dtype.bytes * (B * D + B * D * F + B * F), chip, dtype, **against)


def matmul(
    B: int,
    D: int,
    F: int,
    chip: Chip,
    dtype: DType = BF16,
    *,
    weights: DType | None = None,
    out: DType | None = None,
    **against: Unpack[Against],
) -> Roofline:
    """X[B, D] · W[D, F] → Y[B, F] on one chip, operands in HBM.

    `dtype` is how X is stored; W and Y are stored in the same unless `weights` and `out` say otherwise.
    """
    at_least(1, B=B, D=D, F=F)
    a, w, o = stored(dtype, weights, out)
    flops = 2 * B * D * F  # one multiply and one add for each of the B · D · F terms
    nbytes = a * B * D + w * D * F + o * B * F  # read X, read W, write Y
    return operation(flops, nbytes, chip, dtype, **against)


def stored(dtype: DType, weights: DType | None, out: DType | None) -> tuple[float, float, float]:
    """Bytes an element of the activations, the weights and the output."""
    return dtype.bytes, (weights or dtype).bytes, (out or dtype).bytes
