"""Memory footprint of a model: parameters part by part, training state, and KV cache.

Chapters: Transformers; Inference.
"""

from dataclasses import dataclass
from math import ceil

from scalingbook_lib.models import LayerKind, Transformer
from scalingbook_lib.models.arithmetic.terms import Bytes, Term, Terms
from scalingbook_lib.units import (
    BF16,
    DTYPES,
    FP32,
    DType,
    Result,
    binary,
    count,
    count_in_words,
    require_min,
    si,
)


@dataclass(frozen=True)
class Parameters(Terms):
    """The parameters of a model by part; `active_terms` has those that a token uses."""

    model: Transformer
    active_terms: tuple[Term, ...]

    def nbytes(self, dtype: DType) -> float:
        """The bytes of all parameters stored in one type."""
        return dtype.bytes * self.total

    def __str__(self) -> str:
        one = self.model.active_params  # those that serve one token
        active = f", {count_in_words(one)} active" if one != self.total else ""
        return f"{self.model.name}, {count_in_words(self.total)} parameters{active}: {self.parts()}"


def params(model: Transformer) -> Parameters:
    """The exact parameters of a model: its parts sum to `model.params`."""
    terms = tuple(Term(part, n, _why(model, part)) for part, n in model.by_part.items())
    return Parameters(terms, model, tuple(Term(part, n) for part, n in model.active_by_part.items()))


def _why(model: Transformer, part: str) -> str:
    """How a part is counted, weight by weight."""
    shapes = (
        f"{w.name}[{', '.join(map(str, w.shape))}] × {w.copies:,}"
        for w in model.weights()
        if w.part == part and w.copies
    )
    return ", ".join(shapes)


@dataclass(frozen=True)
class TrainingState(Bytes):
    """The bytes that training keeps between steps, for P parameters."""

    params: float

    @property
    def bytes_per_parameter(self) -> float:
        """The bytes of the training state per parameter."""
        return self.total / self.params  # 10 to 18, see the table in notation.md

    def __str__(self) -> str:
        return f"{si(self.total, 'B')}, {self.bytes_per_parameter:.4g} for each parameter: {self.parts()}"


def training_state(
    model: Transformer | float,
    *,
    weights: DType = BF16,
    gradients: DType | None = BF16,
    moments: DType = FP32,
    master: DType | None = FP32,
) -> TrainingState:
    """Bytes of weights, gradients, Adam's two moments and an fp32 master copy; None for what is not kept.

    A master copy is kept because an update may be too small to change a 16-bit weight. ValueError without
    parameters.
    """
    P = model.params if isinstance(model, Transformer) else model
    if not P > 0:
        raise ValueError(f"{P} parameters need no memory; give a model or a positive number")
    # Adam (Kingma and Ba, 2015) keeps running means of each gradient and of its square
    parts = (
        ("weights", weights),
        ("gradients", gradients),
        ("first moment", moments),
        ("second moment", moments),
        ("master weights", master),
    )
    terms = (Term(name, P * kind.bytes, f"{kind.bytes:g} bytes each, {kind}") for name, kind in parts if kind)
    return TrainingState(tuple(terms), P)


@dataclass(frozen=True)
class KVCache(Bytes):
    """The cache of `sequences` sequences of S positions: a term for each kind of layer, in bytes."""

    model: Transformer
    S: int
    sequences: int
    dtype: DType

    @property
    def bytes_per_token(self) -> float:
        """The bytes of one token within every window: 2 · L · K · H elements, or L latent vectors."""
        return sum(k.layers * entry_bytes(k, self.dtype) / k.every for k in self.model.layer_kinds)

    @property
    def next_token_bytes(self) -> float:
        """The bytes that one more token of one sequence adds; in a full window, it replaces another token."""
        growing = (k for k in self.model.layer_kinds if k.window is None or k.window > self.S)
        return sum(k.layers * entry_bytes(k, self.dtype) / k.every for k in growing)

    def __str__(self) -> str:
        what = f"{count(self.sequences)} × {count(self.S)} positions"
        return f"{self.model.name}, {what} in {self.dtype}: {binary(self.nbytes)} ({self.parts()})"


def entry_bytes(kind: LayerKind, dtype: DType = BF16) -> float:
    """The bytes of one cached entry of a layer.

    In a type of one byte, sparse latent attention keeps a scale for each 128 elements of the latent vector
    and of the indexer's key, and the rotary part in bf16, as FlashMLA and vLLM do: 656 + 132 bytes in
    DeepSeek-V3.2.
    """
    if not (kind.chosen and kind.absorbed and dtype.bytes == 1):
        return kind.kv_elements_per_token * dtype.bytes
    cached, rank = kind.absorbed
    latent = rank * dtype.bytes + FP32.bytes * ceil(rank / 128)
    return latent + (cached - rank) * BF16.bytes + index_bytes(kind, dtype)


