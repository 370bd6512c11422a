"""From which intensity, and from which batch on, is the matrix unit what limits?"""

import math
from dataclasses import dataclass

from scalingbook_lib.chips import Chip
from scalingbook_lib.roofline.operations import stored
from scalingbook_lib.roofline.time import at_least_one
from scalingbook_lib.told import Told
from scalingbook_lib.units import BF16, DType, percent


def ridge(self) -> float:
        """The intensity at which math and memory take equally long."""
        return self.flops_per_s / self.bytes_per_s

    @property
    def bound(self) -> str:
        """The longest term: 'compute-bound', 'memory-bound' (or 'network-bound'), 'latency-bound'."""
        if self.latency_s > max(self.math_s, self.memory_s):
            return "latency-bound"
        return "compute-bound" if self.math_s >= self.memory_s else f"{self.over}-bound"

    @property
    def attained_flops_per_s(self) -> float:
        """The FLOP/s that are reached if everything overlaps."""
        return self.flops / self.lower_s if self.lower_s else 0.0

    @property
    def attained_fraction(self) -> float:
        """The share of the peak that is reached if everything overlaps: min(1, intensity / ridge)."""
        return self.math_s / self.lower_s if self.lower_s else 0.0

    def __str__(self) -> str:
        late = f", latency {si(self.latency_s, 's')}" if self.latency_s else ""
        return (
            f"{self.bound}: math {si(self.math_s, 's')}, {self.over} {si(self.memory_s, 's')}{late}, "
            f"so at best {self.attained_fraction:.0%} of the peak"
        )


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
    at_least_one(N=N)
    return operation(2 * N - 1, dtype.bytes * (2 * N + 1), chip, dtype, **against)


def elementwise(
    N: int, chip: Chip, dtype: DType = BF16, *, inputs: int = 2, flops: int = 1, **against: Unpack[Against]
) -> Roofline:
    """z[N] from `inputs` arrays of N elements, with `flops` for each element: x · y, or α · x + y with 2."""
    at_least_one(N=N)
    return operation(flops * N, dtype.bytes * (inputs + 1) * N, chip, dtype, **against)


def reduction(N: int, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]) -> Roofline:
    """Σ x[N] → a scalar."""
    at_least_one(N=N)
    return operation(N - 1, dtype.bytes * (N + 1), chip, dtype, **against)


def softmax(N: int, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]) -> Roofline:
    """exp(x[N] - max x) / Σ, read and written once: max, subtract, exp (as one FLOP), sum, divide."""
    return elementwise(N, chip, dtype, inputs=1, flops=5, **against)


def matvec(D: int, F: int, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]) -> Roofline:
    """x[D] · W[D, F] → y[F]: a matmul of one row."""
    return matmul(1, D, F, chip, dtype, **against)


def own_matrices(
    B: int, D: int, F: int, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]
) -> Roofline:
    """x[B, D] · W[B, D, F] → y[B, F]: a private matrix for every row, so a larger B does not help."""
    at_least_one(B=B, D=D, F=F)
    return operation(2 * B * D * F, dtype.bytes * (B * D + B * D * F + B * F), chip, dtype, **against)


def matmul(
    B: int, D: int, F: int, chip: Chip, dtype: DType = BF16, *,
    weights: DType | None = None, out: DType | None = None, **against: Unpack[Against],
) -> Roofline:  # fmt: skip
    """X[B, D] · W[D, F] → Y[B, F] on one chip, operands in HBM.

    `dtype` is how X is stored; W and Y are stored in the same unless `weights` and `out` say otherwise.
    """
    at_least_one(B=B, D=D, F=F)
    a, w, o = stored(dtype, weights, out)
    flops = 2 * B * D * F  # one multiply and one add for each of the B · D · F terms
    nbytes = a * B * D + w * D * F + o * B * F  # read X, read W, write Y
    return operation(flops, nbytes, chip, dtype, **against)


def ridge(chip: Chip, dtype: DType = BF16, bytes_per_s: float | None = None) -> float:
    """FLOPs per byte that keep the matrix unit busy, against HBM or any other bandwidth."""
    return chip.flops_per_s(dtype) / (bytes_per_s or chip.hbm_bytes_per_s)


def attainable(intensity: float, chip: Chip, dtype: DType = BF16, bytes_per_s: float | None = None) -> float:
    """The FLOP/s that an operation of this intensity can reach: the slope, then the roof."""
    return min(chip.flops_per_s(dtype), intensity * (bytes_per_s or chip.hbm_bytes_per_s))


def break_even_batch(
    D: float, F: float, chip: Chip, dtype: DType = BF16, *, weights: DType | None = None,
    out: DType | None = None, maths: DType | None = None, bytes_per_s: float | None = None,
) -> float:  # fmt: skip
    """The batch above which matmul() is compute-bound; `inf` means that no batch is enough.

    1/intensity = (a/F + w/B + o/D) / 2, for a, w and o bytes an element of X, W and Y. As B grows only w/B
    vanishes: where a/F + o/D alone exceeds 2/ridge, reading X and writing Y keeps memory busy for longer
    than the arithmetic takes, however large the batch.
    """
    at_least_one(D=D, F=F)
    a, w, o = stored(dtype, weights, out)
    half = ridge(chip, maths or dtype, bytes_per_s) / 2
    slack = 1 - half * (a / F + o / D)
    return w * half / slack if slack > 0 else math.inf


def hopeless_width(
    chip: Chip, dtype: DType = BF16, *, out: DType | None = None,
    maths: DType | None = None, bytes_per_s: float | None = None,
) -> float:  # fmt: skip
    """The width D = F up to which no batch makes matmul() compute-bound: in bf16, twice the ridge."""
    a, _, o = stored(dtype, None, out)
    return (a + o) * ridge(chip, maths or dtype, bytes_per_s) / 2


@dataclass(frozen=True, slots=True)
class RuleOfThumb(Told):
    """The batch that a rule of thumb gives, beside the exact one."""

    batch: float
    exact: float

    @property
    def error(self) -> float:
        """How far the rule is off, as a share of the exact batch: -0.5 is half of it.

        -1 where no batch is enough: no rule is further off.
        """
        return self.batch / self.exact - 1

    def __str__(self) -> str:
        if math.isinf(self.exact):
            return f"the rule says {self.batch:,.0f} tokens, but for this layer no batch is enough"
        off = f"{percent(abs(self.error))} too {'low' if self.error < 0 else 'high'}"
        return f"the rule says {self.batch:,.0f} tokens, exactly it is {self.exact:,.0f}: the rule is {off}"


def rule_of_thumb_batch(
    D: float, F: float, chip: Chip, dtype: DType = BF16, *, weights: DType | None = None,
    out: DType | None = None, maths: DType | None = None, bytes_per_s: float | None = None,
) -> RuleOfThumb:  # fmt: skip
    """break_even_batch() for very wide layers, ridge · w / 2 ("240 on v5e"), and what it leaves out here."""
    exact = break_even_batch(
        D, F, chip, dtype, weights=weights, out=out, maths=maths, bytes_per_s=bytes_per_s
    )
    return RuleOfThumb(ridge(chip, maths or dtype, bytes_per_s) * (weights or dtype).bytes / 2, exact)
