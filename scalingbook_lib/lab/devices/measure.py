"""How long does it really take on this device, and how near is that to the roofline?

Simulated devices share one CPU: their times mean nothing, and a Timing says so.
"""

import statistics
import time as clock
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from scalingbook_lib.lab import devices as lab_devices
from scalingbook_lib.lab.devices import Devices
from scalingbook_lib.roofline import Roofline
from scalingbook_lib.rules import ridge_point
from scalingbook_lib.units import FP32, Result, si

SAMPLE_S = 2e-3  # a sample shorter than this says more about the clock than about the device


@dataclass(frozen=True, slots=True)
class Timing(Result):
    """The time of one call: the median of several samples, their middle half, the best, and the devices."""

    median_s: float
    low_s: float
    high_s: float
    best_s: float
    samples: int
    calls: int
    device: Devices

    @property
    def spread(self) -> float:
        """The middle half of the samples, relative to the median."""
        return (self.high_s - self.low_s) / self.median_s

    @property
    def meaningful(self) -> bool:
        """Do these devices run at a speed of their own?"""
        return not self.device.simulated

    def beside(self, roofline: Roofline) -> "MeasuredOperation":
        """This time beside the roofline of the same work."""
        return MeasuredOperation(self, roofline)

    def __str__(self) -> str:
        within = (
            f"{si(self.low_s, 's')} to {si(self.high_s, 's')} for the middle half of {self.samples} samples"
        )
        doubt = "" if self.meaningful else "; the devices are simulated, so this time means nothing"
        return f"{si(self.median_s, 's')} ({within}){doubt}"


@dataclass(frozen=True, slots=True)
class MeasuredOperation(Result):
    """A measured time beside the bound that a roofline sets."""

    timing: Timing
    roofline: Roofline

    @property
    def fraction(self) -> float:
        """The share of the attainable speed that was attained: 1 is the roofline itself."""
        return self.roofline.lower_s / self.timing.median_s

    @property
    def flops_per_s(self) -> float:
        """The rate of arithmetic that was attained."""
        return self.roofline.flops / self.timing.median_s

    @property
    def bytes_per_s(self) -> float:
        """The rate of bytes that was attained."""
        return self.roofline.bytes / self.timing.median_s

    def __str__(self) -> str:
        bound = f"{si(self.roofline.lower_s, 's')}, {self.roofline.bound}"
        return f"measured {self.timing}; the roofline says {bound}: {self.fraction:.0%} of it attained"


@dataclass(frozen=True, slots=True)
class Machine(Result):
    """What this machine's first device was seen to do in fp32: C in a matmul, W adding to a long array."""

    device: Devices
    flops_per_s: float
    bytes_per_s: float

    @property
    def ridge(self) -> float:
        """The FLOPs for every byte above which it is compute-bound."""
        return ridge_point(self.flops_per_s, self.bytes_per_s)

    def operation(self, flops: float, nbytes: float) -> Roofline:
        """The roofline of any operation on this machine."""
        return Roofline(flops=flops, bytes=nbytes, flops_per_s=self.flops_per_s, bytes_per_s=self.bytes_per_s)

    def matmul(self, B: int, D: int, F: int) -> Roofline:
        """X[B, D] · W[D, F] → Y[B, F] in fp32 on this machine."""
        return self.operation(2 * B * D * F, FP32.bytes * (B * D + D * F + B * F))

    def __str__(self) -> str:
        rates = f"{si(self.flops_per_s, 'FLOPs/s')} in fp32 and {si(self.bytes_per_s, 'B/s')}"
        return f"{self.device.kind.upper()}: {rates}, so compute-bound above {self.ridge:.3g} FLOPs per byte"


def time(fn: Callable, *args: Any, samples: int = 11, least_s: float = SAMPLE_S) -> Timing:
    """Time one call of `fn`: warmed up and compiled, waited for, repeated until the clock can tell.

    Each sample is as many calls as take `least_s` together. `fn` is called as it is: wrap it in `jax.jit`
    first, or what is timed is Python handing out one operation after another.
    """
    out = jax.block_until_ready(fn(*args))
    calls, took = 1, _sample(fn, args, 1)
    while took < least_s and calls < 2**20:
        calls = max(2 * calls, min(2**20, int(calls * least_s / max(took, 1e-9)) + 1))
        took = _sample(fn, args, calls)
    each = [_sample(fn, args, calls) / calls for _ in range(max(samples, 2))]
    low, median, high = statistics.quantiles(each, n=4, method="inclusive")
    return Timing(median, low, high, min(each), len(each), calls, _device_of(out))


def machine(*, size: int = 2048, stream_bytes: float = 2**28) -> Machine:
    """Measure this machine's first real device: the book's C and W, for a roofline of its own."""
    first = jax.devices()[0]
    square = jax.device_put(jnp.ones((size, size), jnp.float32), first)
    long = [jax.device_put(jnp.ones(int(stream_bytes / FP32.bytes), jnp.float32), first)]
    add_in_place = jax.jit(
        lambda x: x + 1, donate_argnums=0
    )  # a fresh result would be timed for its page faults

    def stream() -> jax.Array:
        long[0] = add_in_place(long[0])
        return long[0]

    product = time(jax.jit(jnp.matmul), square, square, samples=5)
    moved = 2 * FP32.bytes * long[0].size  # read once, written once
    return Machine(
        lab_devices.told([first]), 2 * size**3 / product.best_s, moved / time(stream, samples=5).best_s
    )


def _sample(fn: Callable, args: tuple[Any, ...], calls: int) -> float:
    """The seconds that so many calls take one after the other, the last one's result waited for."""
    out, start = None, clock.perf_counter()
    for _ in range(calls):
        out = fn(*args)
    jax.block_until_ready(out)
    return clock.perf_counter() - start


def _device_of(out: Any) -> Devices:
    """The devices that hold the result."""
    arrays = [leaf for leaf in jax.tree.leaves(out) if isinstance(leaf, jax.Array)]
    return lab_devices.told([*arrays[0].sharding.device_set] if arrays else jax.devices()[:1])
