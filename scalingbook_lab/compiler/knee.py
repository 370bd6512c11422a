"""Find the batch above which a matmul is compute-bound, from the TPU compiler's estimates in cycles.

`knee(chip="v5e", weights=INT8)` compiles `X[B, D] · W[D, F]` at three batches and fits two lines to the
estimates: the time of a small batch, which is the time to read W, and the time that each token of a large
batch adds. The lines meet at the knee, the critical batch size. The compiler has its own model of HBM and of
the matrix unit, so the way the knee moves with the data types is more reliable than its absolute position.
Chapters: Inference, Serving.
"""

import functools
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax

from scalingbook_lab.compiler import aot, slices
from scalingbook_lib import rules
from scalingbook_lib.units import BF16, DType, Result

SMALL_BATCH = 8  # tokens; at this size the time is the time to read the weights
WIDTH = 16_384  # D and F; smaller int8 weights would fit in VMEM, and copies into VMEM have no estimate
ONE_CHIP = {"v5e": "v5e:1x1", "v6e": "v6e:1x1", "v5p": "v5p:1x1x1", "v4": "v4:1x1x1"}


@dataclass(frozen=True, slots=True)
class Knee(Result):
    """The compiler's cycles for a small batch, and per token of a large batch.

    `formula` is the critical batch w C / 2 W in tokens at documented rates.
    """

    topology: str
    weights: DType
    compute: DType
    floor: int
    cycles_per_token: float
    offset: float
    formula: float

    @property
    def tokens(self) -> float:
        """The batch, in tokens, at which the two lines meet."""
        return (self.floor - self.offset) / self.cycles_per_token

    def __str__(self) -> str:
        types = f"{self.weights} weights computed in {self.compute} on {self.topology}"
        return (
            f"{types}: {self.floor:,} cycles to read the weights, {self.cycles_per_token:,.0f} for each token"
            f" of many; the knee is at {self.tokens:.0f} tokens, the formula says {self.formula:.0f}"
        )


def product(x: jax.Array, w: jax.Array) -> jax.Array:
    """X[B, D] · W[D, F] with narrower weights converted on the fly; in integers if both arrays are int8."""
    if x.dtype == jnp.int8:
        return lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32).astype(
            jnp.bfloat16
        )
    return x @ w.astype(x.dtype)


def program(
    B: int, topology: str, weights: DType = BF16, compute: DType = BF16, D: int = WIDTH
) -> aot.Program:
    """Compile the matmul of B tokens for one chip."""
    types = {"X": compute, "W": weights}
    return aot.compile(product, "X[B, D]", "W[D, F]", topology=topology, dtype=types, B=B, D=D, F=D)


@functools.cache
def knee(chip: str = "v5e", *, weights: DType = BF16, compute: DType = BF16) -> Knee:
    """Return the knee for these data types on one chip of a generation (such as 'v5e')."""
    topology, chip_spec = ONE_CHIP[chip], slices.GENERATIONS[chip]
    n = large_batch(chip)
    small, large, larger = (program(B, topology, weights, compute).cycles for B in (SMALL_BATCH, n, 2 * n))
    # far above the knee, batches n and 2n differ by compute alone; at 8 tokens the time is the time to read W
    slope = (larger - large) / n
    formula = rules.critical_batch(chip_spec, weights=weights, compute=compute)
    return Knee(topology, weights, compute, small, slope, large - slope * n, formula.tokens)


def large_batch(chip: str) -> int:
    """Return a compute-bound batch for this chip, in tokens.

    It is 1.5 times the chip's largest critical batch, and no smaller than 384 tokens.
    """
    critical = rules.critical_batch(slices.GENERATIONS[chip]).tokens
    return max(384, 128 * math.ceil(1.5 * critical / 128))
