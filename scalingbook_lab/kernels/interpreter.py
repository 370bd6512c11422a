"""Run TPU kernels without a TPU, in JAX's interpreter, with one thread per device.

The interpreter simulates HBM, VMEM, semaphores and DMAs between devices, fills uninitialized memory with nan,
and can keep a vector clock per device, which finds unordered reads and writes. Source:
jax.experimental.pallas.tpu.InterpretParams, JAX 0.7 to 0.12.
"""

from typing import Any

import jax
from jax.experimental import pallas
from jax.experimental.pallas import tpu

type Place = tuple[jax.Array, ...]  # a device as Pallas addresses it: one index per mesh axis
type Interpret = Any  # False, or the value of `interpreter()`


def interpreter(*, races: bool = False, eager: bool = False) -> Interpret:
    """Return the value of a kernel's `interpret` argument: simulate a TPU, optionally with race detection.

    A DMA may move its data at any time between its start and its wait: as late as possible by default, or at
    its start with `eager`.
    """
    return tpu.InterpretParams(detect_races=races, dma_execution_mode="eager" if eager else "on_wait")


def neighbors(axis: str) -> tuple[Place, Place]:
    """Return the devices to the left and to the right on a mesh axis, which is treated as a ring."""
    me, n = jax.lax.axis_index(axis), jax.lax.axis_size(axis)
    return _device_at(axis, (me + n - 1) % n), _device_at(axis, (me + 1) % n)


def barrier(*devices: Place) -> None:
    """Wait until all of these devices have entered the kernel, so that writing to their memory is safe."""
    # the semaphore that all kernels with this `collective_id` share; it must be 0 again at the end
    semaphore = tpu.get_barrier_semaphore()
    for device in devices:
        pallas.semaphore_signal(semaphore, 1, device_id=device)
    pallas.semaphore_wait(semaphore, len(devices))


def _device_at(axis: str, position: jax.Array) -> Place:
    """Return the device at a position on this axis that shares this device's position on all other axes."""
    names = jax.sharding.get_abstract_mesh().axis_names
    return tuple(position if name == axis else jax.lax.axis_index(name) for name in names)