def index_bytes(kind: LayerKind, dtype: DType = BF16) -> float:
    """The bytes of an indexer's key for one token, which are part of its entry; 0 without an indexer."""
    scales = FP32.bytes * ceil(kind.index / 128) if dtype.bytes == 1 and kind.chosen and kind.absorbed else 0
    return kind.index * dtype.bytes + scales


def kv_cache(model: Transformer, S: int, dtype: DType = BF16, *, sequences: int = 1) -> KVCache:
    """The bytes of the KV cache; each layer keeps min(S, window) positions of each sequence."""
    require_min(1, S=S, sequences=sequences)
    terms = []  # the query heads are not in it: those that share a key and a value read the same bytes
    kinds = [kind for kind in model.layer_kinds if kind.kv_elements_per_token]
    for kind in kinds:
        cached = kind.entries(S)  # what is farther back than the window, nobody asks for again
        # a key and a value of H elements for each of K heads
        nbytes = sequences * kind.layers * cached * entry_bytes(kind, dtype)
        why = f"{kind.layers} layers × {cached:,} positions × {kind.kv_elements_per_token:,} elements"
        terms.append(Term(_kind_name(kind, kinds), nbytes, why))
    return KVCache(tuple(terms), model, S, sequences, dtype)


def _kind_name(kind: LayerKind, among: list[LayerKind]) -> str:
    """The name of a kind of layer: its window, and what else tells it from the others."""
    name = "full layers" if kind.window is None else f"window {kind.window}"
    if kind.every > 1:
        name = f"compressed {kind.every} to 1"
    alike = [one for one in among if (one.window, one.every) == (kind.window, kind.every)]
    return name if len(alike) == 1 else f"{name} of {kind.kv_elements_per_token:,}"


def states(model: Transformer, *, sequences: int = 1, convolution: DType = BF16) -> Bytes:
    """The bytes that recurrences keep of sequences of any length: their states, and those of convolutions."""
    require_min(1, sequences=sequences)
    kind = DTYPES[model.state_dtype]
    counted = (
        ("recurrent states", model.state_elements, kind),
        ("convolution states", model.convolution_elements, convolution),
    )
    terms = (Term(name, sequences * n * t.bytes, f"{n:,} elements in {t}") for name, n, t in counted if n)
    return Bytes(tuple(terms))


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheProfile(Result):
    """What a sequence of S tokens costs a server: three different numbers of bytes.

    `token_bytes` are stored for one more token, `fixed_bytes` do not grow with the sequence (full windows and
    recurrent states), and `read_bytes` is what a decode step reads for this sequence.
    """

    model: str
    S: int
    dtype: DType
    token_bytes: float
    fixed_bytes: float
    read_bytes: float

    @property
    def stored_bytes(self) -> float:
        """The bytes that the whole sequence occupies."""
        return self.token_bytes * self.S + self.fixed_bytes

    def __str__(self) -> str:
        return (
            f"{self.model}, {count(self.S)} tokens in {self.dtype}: {self.token_bytes:,.0f} B per token, "
            f"{si(self.fixed_bytes, 'B')} per sequence, {si(self.read_bytes, 'B')} read per step"
        )


def cache_profile(model: Transformer, S: int, dtype: DType = BF16) -> CacheProfile:
    """Bytes stored per token, fixed per sequence, and read per decode step, for a sequence of S tokens.

    A layer whose window is full belongs to the fixed part. A layer with an indexer reads the index of all
    entries, but only the entries that it selects; all of them stay stored. Recurrent states are read whole.
    Chunked attention counts as a window, which is its upper bound.
    """
    require_min(1, S=S)
    grows = fixed = read = 0.0
    for kind in (kind for kind in model.layer_kinds if kind.kv_elements_per_token):
        each, entries = kind.layers * entry_bytes(kind, dtype), kind.entries(S)
        if kind.window is not None and kind.window <= S:
            fixed += each * entries
        else:
            grows += each / kind.every
        index = kind.layers * _index_bytes(kind, dtype)
        attended = min(entries, kind.chosen or entries)
        read += entries * index + attended * (each - index)
    state = states(model).nbytes
    return CacheProfile(
        model=model.name,
        S=S,
        dtype=dtype,
        token_bytes=grows,
        fixed_bytes=fixed + state,
        read_bytes=read + state,
    )


def _index_bytes(kind: LayerKind, dtype: DType) -> float:
    """The bytes of one entry's index key in a layer, with its scales in a type of one byte."""
    scales = FP32.bytes * ceil(kind.index / 128) if kind.absorbed and dtype.bytes == 1 else 0
    return kind.index * dtype.bytes + scales
