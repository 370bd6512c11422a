"""How long do kernels really take? A launch, and the longer of arithmetic and memory at what chips attain.

    product    t = launch + max(F / (e · C), bytes / (s · W)) + q · B · D · 2 bytes / W
    attention  t = launch + F / (e · C) · (1 + ramp / T)            of a prompt, F where the mask is skipped
               t = launch + bytes / (s · W)                         of one token, bytes those of the cache

e and s are shares of the documented peaks. Narrow products first write their activations again, narrower: q
passes over them in bf16. The figures of a chip are fitted in `evidence.kernels`. Chapter: Rooflines.
"""

from dataclasses import dataclass

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.roofline.time import matmul
from scalingbook_lib.units import BF16, DType, Told, percent, si


@dataclass(frozen=True, kw_only=True, slots=True)
class Products(Told):
    """What one chip's matrix products attain in one type."""

    launch_s: float
    flops: float  # e
    hbm: float  # s
    passes: float = 0.0  # q
    name: str = ""

    def seconds(self, B: int, D: int, F: int, chip: Chip, dtype: DType = BF16) -> float:
        """X[B, D] · W[D, F] → Y[B, F], both operands in `dtype` and Y in bf16, all in HBM."""
        ideal = matmul(B, D, F, chip, dtype, out=BF16)
        again_s = self.passes * B * D * BF16.bytes / chip.hbm_bytes_per_s
        return self.launch_s + max(ideal.math_s / self.flops, ideal.memory_s / self.hbm) + again_s

    def __str__(self) -> str:
        return (
            f"{self.name}: {si(self.launch_s, 's')}, then {percent(self.flops)} of the arithmetic or "
            f"{percent(self.hbm)} of the HBM, and {self.passes:.2g} passes over the activations"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Attention(Told):
    """What one chip's fused attention attains."""

    launch_s: float
    flops: float  # e
    ramp: float  # tokens of a sequence at which half of e is reached
    token_launch_s: float
    hbm: float  # s
    name: str = ""

    def prompt_s(self, flops: float, T: float, chip: Chip) -> float:
        """Sequences of T tokens whose scores and values take that many FLOPs, masked ones skipped."""
        return self.launch_s + flops / (self.flops * chip.bf16_flops_per_s) * (1 + self.ramp / T)

    def token_s(self, nbytes: float, chip: Chip) -> float:
        """One token of each sequence, which reads `nbytes` of keys and values."""
        return self.token_launch_s + nbytes / (self.hbm * chip.hbm_bytes_per_s)

    def __str__(self) -> str:
        prompts = f"{si(self.launch_s, 's')}, {percent(self.flops)} of the arithmetic"
        tokens = f"{si(self.token_launch_s, 's')}, {percent(self.hbm)} of the HBM"
        return f"{self.name}: prompts {prompts}, half of it at {self.ramp:,.0f} tokens; tokens {tokens}"
