"""What are the rules of thumb of serving, and under which conditions do they hold?

Closed forms in P parameters of w bytes, B sequences, chips of C FLOPs/s with W bytes/s of HBM. Nothing here
counts hops, launches or the parts of a model; `decode` does. Chapters: Inference, Serving LLaMA 3.
"""

from dataclasses import dataclass
from math import sqrt

from scalingbook_lib.inference import price
from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.units import BF16, DType, Result, si


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule(Result):
    """A decode step by the rule: attention, then the linear layers."""

    kv_s: float
    matmul_s: float
    weights_s: float
    B: float
    chips: int

    @property
    def total_s(self) -> float:
        """The cache, then weights or arithmetic, whichever takes longer."""
        return self.kv_s + max(self.matmul_s, self.weights_s)

    @property
    def tokens_per_s(self) -> float:
        """Of all chips."""
        return self.B / self.total_s

    def usd_per_million(self, usd_per_hour: float) -> float:
        """USD for a million tokens, at a price of one chip-hour."""
        return price.usd_per_million(usd_per_hour, chips=self.chips, tokens_per_s=self.tokens_per_s)

    def __str__(self) -> str:
        return (
            f"{si(self.total_s, 's')} a step: {si(self.kv_s, 's')} of cache + max({si(self.matmul_s, 's')} "
            f"of arithmetic, {si(self.weights_s, 's')} of weights)"
        )


def step(
    params: float,
    chip: Chip,
    chips: int,
    *,
    B: float,
    cache_bytes: float,
    weights: DType = BF16,
    compute: DType = BF16,
    active: float | None = None,
) -> Rule:
    """T = B · cache / (n W) + max(2 B P / (n C), w P / (n W)), `cache_bytes` of one sequence.

    Holds where everything is split evenly and nothing waits for the network. `active` parameters serve one
    token. Source: the scaling book, "All About Transformer Inference".
    """
    W = chips * chip.hbm_bytes_per_s  # bytes/s of all chips
    return Rule(
        kv_s=B * cache_bytes / W,  # every sequence reads its own: nothing is shared
        # a multiply and an add for each parameter that a token meets
        matmul_s=2 * B * (params if active is None else active) / (chips * chip.flops_per_s(compute)),
        weights_s=params * weights.bytes / W,  # once a step, whatever the batch
        B=B,
        chips=chips,
    )


def full_memory_s(chip: Chip) -> float:
    """The step of a chip whose HBM is full and read once: while arithmetic does not bind, the longest."""
    # no program touches all of a full memory in less
    return chip.hbm_bytes / chip.hbm_bytes_per_s


def batch_within(
    limit_s: float,
    params: float,
    chip: Chip,
    chips: int,
    *,
    cache_bytes: float,
    weights: DType = BF16,
    compute: DType = BF16,
) -> float:
    """The largest B with `step(...)` at most `limit_s`: the rule solved for B; 0 where no step is so short.

    Below the critical batch the weights are read once, beyond it each sequence adds its arithmetic.
    """
    W = chips * chip.hbm_bytes_per_s
    each, math = cache_bytes / W, 2 * params / (chips * chip.flops_per_s(compute))  # seconds a sequence
    read = params * weights.bytes / W  # seconds, for any batch
    if limit_s <= read:
        return 0.0
    # Both regimes are straight lines in B, and the step is the higher of them: the smaller B is the answer.
    return min((limit_s - read) / each if each else limit_s / math, limit_s / (each + math))


def tensor_ways(
    F: float,
    chip: Chip,
    *,
    axes: int = 1,
    wrapped: bool = True,
    activations: DType = BF16,
    compute: DType = BF16,
) -> float:
    """Bound by arithmetic, Y < 2 F · W_ici axes / (a C): beyond, gathering inputs takes longer than products.

    The most ways of a two-matrix MLP in bf16 are F W_ici axes / C. Hops are not counted.
    """
    # 2 B D F / (Y C) > a B D / (n_ax W_ici), of one matrix, solved for Y
    return 2 * F * axes * _axis(chip, wrapped) / (activations.bytes * chip.flops_per_s(compute))


