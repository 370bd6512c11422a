"""The batch at which the KV caches take as many bytes to read as the weights.

Chapter: Inference.
"""

from dataclasses import dataclass

from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.inference.memory import weight_bytes
from scalingbook_lib.inference.shape import shape
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import kv_cache
from scalingbook_lib.units import BF16, DType, Result, count, si


@dataclass(frozen=True, kw_only=True, slots=True)
class Crossover(Result):
    """The batch above which reading the caches takes more bytes than reading the weights."""

    model: str
    S: int
    weight_bytes: float
    cache_bytes: float  # of one sequence

    @property
    def sequences(self) -> float:
        """The crossover batch, in sequences."""
        return self.weight_bytes / self.cache_bytes  # B where B M_kv = w P

    def __str__(self) -> str:
        return (
            f"{self.model}: the cache of {self.sequences:.4g} sequences of {count(self.S)} tokens, "
            f"{si(self.cache_bytes, 'B')} each, is as large as the weights' {si(self.weight_bytes, 'B')}"
        )


def crossover_batch(model: Transformer, *, S: int, weights: DType = BF16, kv: DType = BF16) -> Crossover:
    """Return the batch B with B · M_kv = w P; the embedding table is not counted, because it is looked up."""
    s = shape(model, Layout(weights=weights, kv=kv))
    # a step reads only one row per token of a table that is looked up
    read = weight_bytes(s) - s.embedding * weights.bytes
    return Crossover(model=model.name, S=S, weight_bytes=read, cache_bytes=kv_cache(model, S, kv).nbytes)
