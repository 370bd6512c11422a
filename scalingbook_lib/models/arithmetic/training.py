"""How many FLOPs does a training run take, how good is 6 · P · tokens, and how busy were the chips?"""

from dataclasses import dataclass
from fractions import Fraction

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic.forward import Flops, flops
from scalingbook_lib.models.arithmetic.layers import pair_flops
from scalingbook_lib.models.arithmetic.terms import Term, large, whole
from scalingbook_lib.units import BF16, DType, Told, count, percent, si


@dataclass(frozen=True, slots=True)
class TrainingFlops(Told):
    """A run over `tokens` tokens: the exact matmul FLOPs, and the rule of thumb beside them."""

    exact: Flops
    tokens: float

    @property
    def total(self) -> float:
        """The exact matmul FLOPs of the run."""
        return self.exact.total

    @property
    def six_nd(self) -> float:
        """6 · (parameters that serve a token) · tokens; N and D in the rule's name are not the book's."""
        return 6 * self.exact.model.active_params * self.tokens

    @property
    def six_nd_error(self) -> float:
        """How far the rule is off: negative where it counts too little."""
        return self.six_nd / self.total - 1

    @property
    def six_nd_terms(self) -> tuple[Term, ...]:
        """What the rule counts too much (positive) and what it leaves out (negative): `six_nd - total`."""
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
        again = sum(w.size for w in self.exact.model.weights() if w.tied and w.matmul)
        tied = (
            [Term("tied unembedding", -6 * self.tokens * again, "a product with the embedding")]
            if again
            else []
        )
        return (*extra, *tied, Term("attention", -self.exact.attention, "scores and weighted values"))

    def __str__(self) -> str:
        return (
            f"{large(self.total, 'FLOPs')} for {count(self.tokens)} tokens in sequences of {self.exact.T:,}; "
            f"6 · P · tokens says {large(self.six_nd, 'FLOPs')}, off by {percent(self.six_nd_error)}"
        )


def training_flops(model: Transformer, tokens: float, T: int, *, causal: bool = False) -> TrainingFlops:
    """Forward and backward over `tokens` tokens in sequences of T, with nothing computed twice."""
    sequences = Fraction(tokens) / T
    return TrainingFlops(flops(model, sequences, T, causal=causal, training=True), whole(tokens))


def crossover(model: Transformer, *, causal: bool = False, windows: bool = True) -> float:
    """T*: the sequence length at which scores and values cost what the layers' weights cost.

    The unembedding is left out. With `causal`, half of the pairs. A window ends a layer's growth, so T* can
    be infinite; `windows=False` lets every layer see everything.
    """
    weights = sum(w.flops_per_token for w in model.weights() if w.part != "unembedding")
    needed = weights / pair_flops(model)  # pairs for each token, summed over the layers
    kinds = [(kind.layers, kind.window if windows else None) for kind in model.layer_kinds]
    if all(window is None for _, window in kinds):
        return needed / model.softmax_layers * (2 if causal else 1)
    return _length(needed, kinds, causal)


def _length(needed: float, kinds: list[tuple[int, int | None]], causal: bool) -> float:
    """The T at which the layers' pairs for each token reach what is needed, by halving."""
    # more tokens meet more pairs, so that halving finds the one length; 100 times is below a float's grain
    high = 1.0
    while sum(layers * _mean(high, window, causal) for layers, window in kinds) < needed:
        high *= 2
        if high > 2.0**80:
            return float("inf")
    low = 0.0
    for _ in range(100):
        middle = (low + high) / 2
        enough = sum(layers * _mean(middle, window, causal) for layers, window in kinds) >= needed
        low, high = (low, middle) if enough else (middle, high)
    return high


def _mean(T: float, window: int | None, causal: bool) -> float:
    """The keys that a query meets, on average over a long sequence."""
    w = min(T, window or T)  # a causal query at position i meets min(i, w): w - w²/2T in the mean over T
    return w - w * w / (2 * T) if causal else w


@dataclass(frozen=True, slots=True)
class Utilization(Told):
    """MFU: the FLOPs that the model needs over those that the chips could have done."""

    flops: float
    chip_s: float
    flops_per_s: float

    @property
    def share(self) -> float:
        """The model FLOPs utilization."""
        return self.flops / (self.chip_s * self.flops_per_s)

    def __str__(self) -> str:
        possible = self.chip_s * self.flops_per_s
        return (
            f"MFU {percent(self.share, 3)}: {large(self.flops, 'FLOPs')} in "
            f"{si(self.chip_s / 3600)} chip-hours that could have done {large(possible, 'FLOPs')}"
        )


def mfu(flops: float, chip_s: float, peak: Chip | float, dtype: DType = BF16) -> Utilization:
    """Needed FLOPs (no recomputation) over chip-seconds times the peak of one chip, or a peak in FLOPs/s."""
    rate = peak.flops_per_s(dtype) if isinstance(peak, Chip) else peak
    for name, value in (("flops", flops), ("chip_s", chip_s), ("peak", rate)):
        if not value > 0:
            raise ValueError(f"{name} = {value}; write a positive number in base units")
    return Utilization(flops, chip_s, rate)