def tensor_ways_decoding(
    F: float,
    B: float,
    chip: Chip,
    *,
    axes: int = 1,
    wrapped: bool = True,
    weights: DType = BF16,
    activations: DType = BF16,
) -> float:
    """Bound by reading weights, Y < (w/a) axes F / (B β), with β = W / W_ici: more ways pay than in training.

    Holds below the critical batch. Hops are not counted, and mostly bind first.
    """
    beta = chip.hbm_bytes_per_s / _axis(chip, wrapped)
    # w D F / (Y W_hbm) > a B D / (n_ax W_ici), solved for Y ("Splitting a decode step")
    return weights.bytes / activations.bytes * axes * F / (B * beta)


def _axis(chip: Chip, wrapped: bool) -> float:
    return chip.axis(2, wrapped=wrapped).bytes_per_s


@dataclass(frozen=True, kw_only=True, slots=True)
class TwoDimensions(Result):
    """Weight-stationary layouts of an MLP over n chips of a torus, for one token: bytes on the way alone."""

    n: int
    rows: float  # X over D
    one_s: float
    two_s: float
    least: float  # chips from which two dimensions win

    @property
    def wins(self) -> bool:
        """Whether two dimensions are quicker."""
        return self.two_s < self.one_s

    def __str__(self) -> str:
        return (
            f"{self.n:,} chips: {si(self.one_s, 's')} a token in one dimension, {si(self.two_s, 's')} in two "
            f"with {self.rows:.3g} rows; two win beyond {self.least:.3g} chips"
        )


def two_dimensions(
    D: float,
    F: float,
    n: int,
    chip: Chip,
    *,
    rows_axes: int = 1,
    columns_axes: int = 1,
    activations: DType = BF16,
) -> TwoDimensions:
    """One dimension 2aD/((i+j) W); two 2aD/(X j W) + 2aF X/(n i W), least at X = √(n D i / (F j)).

    X rows on i axes, n/X columns on j: two dimensions win where n > 4 (F/D) (i + j)² / (i j), 16 F/D on a 2D
    torus and 18 F/D on three axes. Wrapped axes, no hops. Source: Pope et al., arXiv 2211.05102, appendix A.
    """
    # d/dX of the sum is 0 where both of its terms are equal: there lies the best X.
    i, j, W = rows_axes, columns_axes, _axis(chip, True)
    both = 2 * activations.bytes  # gathered and scattered
    X = sqrt(n * D * i / (F * j))
    return TwoDimensions(
        n=n,
        rows=X,
        one_s=both * D / ((i + j) * W),  # [b, D] over all axes at once
        # [b, D/X] over the columns' axes, [b, F X/n] over the rows'
        two_s=both * D / (X * j * W) + both * F * X / (n * i * W),
        # one_s > two_s at the best X, solved for n
        least=4 * F / D * (i + j) ** 2 / (i * j),
    )


def latency_bound_batch(
    D: float, ways: int, chip: Chip, *, hops: int | None = None, axes: int = 1, activations: DType = BF16
) -> float:
    """Below so many tokens a collective of B · D elements waits for its hops, those of a line unless said.

    hops · α against (1 - 1/Y) a B D bytes over links of W_1 on that many axes.
    """
    # along a line, the last chip's part passes all others ("Hops bind first")
    waits_s = (ways - 1 if hops is None else hops) * chip.hop_s
    # bytes/W: of the array a chip lacks all but its own 1/Y
    return waits_s * axes * chip.link_bytes_per_s / ((1 - 1 / ways) * activations.bytes * D)


def hops_s(layers: int, hops: int, chip: Chip, collectives_per_layer: int = 4) -> float:
    """What a step waits for at least: layers · collectives · hops from end to end · the time of one."""
    # four: an all-reduce after attention and after the MLP, of two halves each
    return layers * collectives_per_layer * hops * chip.hop_s


def evicted(B: float, P: float, G: float) -> tuple[float, float]:
    """Of a step in the steady state: sequences that end, B / G, and the tokens of cache that they free."""
    # each of B sequences ends once in G steps, with P + G tokens cached
    return B / G, B * (P + G) / G
