"""How does a TPU kernel run on a machine that has no TPU? In an interpreter, device by device, in threads.

The interpreter simulates HBM, VMEM, semaphores and DMAs between devices, fills memory that nobody has written
with nan, and can keep a vector clock for each device, which finds reads and writes that nothing orders.
Source: jax.experimental.pallas.tpu.InterpretParams, JAX 0.7 to 0.12.
"""

from typing import Any

import jax
from jax.experimental import pallas
from jax.experimental.pallas import tpu

type Interpret = Any  # False, or what `interpreter()` returns


def interpreter(*, races: bool = False, eager: bool = False) -> Interpret:
    """What a kernel's `interpret` takes: simulate a TPU, look for races, move data early or at the wait.

    A DMA may do its work at any time between its start and its wait: as late as it can, or `eager`ly.
    """
    return tpu.InterpretParams(detect_races=races, dma_execution_mode="eager" if eager else "on_wait")


def neighbors(axis: str) -> tuple[jax.Array, dict[str, jax.Array], dict[str, jax.Array], int]:
    """This device's place on a ring, its neighbors left and right as Pallas names them, the ring's size."""
    me, n = jax.lax.axis_index(axis), jax.lax.axis_size(axis)
    return me, {axis: (me + n - 1) % n}, {axis: (me + 1) % n}, n


def meet(*others: dict[str, jax.Array]) -> None:
    """Wait until all of these devices are in the kernel too, so that writing into their memory is safe."""
    barrier = tpu.get_barrier_semaphore()
    for other in others:
        pallas.semaphore_signal(barrier, 1, device_id=other)
    pallas.semaphore_wait(barrier, len(others))
