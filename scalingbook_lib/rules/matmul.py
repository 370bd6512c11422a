"""The batch in tokens above which a matmul of activations and weights is compute-bound.

Chapters: Rooflines; Transformers; Inference.
"""

import math
from dataclasses import dataclass

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.rules.ratios import ridge
from scalingbook_lib.units import BF16, DType, Result, count, require_min


def element_bytes(dtype: DType, weights: DType | None, out: DType | None) -> tuple[float, float, float]:
    """The bytes of one element of the activations, the weights and the result: a, w, o."""
    return dtype.bytes, (weights or dtype).bytes, (out or dtype).bytes


def matmul_critical_batch(
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
    """The tokens B* = w R / (2 - R (a/F + o/D)) above which X[B, D] · W[D, F] is compute-bound.

    The result is inf if no batch is compute-bound. Each operand is read or written once in HBM (or in a
    memory of `bytes_per_s`). As B grows only w/B vanishes: if a/F + o/D alone exceeds 2/R, reading X and
    writing Y takes longer than the compute for any batch. Derived in Rooflines.
    """
    require_min(1, D=D, F=F)
    a, w, o = element_bytes(dtype, weights, out)
    # bytes over 2 B D F FLOPs is (a/F + w/B + o/D) / 2, which at the critical batch is 1/R
    half = ridge(chip, maths or dtype, bytes_per_s) / 2
    slack = 1 - half * (a / F + o / D)
    return w * half / slack if slack > 0 else math.inf


def memory_bound_width(
    chip: Chip,
    dtype: DType = BF16,
    *,
    out: DType | None = None,
    maths: DType | None = None,
    bytes_per_s: float | None = None,
) -> float:
    """The width D = F = (a + o) R / 2 in elements up to which no batch makes a matmul compute-bound.

    In bf16 it is twice the ridge point. Derived in Rooflines.
    """
    a, _, o = element_bytes(dtype, None, out)
    # slack = 0 with D = F
    return (a + o) * ridge(chip, maths or dtype, bytes_per_s) / 2


@dataclass(frozen=True, kw_only=True, slots=True)
class CriticalBatch(Result):
    """The tokens per step at which reading the weights of wide layers takes as long as the matmuls."""

    dense_tokens: float  # w R / 2
    sparsity: float  # E/k
    weights: DType
    compute: DType
    chip: str

    @property
    def tokens(self) -> float:
        """The critical batch in tokens: that of a dense layer, times E/k."""
        return self.dense_tokens * self.sparsity

    def __str__(self) -> str:
        dense = f", {self.sparsity:.4g} times the {self.dense_tokens:.4g} of a dense layer"
        return (
            f"{count(round(self.tokens))} tokens per step on {self.chip} with {self.weights} weights "
            f"computed in {self.compute}{dense if self.sparsity > 1 else ''}"
        )


def critical_batch(
    chip: Chip,
    *,
    weights: DType = BF16,
    compute: DType = BF16,
    sparsity: float = 1.0,
    bytes_per_s: float | None = None,
) -> CriticalBatch:
    """The critical batch B_crit = w R / 2 · E/k in tokens, for w bytes per weight and R of the compute type.

    This is the `matmul_critical_batch` of layers so wide that activation bytes are negligible. `sparsity` is
    E/k, experts in memory over experts that a token activates, or (E + E_s)/(k + E_s) with shared experts; 1
    is a dense layer. Derived in Inference.
    """
    # E w D F bytes over W_hbm equal 2 B k D F FLOPs over C, solved for B
    dense = weights.bytes / 2 * ridge(chip, compute, bytes_per_s)
    return CriticalBatch(
        dense_tokens=dense, sparsity=sparsity, weights=weights, compute=compute, chip=chip.name
    )
