"""Kernel times on real chips: a launch, then the longer of compute and memory at attained efficiencies.

    matmul     t = launch + max(F / (e · C), bytes / (s · W)) + q · B · D · 2 bytes / W
    grouped    t = launch + max(F / (e · C), bytes / (s · W)) + a · min(of both), F for whole tiles of rows
    attention  t = launch + F / (e · C) · (1 + ramp / T)            in prefill, F without masked pairs
               t = launch + x / s + d · x / (x + h) · SMs / (SMs + B K)     in decode

e and s are fractions of the documented peaks, and x is the time to read the KV cache. Low-precision matmuls
first quantize their activations, which takes q passes over them in bf16. Decode attention spreads sequences
and KV heads over the SMs; if there are few of them, long sequences are split and the parts combined, which
costs up to d. The constants of a chip are fitted in `calibrated.kernels`. Chapter: Rooflines.
"""

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.roofline.time import matmul
from scalingbook_lib.units import BF16, DType, Result, percent, si


@dataclass(frozen=True, kw_only=True, slots=True)
class Products(Result):
    """The efficiency of one chip's matmuls in one data type."""

    launch_s: float
    flops: float  # e
    hbm: float  # s
    passes: float = 0.0  # q
    name: str = ""

    def seconds(
        self, B: int, D: int, F: int, chip: Chip, dtype: DType = BF16, *, weights: DType | None = None
    ) -> float:
        """Seconds of X[B, D] · W[D, F] → Y[B, F] in HBM.

        X is stored in `dtype`, W in `weights` (by default `dtype`), and Y in bf16.
        """
        ideal = matmul(B, D, F, chip, dtype, weights=weights, out=BF16)
        # q passes over X, [B, D] in bf16
        again_s = self.passes * B * D * BF16.bytes / chip.hbm_bytes_per_s
        return self.launch_s + max(ideal.math_s / self.flops, ideal.memory_s / self.hbm) + again_s

    def __str__(self) -> str:
        return (
            f"{self.name}: {si(self.launch_s, 's')}, then {percent(self.flops)} of peak FLOP/s or "
            f"{percent(self.hbm)} of HBM bandwidth, activation passes {self.passes:.2g}"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Grouped(Result):
    """What one chip's grouped matmuls attain in one dtype: one product for each expert, in one kernel."""

    launch_s: float
    flops: float  # e
    hbm: float  # s
    apart: float  # a: of the shorter of arithmetic and memory, what the longer does not hide
    tile: float  # rows that are computed together
    name: str = ""

    def rows(self, rows: float) -> float:
        """The rows that an expert computes, in whole tiles."""
        return self.tile * ceil(rows / self.tile)

    def seconds(self, experts: int, rows: int, D: int, F: int, chip: Chip, dtype: DType = BF16) -> float:
        """X[experts, rows, D] · W[experts, D, F] → Y[experts, rows, F] in bf16, as many rows for each."""
        math_s = 2 * experts * self.rows(rows) * D * F / (self.flops * chip.flops_per_s(dtype))
        nbytes = experts * ((D * F + rows * D) * dtype.bytes + rows * F * BF16.bytes)
        memory_s = nbytes / (self.hbm * chip.hbm_bytes_per_s)
        return self.launch_s + max(math_s, memory_s) + self.apart * min(math_s, memory_s)

    def __str__(self) -> str:
        return (
            f"{self.name}: {si(self.launch_s, 's')}, then {percent(self.flops)} of the arithmetic in tiles "
            f"of {self.tile:.0f} rows or {percent(self.hbm)} of the HBM, and {percent(self.apart)} of the "
            "shorter of both"
        )


GROUP, VECTOR_FLOPS_PER_SM = 32, 4.5e10
"""With this many query heads per KV head, decode kernels bypass the tensor cores and attain this rate.

TensorRT-LLM's kernels do so at 64 heads on H100 (4.7e10 FLOPs/s per SM) and B200 (4.1e10).
"""
L2_HOLDS, L2_TIMES = 0.6, 3.0
"""A KV cache below this share of the L2 stays in L2 when a kernel is timed repeatedly.

It is then read this many times as fast as from HBM.
"""


class Attending(NamedTuple):
    """A batch of sequences of T tokens, with N query heads and K KV heads of H elements each."""

    batch: int  # sequences
    T: int
    N: int
    K: int
    H: int
    kv_bytes: float = BF16.bytes  # per element of the KV cache

    @property
    def token_flops(self) -> float:
        """FLOPs of QKᵀ and PV for one new token of each sequence."""
        return 4.0 * self.batch * self.T * self.N * self.H

    @property
    def prompt_flops(self) -> float:
        """FLOPs of QKᵀ and PV for all tokens with a causal mask, which skips half of the pairs."""
        return self.T * self.token_flops / 2

    @property
    def cache_bytes(self) -> float:
        """Bytes of the KV cache, all of which a decode step reads."""
        return 2 * self.batch * self.T * self.K * self.H * self.kv_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Attention(Result):
    """The efficiency of one chip's fused attention kernels in prefill and decode."""

    launch_s: float
    flops: float  # e
    ramp: float  # tokens per sequence at which half of e is reached
    token_launch_s: float
    hbm: float  # s
    late_s: float = 0.0  # d
    half_s: float = 1e-6  # h
    name: str = ""

    def prompt_s(self, of: Attending, chip: Chip) -> float:
        """Seconds of prefill attention over the whole sequences."""
        math_s = of.prompt_flops / (self.flops * chip.bf16_flops_per_s)
        return self.launch_s + math_s * (1 + self.ramp / of.T)

    def token_s(self, of: Attending, chip: Chip) -> float:
        """Seconds of decode attention: one new token per sequence, which reads the whole KV cache."""
        cores, x = chip.cores or 1, of.cache_bytes / chip.hbm_bytes_per_s
        if of.cache_bytes < L2_HOLDS * (chip.l2_bytes or 0.0):
            x /= L2_TIMES
        # near 1 if few sequences and KV heads leave SMs without work
        split = cores / (cores + of.batch * of.K)
        vector = of.N > GROUP * of.K and not chip.torus
        math_s = of.token_flops / (VECTOR_FLOPS_PER_SM * cores) if vector else 0.0
        return self.token_launch_s + max(x / self.hbm, math_s) + self.late_s * split * x / (x + self.half_s)

    def __str__(self) -> str:
        prompts = f"{si(self.launch_s, 's')}, {percent(self.flops)} of peak FLOP/s"
        tokens = f"{si(self.token_launch_s, 's')}, {percent(self.hbm)} of HBM bandwidth"
        return f"{self.name}: prefill {prompts} (half at {self.ramp:,.0f} tokens); decode {tokens}"
