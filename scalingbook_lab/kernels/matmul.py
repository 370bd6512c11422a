"""A tiled matmul as a Pallas kernel, for matrices that are too large for VMEM.

The grid iterates over the tiles of Y and, for each of them, along D. A BlockSpec says which tile of an array
belongs to a step. Pallas fetches the next step's tiles while the current one is computed, so each tile has
two buffers. An fp32 accumulator in VMEM holds the sums until the last step rounds them. Source: "Matrix
Multiplication" in JAX's Pallas TPU guide, docs.jax.dev/en/latest/pallas/tpu/matmul.html. Chapters: TPUs,
Profiling.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.experimental import pallas
from jax.experimental.pallas import tpu

from scalingbook_lab.kernels.interpreter import Interpret
from scalingbook_lib.units import BF16, FP32, DType, Result, binary

LANES, ROWS = 128, 8  # a TPU vector register holds 8 rows of 128 32-bit numbers


@dataclass(frozen=True, slots=True)
class Tiles(Result):
    """A tile of Y has `rows` of B and `columns` of F; along D it is computed in steps of `depth`."""

    rows: int = 512
    columns: int = 512
    depth: int = 512

    def vmem_bytes(self, x: DType = BF16, w: DType = BF16) -> int:
        """Return the VMEM in bytes: two buffers per tile of X, W and Y (in X's dtype), and the fp32
        accumulator.
        """
        inputs = x.bytes * self.rows * self.depth + w.bytes * self.depth * self.columns
        outputs = self.rows * self.columns
        return int(2 * (inputs + x.bytes * outputs) + FP32.bytes * outputs)

    def grid(self, B: int, D: int, F: int) -> tuple[int, int, int]:
        """Return the numbers of tiles along B, F and D.

        Raises ValueError if a tile does not divide its dimension.
        """
        sides = (("B", B, self.rows), ("F", F, self.columns), ("D", D, self.depth))
        # Pallas would pad a partial tile with undefined values, which would corrupt the sums along D
        for name, size, tile in sides:
            if size % tile:
                raise ValueError(
                    f"{name} = {size} is not divided by tiles of {tile}; choose a tile that divides it"
                )
        return B // self.rows, F // self.columns, D // self.depth

    @property
    def inputs(self) -> list[pallas.BlockSpec]:
        """Return the BlockSpecs of the tiles of X[B, D] and W[D, F] at step (i, j, k) of the grid."""
        return [
            pallas.BlockSpec((self.rows, self.depth), lambda i, j, k: (i, k)),
            pallas.BlockSpec((self.depth, self.columns), lambda i, j, k: (k, j)),
        ]

    @property
    def output(self) -> pallas.BlockSpec:
        """Return the BlockSpec of the tile of Y[B, F]: the same tile for all k, so it is written once."""
        return pallas.BlockSpec((self.rows, self.columns), lambda i, j, k: (i, j))

    def __str__(self) -> str:
        sides = f"{self.rows} × {self.columns} in steps of {self.depth}"
        return f"tiles of {sides}: {binary(self.vmem_bytes())} of VMEM in bf16"


TILES = Tiles()


def matmul(
    x: jax.Array,
    w: jax.Array,
    tiles: Tiles = TILES,
    *,
    vmem_bytes: int | None = None,
    interpret: Interpret = False,
) -> jax.Array:
    """X[B, D] · W[D, F] → Y[B, F], in the data type of X.

    `vmem_bytes` allows the kernel more than the default of 16 MiB. Raises ValueError if the tiles do not
    divide the arrays.
    """
    (B, D), F = x.shape, w.shape[1]
    return pallas.pallas_call(
        _step,
        grid=tiles.grid(B, D, F),
        in_specs=tiles.inputs,
        out_specs=tiles.output,
        out_shape=jax.ShapeDtypeStruct((B, F), x.dtype),
        scratch_shapes=[tpu.VMEM((tiles.rows, tiles.columns), jnp.float32)],
        # tiles of Y are independent, so two cores may share them; along D, the steps of one tile are ordered
        compiler_params=tpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary"), vmem_limit_bytes=vmem_bytes
        ),
        interpret=interpret,
        name="matmul",
    )(x, w)


def _step(x, w, y, total) -> None:
    """Add X[rows, depth] · W[depth, columns] to the accumulator of a tile of Y."""
    k = pallas.program_id(2)

    # the accumulator persists in VMEM across grid steps, so it still holds the previous tile's sums
    @pallas.when(k == 0)
    def _() -> None:
        total[...] = jnp.zeros_like(total)

    # the matrix unit multiplies bf16 exactly, and accumulates in fp32 on request
    total[...] += jnp.dot(x[...], w[...], preferred_element_type=jnp.float32)

    @pallas.when(k == pallas.num_programs(2) - 1)
    def _() -> None:
        y[...] = total[...].astype(y.dtype)
