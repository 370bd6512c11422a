"""How do the chips of a ring gather an array by themselves, each writing into its neighbor's memory?

A remote DMA copies from this chip's memory into another's, at the same address. It has two semaphores: the
sender's counts what has left, the receiver's what has arrived. At each of n - 1 steps every chip passes on
what came last, straight to its place in the neighbor's result: no buffer is used twice, so nothing needs to
be waited for but arrival. The mesh axis should follow the torus, so that a neighbor is one hop away.
Sources: "Distributed Computing in Pallas for TPUs", docs.jax.dev/en/latest/pallas/tpu/distributed.html;
bytes and time: `collectives.all_gather`. Chapters: Sharding, JAX.
"""

import functools
from typing import Any

import jax
from jax.experimental import pallas
from jax.experimental.pallas import tpu

from scalingbook_lib.lab.kernels.interpreter import Interpret, meet, neighbors


def all_gather(
    x: jax.Array, axis: str, *, both_ways: bool = False, interpret: Interpret = False
) -> jax.Array:
    """A[I_X, J] → A[I, J], on one device's block x[I / n, J] within `shard_map` (`aot.compile(local=True)`).

    With `both_ways`, one half of each shard goes round to the right and the other to the left, so that both
    links work at once: the same bytes in half the time.
    """
    n = jax.lax.axis_size(axis)
    ways = 2 if both_ways else 1
    if x.shape[0] % ways:
        raise ValueError(f"{x.shape[0]} rows have no halves to send both ways; give an even number of rows")
    return pallas.pallas_call(
        functools.partial(_gather, axis=axis, ways=ways),
        in_specs=[pallas.BlockSpec(memory_space=pallas.ANY)],  # left where it is: DMAs alone touch it
        out_specs=pallas.BlockSpec(memory_space=pallas.ANY),
        out_shape=jax.ShapeDtypeStruct((n * x.shape[0], *x.shape[1:]), x.dtype),
        scratch_shapes=[
            tpu.SemaphoreType.DMA,
            tpu.SemaphoreType.DMA((ways, n - 1)),
            tpu.SemaphoreType.DMA((ways, n - 1)),
        ],
        compiler_params=tpu.CompilerParams(collective_id=0),
        interpret=interpret,
        name="ring_all_gather",
    )(x)


def _gather(x, gathered, mine, sent, arrived, *, axis: str, ways: int) -> None:
    """Put my own shard in its place; then pass on, at each step, what the neighbor passed to me."""
    begin(x, gathered, mine, axis)
    for step in range(jax.lax.axis_size(axis) - 1):
        under_way = moves(gathered, sent, arrived, axis, step, ways=ways)
        for move in under_way:  # both directions at once: their links are not the same
            move.start()
        for move in under_way:  # what has arrived is what the next step sends on
            move.wait()


def begin(x, gathered, mine, axis: str) -> None:
    """Meet both neighbors, and copy my own shard to its place in the result."""
    me = jax.lax.axis_index(axis)
    meet(*neighbors(axis))
    # only when both neighbors have entered the kernel is it safe to write into their memory: before,
    # something else of theirs may lie there
    own = tpu.make_async_copy(x, gathered.at[pallas.ds(me * x.shape[0], x.shape[0])], mine)
    own.start()
    own.wait()


def part(gathered, axis: str, step: int, way: int, ways: int) -> Any:
    """What is here after `step` steps of one way: the shard (or its half) that began so many places off.

    Way 0 goes to the right, so what comes is from the left; way 1 the other way round.
    """
    me, n = jax.lax.axis_index(axis), jax.lax.axis_size(axis)
    origin = (me + (n - step, step)[way]) % n
    rows = gathered.shape[0] // n // ways
    return gathered.at[pallas.ds((origin * ways + way) * rows, rows)]


def moves(gathered, sent, arrived, axis: str, step: int, *, ways: int) -> list[Any]:
    """The DMAs of one step: to each neighbor what the other one sent, into the same place of its result."""
    left, right = neighbors(axis)
    blocks = [part(gathered, axis, step, way, ways) for way in range(ways)]
    # a semaphore for each way and step: with one for all, a fast neighbor's next shard could pass for this
    # one
    return [
        tpu.make_async_remote_copy(block, block, sent.at[way, step], arrived.at[way, step], device_id=to)
        for way, (block, to) in enumerate(zip(blocks, (right, left), strict=False))
    ]
