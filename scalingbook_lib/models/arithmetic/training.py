"""FLOPs of a model, part by part, and of a training run, beside the rule 6 · P · tokens and MFU.

Every weight that a token is multiplied by costs a multiply and an add; every query-key pair costs its score
and its share of the weighted sum. Matmuls are counted exactly and are all that `total` holds. MFU is the
FLOPs that the model needs per second over the chips' peak. Chapter: Transformers.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.models import LayerKind, Transformer
from scalingbook_lib.models.arithmetic.layers import index_flops, met_pairs, up_projection
from scalingbook_lib.models.arithmetic.terms import Term, Terms, large, whole
from scalingbook_lib.units import BF16, DType, Result, count, percent, require_min, si

SCORES, VALUES, STATE, INDEX = "scores", "weighted values", "linear attention state", "index scores"
PROJECTIONS, UP = "attention projections", "latent up-projection"
SOFTMAX_FLOPS = 5  # for each score: maximum, subtraction, exponential, sum, division
_TRAINING = 3  # forward, and the two products of the backward pass


@dataclass(frozen=True)
class Flops(Terms):
    """The matmul FLOPs of `sequences` sequences of T new tokens, each at the end of S positions.

    `softmax` is the vector unit's work and not part of `total`, which is the matrix unit's.
    """

    unit = "FLOPs"
    model: Transformer
    sequences: float
    T: int
    S: int
    softmax: float = 0

    @property
    def tokens(self) -> float:
        """The number of new tokens, of all sequences."""
        return whole(Fraction(self.sequences) * self.T)

    @property
    def attention(self) -> float:
        """FLOPs of QKᵀ and PV: products of two activations, which 6 · P · tokens leaves out."""
        return sum(map(self.get, (SCORES, VALUES, STATE, INDEX)))

    @property
    def weights(self) -> float:
        """FLOPs of the matmuls of an activation and a weight."""
        return self.total - self.attention

    @property
    def attention_share(self) -> float:
        """The share of QKᵀ and PV in all FLOPs."""
        return self.attention / self.total

    @property
    def per_token(self) -> float:
        """FLOPs per new token."""
        return whole(Fraction(self.total) / Fraction(self.tokens))

    def __str__(self) -> str:
        return f"{large(self.total, 'FLOPs')} for {count(self.tokens)} tokens: {self.parts()}"


def flops(
    model: Transformer,
    sequences: float | Fraction,
    T: int,
    *,
    S: int | None = None,
    causal: bool = False,
    training: bool = False,
    absorbed: bool = False,
    logits: int | None = None,
) -> Flops:
    """Forward (or training) FLOPs of `sequences` sequences of T new tokens, at the end of S positions each.

    Without `causal`, scores that a mask discards are counted, as most programs compute them. Latent attention
    recomputes keys and values of all S positions or, `absorbed`, attends to the latent vectors themselves.
    `logits`: the positions of a sequence that need logits (all T; for sampling, 1).
    """
    require_min(1, T=T, sequences=Fraction(sequences) * T)  # part of a sequence is a rate, and allowed
    S = T if S is None else S
    met = met_pairs(model, T, S, causal=causal)
    scale = Fraction(sequences) * (_TRAINING if training else 1)
    counted = [
        *_weights(model, T, T if absorbed else S, T if logits is None else logits),
        *_attention(met, absorbed),
        (INDEX, index_flops(model, T, S, causal=causal), "every entry is scored before some are chosen"),
        (STATE, T * model.state_flops, f"{T:,} tokens, {si(model.state_flops, 'FLOPs')} each"),
    ]
    terms = tuple(Term(name, whole(scale * n), why) for name, n, why in counted if n)
    softmax = whole(Fraction(sequences) * SOFTMAX_FLOPS * sum(kind.heads * n for kind, n in met))
    return Flops(terms, model, whole(Fraction(sequences)), T, S, softmax)


def _weights(model: Transformer, T: int, up: int, logits: int) -> Iterator[tuple[str, int, str]]:
    """Each part's weight matmuls: their name, FLOPs and how they were counted."""
    per_token = dict.fromkeys((w.part for w in model.weights() if w.matmuls), 0)
    for w in model.weights():
        per_token[w.part] = per_token.get(w.part, 0) + w.flops_per_token
    rows = {"unembedding": logits}
    for part, n in per_token.items():
        if part == "attention":
            n -= 2 * up_projection(model)
            yield PROJECTIONS, T * n, f"{T:,} tokens, {si(n, 'FLOPs')} each"
            yield UP, up * 2 * up_projection(model), f"{up:,} positions"
        else:
            yield part, rows.get(part, T) * n, f"{rows.get(part, T):,} tokens, {si(n, 'FLOPs')} each"


def _attention(met: list[tuple[LayerKind, int]], absorbed: bool) -> Iterator[tuple[str, int, str]]:
    """The attention matmuls: every query-key pair that is computed, for all query heads of its layers."""
    for name, at in ((SCORES, 0), (VALUES, 1)):
        alike = defaultdict[tuple[int, int], int](int)
        for kind, n in met:
            alike[kind.heads, kind.widths(absorbed)[at]] += n
        why = " + ".join(f"2 × {n:,} pairs × {N} heads × {width}" for (N, width), n in alike.items())
        yield name, sum(2 * n * N * width for (N, width), n in alike.items()), why


