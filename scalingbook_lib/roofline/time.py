"""The FLOPs and bytes of common operations, the terms of their time, and the longest term.

Counts are exact; the times follow from them and from two rates of the chip. Chapter: Rooflines.
"""

import math
from dataclasses import dataclass
from typing import Literal, TypedDict, Unpack

from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.rules import element_bytes, ridge_point
from scalingbook_lib.units import BF16, DType, Result, percent, require_min, si


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline(Result):
    """One operation against one compute rate and one bandwidth, with the times that follow from them."""

    flops: float
    bytes: float
    flops_per_s: float
    bytes_per_s: float
    latency_s: float = 0.0  # the minimum time, however small the operation
    over: str = "memory"

    def __post_init__(self) -> None:
        if not (self.flops >= 0 and self.bytes >= 0 and self.latency_s >= 0):
            raise ValueError(
                f"{self.flops} FLOPs, {self.bytes} bytes, {self.latency_s} s: none may be negative"
            )
        if not (self.flops_per_s > 0 and self.bytes_per_s > 0):
            raise ValueError(f"{self.flops_per_s} FLOPs/s and {self.bytes_per_s} B/s: write positive rates")

    @property
    def math_s(self) -> float:
        """T_math, the compute time in seconds: FLOPs / C."""
        return self.flops / self.flops_per_s

    @property
    def memory_s(self) -> float:
        """T_comms, the transfer time in seconds: bytes / W.

        The bytes move over memory or, in a network roofline, over links.
        """
        return self.bytes / self.bytes_per_s

    @property
    def comms_s(self) -> float:
        """The same as `memory_s`, for a roofline whose bytes cross links."""
        return self.memory_s

    @property
    def lower_s(self) -> float:
        """The time in seconds if everything overlaps: the longest term."""
        return max(self.math_s, self.memory_s, self.latency_s)

    @property
    def upper_s(self) -> float:
        """The time in seconds if nothing overlaps: the sum of the terms."""
        # serialized, as without double buffering
        return self.math_s + self.memory_s + self.latency_s

    @property
    def intensity(self) -> float:
        """The FLOPs per byte moved; inf if nothing moves."""
        return self.flops / self.bytes if self.bytes else math.inf

    @property
    def ridge(self) -> float:
        """The ridge point in FLOPs/byte, at which math and memory take equally long."""
        return ridge_point(self.flops_per_s, self.bytes_per_s)  # R, or r where the bytes cross a torus axis

    @property
    def bound(self) -> str:
        """The longest term: 'compute-bound', 'memory-bound' (or 'network-bound') or 'latency-bound'.

        'nothing to do' if nothing is computed, nothing moves and there is no latency.
        """
        # if the latency exceeds both other terms, neither faster math nor faster memory helps
        if self.latency_s > max(self.math_s, self.memory_s):
            return "latency-bound"
        return (
            f"{'compute' if self.math_s >= self.memory_s else self.over}-bound"
            if self.upper_s
            else "nothing to do"
        )

    @property
    def attained_flops_per_s(self) -> float:
        """The FLOP/s attained if everything overlaps."""
        return self.flops / self.lower_s if self.lower_s else 0.0

    @property
    def attained_fraction(self) -> float:
        """The fraction of the peak attained if everything overlaps: min(1, intensity / ridge)."""
        return self.math_s / self.lower_s if self.lower_s else 0.0

    def __str__(self) -> str:
        late = f", latency {si(self.latency_s, 's')}" if self.latency_s else ""
        return (
            f"{self.bound}: math {si(self.math_s, 's')}, {self.over} {si(self.memory_s, 's')}{late}, "
            f"so at best {percent(self.attained_fraction)} of the peak"
        )


def overlapped(math_s: float, comms_s: float, hidden: float) -> float:
    """The time if a fraction `hidden` of the shorter term overlaps with the longer: 1 is the max, 0 the sum.

    Raises a ValueError if `hidden` is not between 0 and 1.
    """
    if not 0 <= hidden <= 1:
        raise ValueError(f"hidden={hidden} is not a fraction; write a number from 0 (nothing overlaps) to 1")
    # at most the shorter term can be hidden
    return math_s + comms_s - hidden * min(math_s, comms_s)


