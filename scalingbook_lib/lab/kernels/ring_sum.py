"""What goes wrong when a buffer is written again before it has been read? A race, and only now and then.

Every chip's block goes once round the ring and everybody adds what passes by: an all-reduce, though not the
cheapest. With a buffer for each hop nothing can go wrong. With fewer, a buffer is used again, and the left
neighbor must know that it is free: it waits for `credit`, a semaphore that the reader signals. Without credit
a fast neighbor overwrites what a slow chip still has to read. Sums are right in most runs, which is why the
interpreter's race detector is worth more than a test of values. Source: docs.jax.dev/en/latest/pallas/tpu/
distributed.html, "Race conditions". Chapter: JAX.
"""

import functools

import jax
from jax.experimental import pallas
from jax.experimental.pallas import tpu

from scalingbook_lib.lab.kernels.interpreter import Interpret, meet, neighbors


def all_reduce(
    x: jax.Array, axis: str, *, buffers: int | None = None, credit: bool = True, interpret: Interpret = False
) -> jax.Array:
    """A[I]{U_X} → A[I] on one device's summand x[I] in `shard_map`; x is small enough for VMEM.

    `buffers`: one for each hop and one to begin with, or fewer, which are used in turn; then `credit` says
    whether a sender waits until the buffer that it writes to is free. Without it the kernel has a race.
    """
    n = jax.lax.axis_size(axis)
    slots = buffers or n
    if slots < 2:
        raise ValueError(f"{slots} buffer cannot be sent and received into at once; take at least 2")
    return pallas.pallas_call(
        functools.partial(_kernel, axis=axis, credit=credit and slots < n),
        in_specs=[pallas.BlockSpec(memory_space=tpu.VMEM)],
        out_specs=pallas.BlockSpec(memory_space=tpu.VMEM),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=[
            tpu.VMEM((slots, *x.shape), x.dtype),
            tpu.SemaphoreType.DMA((slots,)),
            tpu.SemaphoreType.DMA((slots,)),
            tpu.SemaphoreType.REGULAR,
        ],
        compiler_params=tpu.CompilerParams(collective_id=0),
        interpret=interpret,
        name="ring_sum",
    )(x)


def _kernel(x, y, *scratch, axis: str, credit: bool) -> None:
    """Send the block that came last to the right, receive the next from the left, add it."""
    passing, sent, arrived, free = scratch
    (left, right), n = neighbors(axis), jax.lax.axis_size(axis)
    slots = passing.shape[0]
    y[...] = passing[0] = x[...]
    meet(left, right)
    for hop in range(n - 1):
        here, there = hop % slots, (hop + 1) % slots
        if credit and hop + 1 >= slots:  # the right neighbor's buffer `there` has been used before
            pallas.semaphore_wait(free, 1)
        move = tpu.make_async_remote_copy(
            passing.at[here], passing.at[there], sent.at[here], arrived.at[there], device_id=right
        )
        move.start()
        move.wait()  # mine has left, and the left neighbor's has come
        y[...] += passing[there]
        if credit and hop + slots < n:  # my buffer `here` is free: it was added, and now it has been sent
            pallas.semaphore_signal(free, 1, device_id=left)
