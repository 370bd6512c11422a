"""From which batch on is decoding no longer bound by reading the weights?

Chapter: Inference.
"""

from dataclasses import dataclass

from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.inference.memory import weight_bytes
from scalingbook_lib.inference.shape import shape
from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import BreakEven, kv_cache, moe_break_even
from scalingbook_lib.units import BF16, DType, Result, count, si


@dataclass(frozen=True, kw_only=True, slots=True)
class Critical(BreakEven):
    """The batch at which the weights take as long to read as to multiply by, in tokens of a step."""

    weights: DType
    compute: DType
    chip: str

    def __str__(self) -> str:
        dense = f", {self.sparsity:.4g} times the {self.dense_tokens:.4g} of a dense one"
        return (
            f"{count(round(self.tokens))} tokens a step on {self.chip} with {self.weights} weights "
            f"computed in {self.compute}{dense if self.sparsity > 1 else ''}"
        )


def critical_batch(
    model: Transformer | None, chip: Chip, *, weights: DType = BF16, compute: DType = BF16
) -> Critical:
    """B = w C / (2 W): w bytes a weight, C the rate of the type that computes, W that of the HBM.

    A token visits k of E experts: for their weights E/k times as much. Without a model, a dense one.
    """
    x = model.experts if model else None
    # 2 B P k/E FLOPs beside w P bytes: the knee of the roofline, E/k times as far out
    found = moe_break_even(x.E if x else 1, x.k if x else 1, chip, weights=weights, maths=compute)
    return Critical(
        dense_tokens=found.dense_tokens,  # w C / (2 W_hbm)
        sparsity=found.sparsity,  # E/k
        weights=weights,
        compute=compute,
        chip=chip.name,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Crossover(Result):
    """The batch from which the cache is more bytes to read than the weights."""

    model: str
    S: int
    weight_bytes: float
    cache_bytes: float  # of one sequence

    @property
    def sequences(self) -> float:
        """How many."""
        return self.weight_bytes / self.cache_bytes  # B where B M_kv = w P

    def __str__(self) -> str:
        return (
            f"{self.model}: the cache of {self.sequences:.4g} sequences of {count(self.S)} tokens, "
            f"{si(self.cache_bytes, 'B')} each, is as large as the weights' {si(self.weight_bytes, 'B')}"
        )


def crossover_batch(model: Transformer, *, S: int, weights: DType = BF16, kv: DType = BF16) -> Crossover:
    """Bytes of all weights over those of one sequence's cache; of embeddings only what is multiplied by."""
    s = shape(model, Layout(weights=weights, kv=kv))
    # of a table that is looked up, a step reads a row for each token
    read = weight_bytes(s) - s.embedding * weights.bytes
    return Crossover(model=model.name, S=S, weight_bytes=read, cache_bytes=kv_cache(model, S, kv).nbytes)
