"""An all-gather on a ring as a Pallas kernel: each chip writes into its neighbor's memory by remote DMA.

A remote DMA copies from this chip's memory into another chip's, at the same address. It has two semaphores:
the sender's counts what has left, and the receiver's counts what has arrived. At each of n - 1 steps every
chip passes on what it received last, directly to its place in the neighbor's result. No buffer is reused, so
a chip only waits for arrivals. The mesh axis should follow the torus, so that a neighbor is one hop away.
Sources: "Distributed Computing in Pallas for TPUs", docs.jax.dev/en/latest/pallas/tpu/distributed.html; bytes
and time: `collectives.all_gather`. Chapters: Sharding, JAX.
"""

import functools
from typing import Any

import jax
from jax.experimental import pallas
from jax.experimental.pallas import tpu

from scalingbook_lab.kernels.interpreter import Interpret, barrier, neighbors


def all_gather(
    x: jax.Array, axis: str, *, both_ways: bool = False, interpret: Interpret = False
) -> jax.Array:
    """A[I_X, J] → A[I, J], for one device's shard x[I / n, J] within `shard_map` (`aot.compile(local=True)`).

    With `both_ways`, one half of each shard travels to the right and the other to the left, so that both
    links work at once: the same bytes in half the time. Raises ValueError if a shard cannot be halved.
    """
    n = jax.lax.axis_size(axis)
    directions = 2 if both_ways else 1
    if x.shape[0] % directions:
        raise ValueError(
            f"{x.shape[0]} rows cannot be halved for both directions; give an even number of rows"
        )
    return pallas.pallas_call(
        functools.partial(_gather, axis=axis, directions=directions),
        in_specs=[pallas.BlockSpec(memory_space=pallas.ANY)],  # stays in HBM, where only DMAs access it
        out_specs=pallas.BlockSpec(memory_space=pallas.ANY),
        out_shape=jax.ShapeDtypeStruct((n * x.shape[0], *x.shape[1:]), x.dtype),
        scratch_shapes=[
            tpu.SemaphoreType.DMA,
            tpu.SemaphoreType.DMA((directions, n - 1)),
            tpu.SemaphoreType.DMA((directions, n - 1)),
        ],
        compiler_params=tpu.CompilerParams(collective_id=0),
        interpret=interpret,
        name="ring_all_gather",
    )(x)


def _gather(x, gathered, own_copied, sent, arrived, *, axis: str, directions: int) -> None:
    """Copy this device's shard into the result, then at each step pass on what the neighbor sent."""
    begin(x, gathered, own_copied, axis)
    for step in range(jax.lax.axis_size(axis) - 1):
        copies = moves(gathered, sent, arrived, axis, step, directions=directions)
        for copy in copies:  # both directions at once, on different links
            copy.start()
        for copy in copies:  # the next step forwards what has arrived
            copy.wait()


def begin(x, gathered, own_copied, axis: str) -> None:
    """Wait for both neighbors, and copy this device's shard to its place in the result."""
    me = jax.lax.axis_index(axis)
    barrier(*neighbors(axis))
    # writing into the neighbors' memory is safe only after both have entered the kernel; before that, the
    # memory may hold other data
    own_copy = tpu.make_async_copy(x, gathered.at[pallas.ds(me * x.shape[0], x.shape[0])], own_copied)
    own_copy.start()
    own_copy.wait()


def part(gathered, axis: str, step: int, direction: int, directions: int) -> Any:
    """Return the shard (or half shard) that is here after `step` steps; it started `step` positions away.

    Direction 0 sends to the right, so data comes from the left; direction 1 is the opposite.
    """
    me, n = jax.lax.axis_index(axis), jax.lax.axis_size(axis)
    origin = (me + (n - step, step)[direction]) % n
    rows = gathered.shape[0] // n // directions
    return gathered.at[pallas.ds((origin * directions + direction) * rows, rows)]


def moves(gathered, sent, arrived, axis: str, step: int, *, directions: int) -> list[Any]:
    """Return the DMAs of one step: each forwards to one neighbor what the other neighbor sent."""
    left, right = neighbors(axis)
    blocks = [part(gathered, axis, step, direction, directions) for direction in range(directions)]
    # one semaphore per direction and step: with a shared one, a fast neighbor's next shard could be mistaken
    # for this one
    return [
        tpu.make_async_remote_copy(
            block, block, sent.at[direction, step], arrived.at[direction, step], device_id=to
        )
        for direction, (block, to) in enumerate(zip(blocks, (right, left), strict=False))
    ]
