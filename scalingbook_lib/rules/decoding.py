"""Closed forms of a decode step: its time, the batch within a latency, and the limits of layouts.

P parameters take w bytes each, a batch of sequences generates one new token each, and each chip has C FLOPs/s
and W_hbm bytes/s. Launch times and the parts of a model are not counted; `inference.decode` counts them.
Chapters: Inference; Serving Llama 3.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Unpack

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.rules.ratios import Over, network_bytes_per_s
from scalingbook_lib.units import BF16, DType, Result, si


def usd_per_million(usd_per_hour: float, *, chips: int, tokens_per_s: float) -> float:
    """The USD per million tokens, at a price in USD per chip-hour."""
    # USD/s of the replica over tokens/s
    return usd_per_hour * chips / 3600 / tokens_per_s * 1e6


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodeStep(Result):
    """The terms of `decode_step` in seconds: attention, then the linear layers."""

    kv_s: float
    matmul_s: float
    weights_s: float
    batch: float  # sequences
    chips: int

    @property
    def total_s(self) -> float:
        """The time of the step in seconds: reading the KV cache, then the longer of weights and compute."""
        return self.kv_s + max(self.matmul_s, self.weights_s)

    @property
    def tokens_per_s(self) -> float:
        """The tokens per second of all chips: one per sequence per step."""
        return self.batch / self.total_s

    def usd_per_million(self, usd_per_hour: float) -> float:
        """The USD per million tokens, at a price in USD per chip-hour."""
        return usd_per_million(usd_per_hour, chips=self.chips, tokens_per_s=self.tokens_per_s)

    def __str__(self) -> str:
        return (
            f"{si(self.total_s, 's')} per step: KV cache {si(self.kv_s, 's')} + max(compute "
            f"{si(self.matmul_s, 's')}, weights {si(self.weights_s, 's')})"
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
    """The time of a decode step: T = batch · M_kv / (n W) + max(2 batch P / (n C), w P / (n W)).

    `cache_bytes` is M_kv, the KV cache of one sequence, and `active` parameters are activated by one token.
    The formula holds if everything is sharded evenly and communication is hidden. Derived in Inference.
    Source: the scaling book, "All About Transformer Inference".
    """
    W = chips * chip.hbm_bytes_per_s  # bytes/s of all chips
    return DecodeStep(
        kv_s=batch * cache_bytes / W,  # every sequence reads its own KV cache: nothing is shared
        # a multiply and an add per parameter per token
        matmul_s=2 * batch * (params if active is None else active) / (chips * chip.flops_per_s(compute)),
        weights_s=params * weights.bytes / W,  # once per step, for any batch
        batch=batch,
        chips=chips,
    )


def hbm_read_time_s(chip: Chip) -> float:
    """The seconds M_hbm / W_hbm to read a full HBM once, the longest decode step that is memory-bound.

    Derived in Serving Llama 3.
    """
    # no program reads all of a full memory in less time
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
    """The largest batch, in sequences, with a `decode_step` of at most `limit_s` seconds.

    Below the critical batch the weights are read once; above it each sequence adds its compute time. The
    result is 0 if no step is short enough. Derived in Serving Llama 3.
    """
    W = chips * chip.hbm_bytes_per_s
    each, math = cache_bytes / W, 2 * params / (chips * chip.flops_per_s(compute))  # seconds per sequence
    read = params * weights.bytes / W  # seconds, for any batch
    if limit_s <= read:
        return 0.0
    # both regimes are linear in the batch, and the step is the higher of the two lines: take the smaller
    # batch
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
    """The TP degree Y = (w/a) n_ax F / (B β) up to which a decode step of B tokens gets faster.

    β is W_hbm / W_ici. Below the critical batch the step is bound by reading weights, so a higher degree pays
    off than in a compute-bound step (`tensor_parallel_degree`). Hops are not counted, and are usually the
    tighter limit. Derived in Inference ("Sharding a decode step").
    """
    beta = chip.hbm_bytes_per_s / network_bytes_per_s(chip, **over)  # β / n_ax
    # w D F / (Y W_hbm) > a B D / (n_ax W_ici), solved for Y
    return weights.bytes / activations.bytes * F / (B * beta)


@dataclass(frozen=True, kw_only=True, slots=True)
class TwoDimensionalLayout(Result):
    """Weight-stationary 1D and 2D layouts of an MLP over n chips of a torus: communication time per token."""

    n: int
    rows: float  # the degree X over D
    one_s: float
    two_s: float
    least: float  # chips above which the 2D layout is faster

    @property
    def wins(self) -> bool:
        """Whether the 2D layout is faster."""
        return self.two_s < self.one_s

    def __str__(self) -> str:
        return (
            f"{self.n:,} chips: 1D {si(self.one_s, 's')} per token, 2D {si(self.two_s, 's')} per token "
            f"with {self.rows:.3g} rows; 2D is faster above {self.least:.3g} chips"
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
    """Seconds of communication per token in a 1D layout over n chips, and in the best 2D layout.

    The 1D layout takes 2aD/((i+j) W). The 2D layout with X rows on i axes and n/X columns on j axes takes
    2aD/(X j W) + 2aF X/(n i W), which is least at X = √(n D i / (F j)). The 2D layout is faster if n > 4
    (F/D) (i + j)² / (i j): 16 F/D on a 2D torus and 18 F/D on three axes. Axes wrap and hops are not counted.
    Source: Pope et al., arXiv 2211.05102, appendix A.
    """
    # the sum is least where its two terms are equal
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
    """The tokens B below which a collective of B · D elements is latency-bound.

    `hops` · α (by default the hops of a line) equals (1 - 1/Y) a B D bytes over links of W_1 on `axes` axes.
    Derived in Inference ("Hops bind first").
    """
    # along a line, the last chip's part passes all others
    waits_s = (ways - 1 if hops is None else hops) * chip.hop_s
    # a chip lacks all of the array but its own 1/Y
    return waits_s * axes * chip.link_bytes_per_s / ((1 - 1 / ways) * activations.bytes * D)


def hops_s(layers: int, hops: int, chip: Chip, collectives_per_layer: int = 4) -> float:
    """The minimum latency of a step in seconds: layers · collectives · hops · α, with `hops` end to end."""
    # four: the two halves of an all-reduce after attention, and of one after the MLP
    return layers * collectives_per_layer * hops * chip.hop_s


def evicted(batch: float, P: float, G: float) -> tuple[float, float]:
    """The sequences that end per step, batch / G, and the tokens of KV cache that they free.

    This is the steady state with prompts of P tokens and outputs of G tokens. Derived in Inference.
    """
    # each sequence of the batch ends once in G steps, with P + G tokens cached
    return batch / G, batch * (P + G) / G
