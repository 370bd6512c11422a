"""When does a mixture of experts keep the chip busy, and what does its routing send?

A step reads every expert but multiplies each token by k of them alone: it needs E/k times the batch of a
dense layer to be compute-bound. Each token travels to its experts and back. Chapters: Transformers, GPUs.
"""

from dataclasses import dataclass

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.models.transformer import Transformer
from scalingbook_lib.units import BF16, DType, Told, at_least, count, si


@dataclass(frozen=True, slots=True)
class BreakEven(Told):
    """The batch, in tokens, at which the experts' weights take as long to read as to multiply by."""

    dense_tokens: float
    sparsity: float

    @property
    def tokens(self) -> float:
        """What a dense layer needs, times E/k."""
        return self.dense_tokens * self.sparsity

    def __str__(self) -> str:
        return (
            f"{count(round(self.tokens))} tokens: {self.dense_tokens:.4g} for a dense layer, times "
            f"{self.sparsity:.4g} experts for each that a token visits"
        )


@dataclass(frozen=True, slots=True)
class Routing(Told):
    """What one mixture-of-experts layer does with B tokens on n chips that share its experts."""

    B: int
    tokens_per_expert: float
    bytes_one_way: float
    chips: int

    def __str__(self) -> str:
        return (
            f"{count(self.B)} tokens: {self.tokens_per_expert:.4g} for each expert, "
            f"{si(self.bytes_one_way, 'B')} over {self.chips} chips in each AllToAll"
        )


def moe_break_even(
    E: int, k: int, chip: Chip, *, weights: DType = BF16, maths: DType = BF16, shared: int = 0
) -> BreakEven:
    """B* = bytes/2 · C/W · E/k: reading E experts takes as long as B tokens through k of them.

    `shared` experts are visited by every token: (E + shared)/(k + shared).
    """
    _check(E, k)
    ridge = chip.flops_per_s(maths) / chip.hbm_bytes_per_s
    return BreakEven(weights.bytes / 2 * ridge, (E + shared) / (k + shared))


def routing(B: int, E: int, k: int, D: int, *, chips: int = 1, dtype: DType = BF16) -> Routing:
    """B tokens (of all chips together), each sent as D elements to k of E experts that n chips share."""
    _check(E, k)
    at_least(1, B=B, D=D, chips=chips)
    return Routing(B, B * k / E, B * k * D * dtype.bytes, chips)


def visited(E: int, k: int, B: float) -> float:
    """The share of E experts that some of B tokens visits, in the mean: 1 - (1 - k/E)^B, routing uniform."""
    _check(E, k)
    return 1 - (1 - k / E) ** B


def params_read(model: Transformer, B: float) -> float:
    """The parameters that a step of B tokens reads: all but the experts that no token visits, in the mean."""
    x = model.experts
    idle = model.by_part.get("experts", 0) * (1 - visited(x.E, x.k, B)) if x else 0.0
    return model.params - idle


def all_to_all_bytes(B: int, k: int, D: int, dtype: DType = BF16) -> float:
    """The array of one AllToAll, over the whole axis: B tokens, a copy for each of k experts."""
    at_least(1, B=B, k=k, D=D)
    return B * k * D * dtype.bytes


def _check(E: int, k: int) -> None:
    if not 1 <= k <= E:
        raise ValueError(f"a token visits k = {k} of E = {E} experts; write 1 ≤ k ≤ E")