def pipelined(math_s: float, comms_s: float, chunks: int) -> float:
    """The time in equal chunks, each copied while the previous one is computed.

    It is the longer term in full plus one chunk of the shorter, which stays exposed.
    """
    require_min(1, chunks=chunks)
    # n - 1 of the n chunks of the shorter term overlap with the longer one
    return overlapped(math_s, comms_s, 1 - 1 / chunks)


class Against(TypedDict, total=False):
    """The rates that an operation is compared with, if not the chip's matrix unit and HBM.

    `maths` is the type in which the matrix unit computes (by default that of the activations); `flops_per_s`
    is another unit's rate, `bytes_per_s` another memory's or link's; `latency_s` is the minimum time of the
    operation, however small; `over` is 'memory' or 'network'.
    """

    maths: DType | None
    flops_per_s: float | None
    bytes_per_s: float | None
    latency_s: float
    over: Literal["memory", "network"]


def operation(
    flops: float, nbytes: float, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]
) -> Roofline:
    """An operation that does `flops` FLOPs and moves `nbytes` bytes between the chip and its HBM."""
    return Roofline(
        flops=flops,
        bytes=nbytes,
        flops_per_s=against.get("flops_per_s") or chip.flops_per_s(against.get("maths") or dtype),
        bytes_per_s=against.get("bytes_per_s") or chip.hbm_bytes_per_s,
        latency_s=against.get("latency_s", 0.0),
        over=against.get("over", "memory"),
    )


def dot(N: int, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]) -> Roofline:
    """x[N] · y[N] → a scalar: 1 FLOP per element read, for any N."""
    require_min(1, N=N)
    # N multiplies and N - 1 adds; two arrays read, one number written
    return operation(2 * N - 1, dtype.bytes * (2 * N + 1), chip, dtype, **against)


def elementwise(
    N: int, chip: Chip, dtype: DType = BF16, *, inputs: int = 2, flops: int = 1, **against: Unpack[Against]
) -> Roofline:
    """z[N] from `inputs` arrays of N elements, with `flops` FLOPs per element: 1 for x · y, 2 for α x + y."""
    require_min(1, N=N)
    return operation(flops * N, dtype.bytes * (inputs + 1) * N, chip, dtype, **against)


def reduction(N: int, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]) -> Roofline:
    """Σ x[N] → a scalar: N - 1 FLOPs for N elements read."""
    require_min(1, N=N)
    return operation(N - 1, dtype.bytes * (N + 1), chip, dtype, **against)


def softmax(N: int, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]) -> Roofline:
    """exp(x[N] - max x) / Σ, read and written once: max, subtract, exp (as one FLOP), sum, divide."""
    # 5 FLOPs per element, which is read once and written once
    return elementwise(N, chip, dtype, inputs=1, flops=5, **against)


def matvec(D: int, F: int, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]) -> Roofline:
    """x[D] · W[D, F] → y[F]: a matmul with a single row."""
    # about 1 FLOP per byte in bf16, because W is read for one row
    return matmul(1, D, F, chip, dtype, **against)


def batched_matvec(
    B: int, D: int, F: int, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]
) -> Roofline:
    """x[B, D] · W[B, D, F] → y[B, F]: one matrix per row, so a larger B does not raise the intensity."""
    require_min(1, B=B, D=D, F=F)
    # read x, read one matrix per row, write y
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
    """X[B, D] · W[D, F] → Y[B, F] on one chip, with operands in HBM.

    X is stored in `dtype`; W and Y are stored in `weights` and `out`, by default also `dtype`.
    """
    require_min(1, B=B, D=D, F=F)
    a, w, o = element_bytes(dtype, weights, out)
    flops = 2 * B * D * F  # one multiply and one add for each of the B · D · F terms
    nbytes = a * B * D + w * D * F + o * B * F  # read X, read W, write Y
    return operation(flops, nbytes, chip, dtype, **against)
