"""How many FLOPs does a model do, part by part?

Every weight that a token is multiplied by costs a multiply and an add; every pair of a query and a key costs
its score and its share of the weighted sum. Matmuls are counted exactly and are all that `total` holds.
Chapter: Transformers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic.layers import pairs, score_width, up_projection, value_width
from scalingbook_lib.models.arithmetic.terms import Term, Terms, at_least_one, large, whole
from scalingbook_lib.units import count, si

SCORES, VALUES, STATE = "scores", "weighted values", "linear attention state"
PROJECTIONS, UP = "attention projections", "latent up-projection"
SOFTMAX_FLOPS = 5  # for each score: maximum, subtraction, exponential, sum, division
_TRAINING = 3  # forward, and the two products of the backward pass


@dataclass(frozen=True)
class Flops(Terms):
    """The matmul FLOPs of `sequences` sequences of T new tokens, each at the end of S positions.

    The matrix unit does all of `total`; `softmax` is the vector unit's, and not in it.
    """

    unit = "FLOPs"
    model: Transformer
    sequences: float
    T: int
    S: int
    softmax: float = 0

    @property
    def tokens(self) -> float:
        """New tokens, of all sequences."""
        return whole(Fraction(self.sequences) * self.T)

    @property
    def attention(self) -> float:
        """Scores and weighted values: products of two activations, which 6 · P · tokens leaves out."""
        return self.get(SCORES) + self.get(VALUES) + self.get(STATE)

    @property
    def weights(self) -> float:
        """Products of an activation and a weight."""
        return self.total - self.attention

    @property
    def attention_share(self) -> float:
        """Scores and weighted values, as a share of all."""
        return self.attention / self.total

    @property
    def per_token(self) -> float:
        """FLOPs for each new token."""
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

    Without `causal`, scores that a mask throws away are counted, as most programs compute them. Latent
    attention makes keys and values of all S positions anew, or, `absorbed`, attends to the latent vectors
    themselves. `logits`: the positions of a sequence that need logits (all T; for sampling, 1).
    """
    at_least_one(T=T, sequences=Fraction(sequences) * T)  # part of a sequence is a rate, and allowed
    S = T if S is None else S
    met = sum(kind.layers * pairs(T, S, causal=causal, window=kind.window) for kind in model.layer_kinds)
    scale = Fraction(sequences) * (_TRAINING if training else 1)
    counted = [
        *_weights(model, T, T if absorbed else S, T if logits is None else logits),
        *_attention(model, met, T, absorbed),
    ]
    terms = tuple(Term(name, whole(scale * n), why) for name, n, why in counted if n)
    softmax = whole(Fraction(sequences) * SOFTMAX_FLOPS * model.N * met)
    return Flops(terms, model, whole(Fraction(sequences)), T, S, softmax)


def _weights(model: Transformer, T: int, up: int, logits: int) -> Iterator[tuple[str, int, str]]:
    """Each part's products with weights: every token meets them, but for the two that say how many do."""
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


def _attention(model: Transformer, met: int, T: int, absorbed: bool) -> Iterator[tuple[str, int, str]]:
    """Products of two activations: every pair that meets, for N heads."""
    query, value = score_width(model, absorbed=absorbed), value_width(model, absorbed=absorbed)
    yield SCORES, 2 * model.N * query * met, f"{met:,} pairs × {model.N} heads × {query}"
    yield VALUES, 2 * model.N * value * met, f"{met:,} pairs × {model.N} heads × {value}"
    if a := model.linear:  # read with the key, write, read with the query: a step at a time
        per_token = 6 * a.v_heads * a.key * a.value * (model.L - model.softmax_layers)
        yield STATE, T * per_token, f"{T:,} tokens, {si(per_token, 'FLOPs')} each"
