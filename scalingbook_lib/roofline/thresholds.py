"""From which intensity, and from which batch on, is the matrix unit what limits?"""

import math
from dataclasses import dataclass

from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.roofline.operations import stored
from scalingbook_lib.roofline.time import at_least_one
from scalingbook_lib.units import BF16, DType, Told, percent


def ridge(chip: Chip, dtype: DType = BF16, bytes_per_s: float | None = None) -> float:
    """FLOPs per byte that keep the matrix unit busy, against HBM or any other bandwidth."""
    return chip.flops_per_s(dtype) / (bytes_per_s or chip.hbm_bytes_per_s)


def attainable(intensity: float, chip: Chip, dtype: DType = BF16, bytes_per_s: float | None = None) -> float:
    """The FLOP/s that an operation of this intensity can reach: the slope, then the roof."""
    return min(chip.flops_per_s(dtype), intensity * (bytes_per_s or chip.hbm_bytes_per_s))


def break_even_batch(
    D: float,
    F: float,
    chip: Chip,
    dtype: DType = BF16,
    *,
    weights: DType | None = None,
    out: DType | None = None,
    maths: DType | None = None,
    bytes_per_s: float | None = None,
) -> float:
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
    chip: Chip,
    dtype: DType = BF16,
    *,
    out: DType | None = None,
    maths: DType | None = None,
    bytes_per_s: float | None = None,
) -> float:
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
    D: float,
    F: float,
    chip: Chip,
    dtype: DType = BF16,
    *,
    weights: DType | None = None,
    out: DType | None = None,
    maths: DType | None = None,
    bytes_per_s: float | None = None,
) -> RuleOfThumb:
    """break_even_batch() as if D and F were infinite, ridge · w / 2 ("240 on v5e"), beside the exact one."""
    exact = break_even_batch(
        D, F, chip, dtype, weights=weights, out=out, maths=maths, bytes_per_s=bytes_per_s
    )
    return RuleOfThumb(ridge(chip, maths or dtype, bytes_per_s) * (weights or dtype).bytes / 2, exact)
