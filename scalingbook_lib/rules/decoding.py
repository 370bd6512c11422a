"""Closed forms of a decode step: its time, the batch within a latency, and where a layout stops paying off.

P parameters of w bytes, a batch of sequences with one new token each, chips of C FLOPs/s with W_hbm bytes/s.
Nothing here counts launches or the parts of a model; `inference.decode` does. Chapters: Inference, Serving
Llama 3.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Unpack

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.rules.ratios import Over, network_bytes_per_s
from scalingbook_lib.units import BF16, DType, Result, si


def usd_per_million(usd_per_hour: float, *, chips: int, tokens_per_s: float) -> float:
    """USD for a million tokens, at a price of one chip-hour."""
    # USD/s of the copy, over tokens/s
    return usd_per_hour * chips / 3600 / tokens_per_s * 1e6


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodeStep(Result):
    """The terms of `decode_step`, in seconds: attention, then the linear layers."""

    kv_s: float
    matmul_s: float
    weights_s: float
    batch: float  # sequences
    chips: int

    @property
    def total_s(self) -> float:
        """Seconds to read the cache, and then the longer of weights and arithmetic."""
        return self.kv_s + max(self.matmul_s, self.weights_s)

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second of all chips: one per sequence and step."""
        return self.batch / self.total_s

    def usd_per_million(self, usd_per_hour: float) -> float:
        """USD for a million tokens, at a price of one chip-hour."""
        return usd_per_million(usd_per_hour, chips=self.chips, tokens_per_s=self.tokens_per_s)

    def __str__(self) -> str:
        return (
            f"{si(self.total_s, 's')} a step: {si(self.kv_s, 's')} of cache + max({si(self.matmul_s, 's')} "
            f"of arithmetic, {si(self.weights_s, 's')} of weights)"
        )


def decode_step(
    params: float,
    chip: Chip,
    chips: int,
    *,
    batch: float,
    cache_bytes: float,
    weights: DType = BF16,
    compute: DType = BF16,
    active: float | None = None,
) -> DecodeStep:
    """T = batch · M_kv / (n W) + max(2 batch P / (n C), w P / (n W)), `cache_bytes` M_kv of one sequence.

    Holds where everything is split evenly and nothing waits for the network. `active` parameters serve one
    token. Derived in Inference. Source: the scaling book, "All About Transformer Inference".
    """
    W = chips * chip.hbm_bytes_per_s  # bytes/s of all chips
    return DecodeStep(
        kv_s=batch * cache_bytes / W,  # every sequence reads its own: nothing is shared
        # a multiply and an add for each parameter that a token meets
        matmul_s=2 * batch * (params if active is None else active) / (chips * chip.flops_per_s(compute)),
        weights_s=params * weights.bytes / W,  # once a step, whatever the batch
        batch=batch,
        chips=chips,
    )


def hbm_read_time_s(chip: Chip) -> float:
    """M_hbm / W_hbm, seconds to read a full HBM once: while arithmetic does not bind, the longest step.

    Derived in Serving Llama 3.
    """
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
    """The most sequences with a `decode_step` of at most `limit_s`: its formula solved for the batch.

    Below the critical batch the weights are read once, above it each sequence adds its arithmetic; 0 where no
    step is so short. Derived in Serving Llama 3.
    """
    W = chips * chip.hbm_bytes_per_s
    each, math = cache_bytes / W, 2 * params / (chips * chip.flops_per_s(compute))  # seconds a sequence
    read = params * weights.bytes / W  # seconds, for any batch
    if limit_s <= read:
        return 0.0
    # Both regimes are straight lines in the batch, and the step is the higher of them: the smaller batch.
    return min((limit_s - read) / each if each else limit_s / math, limit_s / (each + math))


def decode_tensor_parallel_degree(
    F: float,
    B: float,
    chip: Chip,
    *,
    weights: DType = BF16,
    activations: DType = BF16,
    **over: Unpack[Over],
) -> float:
    """Y = (w/a) n_ax F / (B β), with β = W_hbm / W_ici: the degree up to which a step of B tokens gains.

    The step is bound by reading weights, below the critical batch, so that a higher degree pays than where
    arithmetic binds (`tensor_parallel_degree`). Hops are not counted, and mostly bind first. Derived in
    Inference ("Sharding a decode step").
    """
    beta = chip.hbm_bytes_per_s / network_bytes_per_s(chip, **over)  # β / n_ax
    # w D F / (Y W_hbm) > a B D / (n_ax W_ici), solved for Y
    return weights.bytes / activations.bytes * F / (B * beta)


@dataclass(frozen=True, kw_only=True, slots=True)
class TwoDimensionalLayout(Result):
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


def two_dimensional_layout(
    D: float,
    F: float,
    n: int,
    chip: Chip,
    *,
    rows_axes: int = 1,
    columns_axes: int = 1,
    activations: DType = BF16,
) -> TwoDimensionalLayout:
    """One dimension 2aD/((i+j) W); two 2aD/(X j W) + 2aF X/(n i W), least at X = √(n D i / (F j)).

    X rows on i axes, n/X columns on j: two dimensions win where n > 4 (F/D) (i + j)² / (i j), 16 F/D on a 2D
    torus and 18 F/D on three axes. Wrapped axes, no hops. Source: Pope et al., arXiv 2211.05102, appendix A.
    """
    # d/dX of the sum is 0 where both of its terms are equal: there lies the best X.
    i, j, W = rows_axes, columns_axes, network_bytes_per_s(chip)
    both = 2 * activations.bytes  # gathered and scattered
    X = sqrt(n * D * i / (F * j))
    return TwoDimensionalLayout(
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
    """B, tokens below which a collective of B · D elements waits for its hops, those of a line unless said.

    hops · α against (1 - 1/Y) a B D bytes over links of W_1 on that many axes. Derived in Inference ("Hops
    bind first").
    """
    # along a line, the last chip's part passes all others
    waits_s = (ways - 1 if hops is None else hops) * chip.hop_s
    # bytes/W: of the array a chip lacks all but its own 1/Y
    return waits_s * axes * chip.link_bytes_per_s / ((1 - 1 / ways) * activations.bytes * D)


def hops_s(layers: int, hops: int, chip: Chip, collectives_per_layer: int = 4) -> float:
    """layers · collectives · hops · α, seconds: the least that a step waits, with `hops` from end to end."""
    # four: an all-reduce after attention and after the MLP, of two halves each
    return layers * collectives_per_layer * hops * chip.hop_s


def evicted(batch: float, P: float, G: float) -> tuple[float, float]:
    """Of a step in the steady state: sequences that end, batch / G, and the tokens of cache that they free.

    Prompts of P tokens, answers of G. Derived in Inference.
    """
    # each sequence of the batch ends once in G steps, with P + G tokens cached
    return batch / G, batch * (P + G) / G
