"""When does a model that writes a block in a few passes beat one that writes token by token?

Both read all weights in every pass. One token a pass leaves the arithmetic idle; a block fills it. Caches are
left out of both. Chapter: Linear attention, sparse attention and diffusion.
"""

from dataclasses import dataclass

from scalingbook_lib import rules
from scalingbook_lib.machines import Chip
from scalingbook_lib.units import BF16, DType, Result, require_min, si


@dataclass(frozen=True, kw_only=True, slots=True)
class Diffusion(Result):
    """A batch of answers of T tokens: in `passes` over the whole block, or one token after the other."""

    P: float
    T: int
    passes: int
    batch: float
    chip: Chip
    dtype: DType

    @property
    def read_s(self) -> float:
        """All weights, once."""
        return self.P * self.dtype.bytes / self.chip.hbm_bytes_per_s

    def math_s(self, tokens: float) -> float:
        """Two FLOPs a weight and token."""
        return 2 * self.P * tokens / self.chip.flops_per_s(self.dtype)

    @property
    def block_s(self) -> float:
        """By diffusion: every pass computes all T tokens of all answers."""
        return self.passes * max(self.read_s, self.math_s(self.batch * self.T))

    @property
    def one_by_one_s(self) -> float:
        """Autoregressive: T steps, one token of each answer."""
        return self.T * max(self.read_s, self.math_s(self.batch))

    @property
    def gain(self) -> float:
        """How many times as fast the block is; T/passes while it waits for weights."""
        return self.one_by_one_s / self.block_s

    @property
    def even_batch(self) -> float:
        """The batch from which token by token is faster: w C / (2 W passes); 0 where it always is.

        Below it the block computes and the steps read: passes · 2PTB/C = T · wP/W.
        """
        ridge = rules.ridge(self.chip, self.dtype)
        return ridge * self.dtype.bytes / 2 / self.passes if self.passes < self.T else 0.0

    def __str__(self) -> str:
        return (
            f"{self.batch:g} × {self.T} tokens in {self.passes} passes: {si(self.block_s, 's')}, one by one "
            f"{si(self.one_by_one_s, 's')}; even at {self.even_batch:.3g}"
        )


def diffusion(
    P: float, chip: Chip, *, T: int, passes: int, batch: float = 1, dtype: DType = BF16
) -> Diffusion:
    """A block of T tokens of each sequence of a batch, by P parameters on one chip, in one type."""
    require_min(1, P=P, T=T, passes=passes)
    require_min(0, batch=batch)
    return Diffusion(P=P, T=T, passes=passes, batch=batch, chip=chip, dtype=dtype)