@dataclass(frozen=True, slots=True)
class TrainingFlops(Result):
    """A run over `tokens` tokens: the exact matmul FLOPs, and the rule of thumb beside them."""

    exact: Flops
    tokens: float

    @property
    def total(self) -> float:
        """The exact matmul FLOPs of the run."""
        return self.exact.total

    @property
    def six_nd(self) -> float:
        """6 · active parameters · tokens; N and D in the rule's name are not the book's letters."""
        return 6 * self.exact.model.active_params * self.tokens  # 2 forward, 4 backward (kaplan2020scaling)

    @property
    def six_nd_error(self) -> float:
        """The relative error of the rule: negative where it underestimates."""
        return self.six_nd / self.total - 1

    @property
    def six_nd_terms(self) -> tuple[Term, ...]:
        """What the rule overcounts (positive) and leaves out (negative): the terms of `six_nd - total`."""
        # embedding, norms and biases are parameters that no token is multiplied by
        weights = [w for w in self.exact.model.weights() if not w.matmul and w.active_params]
        parts = dict.fromkeys(w.part for w in weights)
        extra = [
            Term(
                part, 6 * self.tokens * sum(w.active_params for w in weights if w.part == part), "no product"
            )
            for part in parts
        ]
        # a tied unembedding is a product, but its matrix is counted as the embedding
        reused = sum(w.size for w in self.exact.model.weights() if w.tied and w.matmul)
        tied = (
            [Term("tied unembedding", -6 * self.tokens * reused, "a product with the embedding")]
            if reused
            else []
        )
        return (*extra, *tied, Term("attention", -self.exact.attention, "scores and weighted values"))

    def __str__(self) -> str:
        return (
            f"{large(self.total, 'FLOPs')} for {count(self.tokens)} tokens in sequences of {self.exact.T:,}; "
            f"6 · P · tokens says {large(self.six_nd, 'FLOPs')}, off by {percent(self.six_nd_error)}"
        )


def training_flops(model: Transformer, tokens: float, T: int, *, causal: bool = False) -> TrainingFlops:
    """Forward and backward FLOPs over `tokens` tokens in sequences of T, without recomputation."""
    return TrainingFlops(flops(model, Fraction(tokens) / T, T, causal=causal, training=True), whole(tokens))


def crossover(model: Transformer, *, causal: bool = False, windows: bool = True) -> float:
    """T*: the sequence length at which attention costs as many FLOPs as the layers' weight matmuls.

    The unembedding is left out. With `causal`, half of the pairs. A window ends a layer's growth, so T* can
    be infinite; `windows=False` gives every layer full attention.
    """
    # of all layers, for a token
    weights = sum(w.flops_per_token for w in model.weights() if w.part != "unembedding")
    kinds = [
        (kind.layers * kind.pair_flops() / kind.every, kind.reach if windows else None)
        for kind in model.layer_kinds
    ]
    if all(reach is None for _, reach in kinds):  # causal, T/2 keys on average
        return weights / sum(flops for flops, _ in kinds) * (2 if causal else 1) if kinds else math.inf
    return _length(weights, kinds, causal)


def _length(needed: float, kinds: list[tuple[float, int | None]], causal: bool) -> float:
    """The T at which the layers' attention costs `needed` FLOPs per token, by bisection."""
    # more tokens meet more pairs, so that halving finds the one length; 100 times is below a float's grain
    high = 1.0
    while sum(flops * _mean(high, window, causal) for flops, window in kinds) < needed:
        high *= 2
        if high > 2.0**80:
            return math.inf
    low = 0.0
    for _ in range(100):
        middle = (low + high) / 2
        enough = sum(flops * _mean(middle, window, causal) for flops, window in kinds) >= needed
        low, high = (low, middle) if enough else (middle, high)
    return high


def _mean(T: float, window: int | None, causal: bool) -> float:
    """The mean number of keys per query over a long sequence."""
    w = min(T, window or T)  # a causal query at position i meets min(i, w): w - w²/2T on average over T
    return w - w * w / (2 * T) if causal else w


@dataclass(frozen=True, slots=True)
class Utilization(Result):
    """Model FLOPs utilization (MFU): the FLOPs that the model needs over the chips' peak FLOPs."""

    flops: float
    chip_s: float
    flops_per_s: float

    @property
    def share(self) -> float:
        """MFU as a share of 1."""
        return self.flops / (self.chip_s * self.flops_per_s)  # chowdhery2023palm, appendix B

    def __str__(self) -> str:
        possible = self.chip_s * self.flops_per_s
        return (
            f"MFU {percent(self.share, 3)}: {large(self.flops, 'FLOPs')} in "
            f"{si(self.chip_s / 3600)} chip-hours that could have done {large(possible, 'FLOPs')}"
        )


def mfu(flops: float, chip_s: float, peak: Chip | float, dtype: DType = BF16) -> Utilization:
    """The MFU of `flops` needed (no recomputation) in `chip_s` chip-seconds; `peak` is a chip or FLOPs/s."""
    rate = peak.flops_per_s(dtype) if isinstance(peak, Chip) else peak
    for name, value in (("flops", flops), ("chip_s", chip_s), ("peak", rate)):
        if not value > 0:
            raise ValueError(f"{name} = {value}; write a positive number in base units")
    return Utilization(flops, chip_s, rate)
