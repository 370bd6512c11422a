"""A collective matmul as a Pallas kernel: it multiplies one shard while the next one is in flight.

The ring of `ring.all_gather` runs in VMEM. At each step, while DMAs pass a shard on, the matrix unit
multiplies that shard, one tile of Y at a time. The rows of Y that a shard produces depend on the chip's
position on the ring; the grid's index map reads it from a number that Pallas fetches before the kernel starts
(scalar prefetch). Communication is hidden if F / n is at least the FLOPs/s divided by the bytes/s of the
links used. Source: Wang et al., "Overlap Communication with Dependent Computation" (ASPLOS 2023). Chapters:
Sharding, JAX.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas
from jax.experimental.pallas import tpu

from scalingbook_lab.kernels import ring
from scalingbook_lab.kernels.interpreter import Interpret
from scalingbook_lib.units import BF16, FP32, DType


def all_gather_matmul(
    x: jax.Array,
    w: jax.Array,
    axis: str,
    *,
    rows: int = 512,
    columns: int = 512,
    both_ways: bool = False,
    vmem_bytes: int | None = None,
    interpret: Interpret = False,
) -> jax.Array:
    """X[B_X, D] · W[D, F_X] → Y[B, F_X], for one device's shards x[B / n, D] and w[D, F / n] in `shard_map`.

    Tiles of Y are rows × columns, and each spans all of D. X[B, D] is gathered in VMEM, so `vmem_bytes` must
    allow for it: see the function of that name. With `both_ways`, the halves of each shard travel in opposite
    directions. Raises ValueError if the tiles do not divide the shards.
    """
    n, directions = jax.lax.axis_size(axis), 2 if both_ways else 1
    (b, D), F = x.shape, w.shape[1]
    _check_tiles(b // directions, F, rows, columns)
    here = functools.partial(_rows_of_y, n=n, tiles=b // directions // rows)
    links = tpu.SemaphoreType.DMA((directions, max(n - 1, 1)))
    return pallas.pallas_call(
        functools.partial(_kernel, axis=axis, directions=directions),
        grid_spec=tpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(n, directions, b // directions // rows, F // columns),
            in_specs=[
                pallas.BlockSpec(memory_space=pallas.ANY),  # gathered by DMA, not in tiles
                pallas.BlockSpec((D, columns), lambda step, direction, i, j, me: (0, j)),
            ],
            out_specs=pallas.BlockSpec(
                (rows, columns),
                lambda step, direction, i, j, me: (here(me[0], step, direction, i, directions=directions), j),
            ),
            scratch_shapes=[tpu.VMEM((n * b, D), x.dtype), tpu.SemaphoreType.DMA, links, links],
        ),
        out_shape=jax.ShapeDtypeStruct((n * b, F), x.dtype),
        compiler_params=tpu.CompilerParams(collective_id=0, vmem_limit_bytes=vmem_bytes),
        interpret=interpret,
        name="all_gather_matmul",
    )(jax.lax.axis_index(axis)[None], x, w)


def vmem_bytes(B: int, D: int, *, rows: int = 512, columns: int = 512, dtype: DType = BF16) -> int:
    """Return the VMEM in bytes: X[B, D], two buffers for the tiles of W and Y, and one fp32 accumulator."""
    tiles = 2 * (D * columns + rows * columns)
    return int(dtype.bytes * (B * D + tiles) + FP32.bytes * rows * columns)


def _kernel(_me, x, w, y, *scratch, axis: str, directions: int) -> None:
    """Compute one tile of Y; the first tile of a step waits for the step's shard and passes it on."""
    gathered, own_copied, sent, arrived = scratch
    step, direction, i, j = (pallas.program_id(k) for k in range(4))
    me, n = jax.lax.axis_index(axis), jax.lax.axis_size(axis)

    # The grid's step is known only on the chip, but Python chooses the semaphores. Every step is therefore
    # unrolled, and all but one are skipped.
    for static_step in range(n):  # each step has its own semaphores
        pallas.when((step == static_step) & (direction == 0) & (i == 0) & (j == 0))(
            functools.partial(
                _receive,
                x,
                gathered,
                own_copied,
                sent,
                arrived,
                axis=axis,
                step=static_step,
                directions=directions,
            )
        )

    rows = y.shape[0]
    block = _rows_of_y(me, step, direction, i, n=n, tiles=pallas.num_programs(2), directions=directions)
    shard = gathered[pallas.ds(pallas.multiple_of(block * rows, rows), rows)]
    y[...] = jnp.dot(shard, w[...], preferred_element_type=jnp.float32).astype(y.dtype)


def _receive(x, gathered, own_copied, sent, arrived, *, axis: str, step: int, directions: int) -> None:
    """Wait for the shard that this step multiplies, and start sending it to the neighbors."""
    n = jax.lax.axis_size(axis)
    if step == 0:
        ring.begin(x, gathered, own_copied, axis)
    else:
        for move in ring.moves(gathered, sent, arrived, axis, step - 1, directions=directions):
            move.wait()
    if step < n - 1:
        for move in ring.moves(gathered, sent, arrived, axis, step, directions=directions):
            move.start()


def _rows_of_y(me: Any, step: Any, direction: Any, i: Any, *, n: int, tiles: Any, directions: int) -> Any:
    """Return the index of the i-th tile of rows of a shard (or half shard).

    The shard started `step` positions away on the ring.
    """
    origin = jax.lax.rem(me + jnp.where(direction == 0, n - step, step), jnp.int32(n))
    return (origin * directions + direction) * tiles + i


def _check_tiles(b: int, F: int, rows: int, columns: int) -> None:
    """Raise ValueError if a tile does not divide its dimension."""
    for what, size, tile in (
        ("rows that travel together", b, rows),
        ("columns of W on one device", F, columns),
    ):
        if size % tile:
            raise ValueError(
                f"{size} {what} are not divided by tiles of {tile}; choose a tile that divides them"
            )
