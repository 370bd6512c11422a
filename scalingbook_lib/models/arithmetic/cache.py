"""How many bytes of keys and values does a model keep? Chapters: Transformers, Inference."""

from dataclasses import dataclass

from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic.terms import Bytes, Term, at_least_one
from scalingbook_lib.units import BF16, DType, binary, count


@dataclass(frozen=True)
class KVCache(Bytes):
    """The cache of `sequences` sequences of S positions: a term for each kind of layer, in bytes."""

    model: Transformer
    S: int
    sequences: int
    dtype: DType

    @property
    def bytes_per_token(self) -> float:
        """What one more token adds within every window: 2 · L · K · H elements, or L latent vectors."""
        return self.dtype.bytes * self.model.kv_elements_per_token

    def __str__(self) -> str:
        what = f"{count(self.sequences)} × {count(self.S)} positions"
        return f"{self.model.name}, {what} in {self.dtype}: {binary(self.nbytes)} ({self.parts()})"


def kv_cache(model: Transformer, S: int, dtype: DType = BF16, *, sequences: int = 1) -> KVCache:
    """Each layer keeps min(S, window) positions of each sequence."""
    at_least_one(S=S, sequences=sequences)
    terms = []  # the query heads are not in it: those that share a key and a value read the same bytes
    for kind in model.layer_kinds:
        cached = min(S, kind.window or S)  # what is farther back than the window, nobody asks for again
        nbytes = sequences * kind.layers * cached * kind.kv_elements_per_token * dtype.bytes
        name = "full layers" if kind.window is None else f"window {kind.window}"
        why = f"{kind.layers} layers × {cached:,} positions × {kind.kv_elements_per_token:,} elements"
        terms.append(Term(name, nbytes, why))
    return KVCache(tuple(terms), model, S, sequences, dtype)
