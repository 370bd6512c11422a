"""An all-reduce on a ring as a Pallas kernel, which has a race if it reuses buffers without flow control.

Every chip's block travels once around the ring, and each chip adds what it receives. This is an all-reduce,
although not the cheapest one. With one buffer per hop nothing can go wrong. With fewer buffers, one is
reused, and the left neighbor must know that it is free: it waits for `credit`, a semaphore that the reader
signals. Without credit, a fast neighbor overwrites what a slow chip still has to read. The sums are right in
most runs anyway, so the interpreter's race detector is worth more than a test of values. Source:
docs.jax.dev/en/latest/pallas/tpu/distributed.html, "Race conditions". Chapter: JAX.
"""

import functools

import jax
from jax.experimental import pallas
from jax.experimental.pallas import tpu

from scalingbook_lab.kernels.interpreter import Interpret, barrier, neighbors


def all_reduce(
    x: jax.Array, axis: str, *, buffers: int | None = None, credit: bool = True, interpret: Interpret = False
) -> jax.Array:
    """A[I]{U_X} → A[I] for one device's summand x[I] in `shard_map`; x must be small enough for VMEM.

    `buffers` defaults to one per hop plus an initial one. With fewer, buffers are reused, and `credit` says
    whether a sender waits until the buffer that it writes to is free. Without credit the kernel has a race.
    Raises ValueError for fewer than two buffers.
    """
    n = jax.lax.axis_size(axis)
    slots = buffers or n
    if slots < 2:
        raise ValueError(f"{slots} buffer cannot be sent from and received into at once; use at least 2")
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
    """Send the latest block to the right, receive the next one from the left, and add it."""
    received, sent, arrived, free = scratch
    (left, right), n = neighbors(axis), jax.lax.axis_size(axis)
    slots = received.shape[0]
    y[...] = received[0] = x[...]
    barrier(left, right)
    for hop in range(n - 1):
        current, following = hop % slots, (hop + 1) % slots
        if credit and hop + 1 >= slots:  # the right neighbor's buffer `following` is reused
            pallas.semaphore_wait(free, 1)
        copy = tpu.make_async_remote_copy(
            received.at[current],
            received.at[following],
            sent.at[current],
            arrived.at[following],
            device_id=right,
        )
        copy.start()
        copy.wait()  # this chip's block has left, and the left neighbor's has arrived
        y[...] += received[following]
        if credit and hop + slots < n:  # buffer `current` is free: its block has been added and sent
            pallas.semaphore_signal(free, 1, device_id=left)
