"""From which batch on does a product wait for the matrix unit, no longer for its weights? Ask the compiler.

`knee(chip="v5e", weights=INT8)` compiles `X[B, D] · W[D, F]` at three batches and lays two lines through the
TPU compiler's estimates: the time of few tokens, which is that of reading W, and the time that each of many
tokens adds. They meet at the knee. An estimate, no measurement: the compiler's model of HBM and matrix unit
is its own, so the knee's place says less than how it moves with the types. Chapters: Inference, Serving.
"""

import functools
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax

from scalingbook_lib import rules
from scalingbook_lib.lab.compiler import aot, slices
from scalingbook_lib.units import BF16, DType, Result

FEW = 8  # tokens: reading the weights takes all the time
WIDE = 16_384  # D and F: narrower int8 weights fit in VMEM, and copies into it carry no estimate
SMALLEST = {"v5e": "v5e:1x1", "v6e": "v6e:1x1", "v5p": "v5p:1x1x1", "v4": "v4:1x1x1"}


@dataclass(frozen=True, slots=True)
class Knee(Result):
    """The compiler's cycles of few tokens and of each of many; `formula` is w C / 2 W at documented rates."""

    topology: str
    weights: DType
    compute: DType
    floor: int
    cycles_per_token: float
    offset: float
    formula: float

    @property
    def tokens(self) -> float:
        """Where the lines meet."""
        return (self.floor - self.offset) / self.cycles_per_token

    def __str__(self) -> str:
        types = f"{self.weights} weights computed in {self.compute} on {self.topology}"
        return (
            f"{types}: {self.floor:,} cycles to read the weights, {self.cycles_per_token:,.0f} for each token"
            f" of many; the knee is at {self.tokens:.0f} tokens, the formula says {self.formula:.0f}"
        )


def product(x: jax.Array, w: jax.Array) -> jax.Array:
    """X[B, D] · W[D, F], narrow weights made wide on their way; in whole numbers where both are int8."""
    if x.dtype == jnp.int8:
        return lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32).astype(
            jnp.bfloat16
        )
    return x @ w.astype(x.dtype)


def program(
    B: int, topology: str, weights: DType = BF16, compute: DType = BF16, D: int = WIDE
) -> aot.Program:
    """The product of B tokens, compiled for one chip."""
    types = {"X": compute, "W": weights}
    return aot.compile(product, "X[B, D]", "W[D, F]", topology=topology, dtype=types, B=B, D=D, F=D)


@functools.cache
def knee(chip: str = "v5e", *, weights: DType = BF16, compute: DType = BF16) -> Knee:
    """Where the lines meet for these types on one chip of a generation ('v5e')."""
    topology, of = SMALLEST[chip], slices.GENERATIONS[chip]
    n = many(chip)
    few, less, more = (program(B, topology, weights, compute).cycles for B in (FEW, n, 2 * n))
    # far beyond the knee two batches, n and 2n, differ by arithmetic alone; at 8 tokens reading W is all
    # there is
    slope = (more - less) / n
    formula = rules.critical_batch(of, weights=weights, compute=compute)
    return Knee(topology, weights, compute, few, slope, less - slope * n, formula.tokens)


def many(chip: str) -> int:
    """Tokens that are beyond every knee of the chip: half more than its largest by the formula, and 384."""
    largest = rules.critical_batch(slices.GENERATIONS[chip]).tokens
    return max(384, 128 * math.ceil(1.5 * largest / 128))
