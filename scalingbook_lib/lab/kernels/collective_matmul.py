"""How does a chip multiply by an array that it does not have yet? Shard by shard, while the next one travels.

A collective matmul: the ring of `ring.all_gather` in VMEM, and at each step, while DMAs carry a shard on, the
matrix unit multiplies that same shard, a tile of Y at a time. Which rows of Y those are depends on the chip's
place on the ring: the grid's index map reads it from a number that Pallas fetches before the kernel starts
(scalar prefetch). Communication is hidden where F / n is at least FLOPs/s over the bytes/s of the links used.
Source: Wang et al., "Overlap Communication with Dependent Computation" (ASPLOS 2023).
Chapters: Sharding, JAX.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas
from jax.experimental.pallas import tpu

from scalingbook_lib.lab.kernels import ring
from scalingbook_lib.lab.kernels.interpreter import Interpret
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
    """X[B_X, D] · W[D, F_X] → Y[B, F_X], on one device's blocks x[B / n, D] and w[D, F / n] in `shard_map`.

    Tiles of Y are rows × columns, each along all of D; X[B, D] is gathered in VMEM, which `vmem_bytes` must
    allow: see the function of that name. With `both_ways`, halves of shards go round in opposite directions.
    """
    n, ways = jax.lax.axis_size(axis), 2 if both_ways else 1
    (b, D), F = x.shape, w.shape[1]
    _fits(b // ways, F, rows, columns)
    here = functools.partial(_rows_of_y, n=n, tiles=b // ways // rows)
    links = tpu.SemaphoreType.DMA((ways, max(n - 1, 1)))
    return pallas.pallas_call(
        functools.partial(_kernel, axis=axis, ways=ways),
        grid_spec=tpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(n, ways, b // ways // rows, F // columns),
            in_specs=[
                pallas.BlockSpec(memory_space=pallas.ANY),  # gathered by hand: no tiles of X
                pallas.BlockSpec((D, columns), lambda step, way, i, j, me: (0, j)),
            ],
            out_specs=pallas.BlockSpec(
                (rows, columns), lambda step, way, i, j, me: (here(me[0], step, way, i, ways=ways), j)
            ),
            scratch_shapes=[tpu.VMEM((n * b, D), x.dtype), tpu.SemaphoreType.DMA, links, links],
        ),
        out_shape=jax.ShapeDtypeStruct((n * b, F), x.dtype),
        compiler_params=tpu.CompilerParams(collective_id=0, vmem_limit_bytes=vmem_bytes),
        interpret=interpret,
        name="all_gather_matmul",
    )(jax.lax.axis_index(axis)[None], x, w)


def vmem_bytes(B: int, D: int, *, rows: int = 512, columns: int = 512, dtype: DType = BF16) -> int:
    """All of X[B, D], two buffers for the tiles of W and of Y, and one tile's sums in fp32."""
    tiles = 2 * (D * columns + rows * columns)
    return int(dtype.bytes * (B * D + tiles) + FP32.bytes * rows * columns)


def _kernel(_me, x, w, y, *scratch, axis: str, ways: int) -> None:
    """One tile of Y; before the first of a step, wait for what the step computes with, and pass it on."""
    gathered, mine, sent, arrived = scratch
    step, way, i, j = (pallas.program_id(k) for k in range(4))
    me, n = jax.lax.axis_index(axis), jax.lax.axis_size(axis)

    # The grid's step is a number that is known only on the chip, and semaphores are chosen by Python: so
    # every step is written out, and all but one of them are skipped.
    for at in range(n):  # each step has semaphores of its own
        pallas.when((step == at) & (way == 0) & (i == 0) & (j == 0))(
            functools.partial(_arrive, x, gathered, mine, sent, arrived, axis=axis, step=at, ways=ways)
        )

    rows = y.shape[0]
    block = _rows_of_y(me, step, way, i, n=n, tiles=pallas.num_programs(2), ways=ways)
    shard = gathered[pallas.ds(pallas.multiple_of(block * rows, rows), rows)]
    y[...] = jnp.dot(shard, w[...], preferred_element_type=jnp.float32).astype(y.dtype)


def _arrive(x, gathered, mine, sent, arrived, *, axis: str, step: int, ways: int) -> None:
    """What this step computes with is here, and on its way to the neighbors."""
    n = jax.lax.axis_size(axis)
    if step == 0:
        ring.begin(x, gathered, mine, axis)
    else:
        for move in ring.moves(gathered, sent, arrived, axis, step - 1, ways=ways):
            move.wait()
    if step < n - 1:
        for move in ring.moves(gathered, sent, arrived, axis, step, ways=ways):
            move.start()


def _rows_of_y(me: Any, step: Any, way: Any, i: Any, *, n: int, tiles: Any, ways: int) -> Any:
    """Which tile of rows: the i-th of the shard, or half, that began `step` places away on the ring."""
    origin = jax.lax.rem(me + jnp.where(way == 0, n - step, step), jnp.int32(n))
    return (origin * ways + way) * tiles + i


def _fits(b: int, F: int, rows: int, columns: int) -> None:
    for what, size, tile in (
        ("rows that travel together", b, rows),
        ("columns of W on one device", F, columns),
    ):
        if size % tile:
            raise ValueError(f"{size} {what} are not cut into tiles of {tile}; take a tile that divides them")
