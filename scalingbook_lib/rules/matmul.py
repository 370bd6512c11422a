"""The batch, in tokens, at which a product of activations and weights turns from memory- to compute-bound.

Chapters: Rooflines, Transformers, Inference.
"""

import math
from dataclasses import dataclass

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.rules.ratios import ridge
from scalingbook_lib.units import BF16, DType, Result, count, require_min


def element_bytes(dtype: DType, weights: DType | None, out: DType | None) -> tuple[float, float, float]:
    """a, w, o: bytes of one element of the activations, the weights and the result."""
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
    """B* = w R / (2 - R (a/F + o/D)), tokens: above it, X[B, D] · W[D, F] is compute-bound; inf is never.

    Operands pass the HBM once (or a memory of `bytes_per_s`). As B grows only w/B vanishes: where a/F + o/D
    alone exceeds 2/R, reading X and writing Y keeps memory busy for longer than the arithmetic takes,
    however large the batch. Derived in Rooflines.
    """
    require_min(1, D=D, F=F)
    a, w, o = element_bytes(dtype, weights, out)
    # bytes over 2 B D F FLOPs is (a/F + w/B + o/D) / 2: at the critical batch that is 1/R
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
    """(a + o) R / 2, elements: the width D = F up to which no batch makes a product compute-bound.

    In bf16, twice the ridge. Derived in Rooflines.
    """
    a, _, o = element_bytes(dtype, None, out)
    # slack = 0 with D = F
    return (a + o) * ridge(chip, maths or dtype, bytes_per_s) / 2


@dataclass(frozen=True, kw_only=True, slots=True)
class CriticalBatch(Result):
    """The batch at which wide layers' weights take as long to read as to multiply by, in tokens of a step."""

    dense_tokens: float  # w R / 2
    sparsity: float  # E/k
    weights: DType
    compute: DType
    chip: str

    @property
    def tokens(self) -> float:
        """What a dense layer needs, times E/k."""
        return self.dense_tokens * self.sparsity

    def __str__(self) -> str:
        dense = f", {self.sparsity:.4g} times the {self.dense_tokens:.4g} of a dense one"
        return (
            f"{count(round(self.tokens))} tokens a step on {self.chip} with {self.weights} weights "
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
    """B_crit = w R / 2 · E/k, tokens: w bytes a weight, R of the type that computes.

    `matmul_critical_batch` of layers so wide that activations weigh nothing. `sparsity` is E/k, experts in
    memory over experts that a token visits, (E + E_s)/(k + E_s) with shared ones; 1 is a dense layer. Derived
    in Inference.
    """
    # E w D F bytes over W_hbm beside 2 B k D F FLOPs over C, solved for B
    dense = weights.bytes / 2 * ridge(chip, compute, bytes_per_s)
    return CriticalBatch(
        dense_tokens=dense, sparsity=sparsity, weights=weights, compute=compute, chip=chip.name
    )
