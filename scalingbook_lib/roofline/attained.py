"""How long do kernels really take? A launch, and the longer of arithmetic and memory at what chips attain.

    product    t = launch + max(F / (e · C), bytes / (s · W)) + q · B · D · 2 bytes / W
    grouped    t = launch + max(F / (e · C), bytes / (s · W)) + a · min(of both), F for whole tiles of rows
    attention  t = launch + F / (e · C) · (1 + ramp / T)            of a prompt, F where the mask is skipped
               t = launch + x / s + d · x / (x + h) · SMs / (SMs + B K)     of one token

e and s are shares of the documented peaks, x is the time of the cache's bytes. Narrow products first write
their activations again, narrower: q passes over them in bf16. A token's sequences and KV heads are spread
over the SMs; where there are few, long ones are cut and put together again, which costs up to d. The figures
of a chip are fitted in `calibrated.kernels`. Chapter: Rooflines.
"""

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.roofline.time import matmul
from scalingbook_lib.units import BF16, DType, Result, percent, si


@dataclass(frozen=True, kw_only=True, slots=True)
class Products(Result):
    """What one chip's matrix products attain in one type."""

    launch_s: float
    flops: float  # e
    hbm: float  # s
    passes: float = 0.0  # q
    name: str = ""

    def seconds(
        self, B: int, D: int, F: int, chip: Chip, dtype: DType = BF16, *, weights: DType | None = None
    ) -> float:
        """X[B, D] · W[D, F] → Y[B, F] in HBM: Y in bf16, X in `dtype`, and W too but for `weights`."""
        ideal = matmul(B, D, F, chip, dtype, weights=weights, out=BF16)
        # q passes over X, [B, D] in bf16
        again_s = self.passes * B * D * BF16.bytes / chip.hbm_bytes_per_s
        return self.launch_s + max(ideal.math_s / self.flops, ideal.memory_s / self.hbm) + again_s

    def __str__(self) -> str:
        return (
            f"{self.name}: {si(self.launch_s, 's')}, then {percent(self.flops)} of the arithmetic or "
            f"{percent(self.hbm)} of the HBM, and {self.passes:.2g} passes over the activations"
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
"""Where more query heads share one of keys, kernels of decoding leave the tensor cores: so do
TensorRT-LLM's at 64 heads, on H100 (4.7e10) and B200 (4.1e10) alike."""
L2_HOLDS, L2_TIMES = 0.6, 3.0
"""A cache below this share of the L2 stays there when a kernel is timed again and again, and is read so
many times as fast."""


class Attending(NamedTuple):
    """A batch of sequences of T tokens, N query heads on K heads of keys and values, all H wide."""

    batch: int  # sequences
    T: int
    N: int
    K: int
    H: int
    kv_bytes: float = BF16.bytes  # of an element of the cache

    @property
    def token_flops(self) -> float:
        """Scores and weighted values of one new token of each sequence."""
        return 4.0 * self.batch * self.T * self.N * self.H

    @property
    def prompt_flops(self) -> float:
        """Of all tokens, masked pairs skipped: half of those that all would meet."""
        return self.T * self.token_flops / 2

    @property
    def cache_bytes(self) -> float:
        """All keys and values, which that token reads."""
        return 2 * self.batch * self.T * self.K * self.H * self.kv_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Attention(Result):
    """What one chip's fused attention attains."""

    launch_s: float
    flops: float  # e
    ramp: float  # tokens of a sequence at which half of e is reached
    token_launch_s: float
    hbm: float  # s
    late_s: float = 0.0  # d
    half_s: float = 1e-6  # h
    name: str = ""

    def prompt_s(self, of: Attending, chip: Chip) -> float:
        """Whole sequences, each as a prompt."""
        math_s = of.prompt_flops / (self.flops * chip.bf16_flops_per_s)
        return self.launch_s + math_s * (1 + self.ramp / of.T)

    def token_s(self, of: Attending, chip: Chip) -> float:
        """One token of each sequence, which reads its keys and values."""
        cores, x = chip.cores or 1, of.cache_bytes / chip.hbm_bytes_per_s
        if of.cache_bytes < L2_HOLDS * (chip.l2_bytes or 0.0):
            x /= L2_TIMES
        # near 1 where few sequences and heads leave SMs without work of their own
        split = cores / (cores + of.batch * of.K)
        vector = of.N > GROUP * of.K and not chip.torus
        math_s = of.token_flops / (VECTOR_FLOPS_PER_SM * cores) if vector else 0.0
        return self.token_launch_s + max(x / self.hbm, math_s) + self.late_s * split * x / (x + self.half_s)

    def __str__(self) -> str:
        prompts = f"{si(self.launch_s, 's')}, {percent(self.flops)} of the arithmetic"
        tokens = f"{si(self.token_launch_s, 's')}, {percent(self.hbm)} of the HBM"
        return f"{self.name}: prompts {prompts}, half of it at {self.ramp:,.0f} tokens; tokens {tokens}"
