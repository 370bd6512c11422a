"""How does a TPU kernel run on a machine that has no TPU? In an interpreter, device by device, in threads.

The interpreter simulates HBM, VMEM, semaphores and DMAs between devices, fills memory that nobody has written
with nan, and can keep a vector clock for each device, which finds reads and writes that nothing orders.
Source: jax.experimental.pallas.tpu.InterpretParams, JAX 0.7 to 0.12.
"""

from typing import Any

import jax
from jax.experimental import pallas
from jax.experimental.pallas import tpu

type Place = tuple[jax.Array, ...]  # a device, as Pallas names it: a number for each axis of the mesh
type Interpret = Any  # False, or what `interpreter()` returns


def interpreter(*, races: bool = False, eager: bool = False) -> Interpret:
    """What a kernel's `interpret` takes: simulate a TPU, look for races, move data early or at the wait.

    A DMA may do its work at any time between its start and its wait: as late as it can, or `eager`ly.
    """
    return tpu.InterpretParams(detect_races=races, dma_execution_mode="eager" if eager else "on_wait")


def neighbors(axis: str) -> tuple[Place, Place]:
    """The devices to the left and to the right on a mesh axis, which is taken as a ring."""
    me, n = jax.lax.axis_index(axis), jax.lax.axis_size(axis)
    return _at(axis, (me + n - 1) % n), _at(axis, (me + 1) % n)


def meet(*others: Place) -> None:
    """Wait until all of these devices are in the kernel too, so that writing into their memory is safe."""
    # the one semaphore that all kernels with this `collective_id` share; it has to be back at 0 in the end
    barrier = tpu.get_barrier_semaphore()
    for other in others:
        pallas.semaphore_signal(barrier, 1, device_id=other)
    pallas.semaphore_wait(barrier, len(others))


def _at(axis: str, place: jax.Array) -> Place:
    """The device there on this axis, and where this one is on all others: a number for each mesh axis."""
    names = jax.sharding.get_abstract_mesh().axis_names
    return tuple(place if name == axis else jax.lax.axis_index(name) for name in names)
