"""Block diffusion against autoregressive decoding: a block in a few passes, or one token per step.

Both read all weights in every pass. One token per pass leaves the matrix unit mostly idle, and a block uses
it. KV caches are not counted. Chapter: Linear attention, sparse attention and diffusion.
"""

from dataclasses import dataclass

from scalingbook_lib import rules
from scalingbook_lib.machines import Chip
from scalingbook_lib.units import BF16, DType, Result, require_min, si


@dataclass(frozen=True, kw_only=True, slots=True)
class Diffusion(Result):
    """The time to generate a batch of blocks of T tokens, in `passes` over the block or token by token."""

    P: float
    T: int
    passes: int
    batch: float
    chip: Chip
    dtype: DType

    @property
    def read_s(self) -> float:
        """The seconds to read all weights once."""
        return self.P * self.dtype.bytes / self.chip.hbm_bytes_per_s

    def math_s(self, tokens: float) -> float:
        """Return the seconds of compute: two FLOPs per weight per token."""
        return 2 * self.P * tokens / self.chip.flops_per_s(self.dtype)

    @property
    def block_s(self) -> float:
        """The seconds by diffusion, where every pass computes all T tokens of all sequences."""
        return self.passes * max(self.read_s, self.math_s(self.batch * self.T))

    @property
    def one_by_one_s(self) -> float:
        """The seconds by autoregressive decoding: T steps with one token per sequence."""
        return self.T * max(self.read_s, self.math_s(self.batch))

    @property
    def gain(self) -> float:
        """Autoregressive time over diffusion time; T/passes as long as both are memory-bound."""
        return self.one_by_one_s / self.block_s

    @property
    def even_batch(self) -> float:
        """The batch above which autoregressive decoding is faster: w C / (2 W passes); 0 if it always is.

        There, the block is compute-bound and the steps are memory-bound: passes · 2PTB/C = T · wP/W.
        """
        ridge = rules.ridge(self.chip, self.dtype)
        return ridge * self.dtype.bytes / 2 / self.passes if self.passes < self.T else 0.0

    def __str__(self) -> str:
        return (
            f"{self.batch:g} × {self.T} tokens in {self.passes} passes: {si(self.block_s, 's')}, one by one "
            f"{si(self.one_by_one_s, 's')}; break-even at {self.even_batch:.3g} requests"
        )


def diffusion(
    P: float, chip: Chip, *, T: int, passes: int, batch: float = 1, dtype: DType = BF16
) -> Diffusion:
    """Return the time of blocks of T tokens with P parameters on one chip; all matmuls are in `dtype`."""
    require_min(1, P=P, T=T, passes=passes)
    require_min(0, batch=batch)
    return Diffusion(P=P, T=T, passes=passes, batch=batch, chip=chip, dtype=dtype)
