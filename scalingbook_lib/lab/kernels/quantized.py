"""What does a matmul gain from weights in 8 bits?

HBM is read half as much: int8 tiles come into VMEM and are made wide there, on their way into the matrix
unit. The scale of an output channel is the same for all of D, so it multiplies the finished sum, once for
each number of Y instead of once for each weight. Weights and scales as `serve.quantize.narrow` makes them.
Chapter: Inference.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas

from scalingbook_lib.lab.kernels.matmul import TILES, Tiles, tiled
from scalingbook_lib.lab.serve.quantize import Numbers, narrow


def rounded(w: jax.Array) -> Numbers:
    """W[D, F] as int8 with a scale for each of the F channels: {"whole": [D, F], "scale": [1, F]}."""
    return narrow(w, (0,))


def matmul(x: jax.Array, whole: jax.Array, scale: jax.Array, tiles: Tiles = TILES, **how: Any) -> jax.Array:
    """(X[B, D] · whole[D, F]) · scale[1, F] → Y[B, F]: whole in int8, X and Y in bf16 or fp32.

    `how` is that of `matmul.tiled`.
    """
    scales = pallas.BlockSpec((1, tiles.columns), lambda i, j, k: (0, j))
    return tiled(_step, x, whole, tiles, (scales, scale), name="quantized_matmul", **how)


def _step(x, whole, scale, y, total) -> None:
    """The tile of int8 is made wide and multiplied; the scale comes last. Every int8 is exact in bf16."""
    k = pallas.program_id(2)

    @pallas.when(k == 0)
    def _() -> None:
        total[...] = jnp.zeros_like(total)

    total[...] += jnp.dot(x[...], whole[...].astype(x.dtype), preferred_element_type=jnp.float32)

    @pallas.when(k == pallas.num_programs(2) - 1)
    def _() -> None:
        y[...] = (total[...] * scale[...]).astype(y.dtype)
