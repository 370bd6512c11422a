"""Time functions on this machine's devices, and compare the times with rooflines.

Simulated devices share one CPU, so their times mean nothing, and a `Timing` says so.
"""

import statistics
import time as clock
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from scalingbook_lab import devices as lab_devices
from scalingbook_lab.devices import Devices
from scalingbook_lib.roofline import Roofline
from scalingbook_lib.rules import ridge_point
from scalingbook_lib.units import FP32, Result, si

SAMPLE_S = 2e-3  # in a shorter sample the clock's resolution dominates


@dataclass(frozen=True, slots=True)
class Timing(Result):
    """The time of one call in seconds: the median, the middle half and the minimum of several samples."""

    median_s: float
    low_s: float
    high_s: float
    best_s: float
    samples: int
    calls: int
    device: Devices

    @property
    def spread(self) -> float:
        """The width of the middle half of the samples, relative to the median."""
        return (self.high_s - self.low_s) / self.median_s

    @property
    def meaningful(self) -> bool:
        """Whether the devices run at their own speed, which simulated devices do not."""
        return not self.device.simulated

    def beside(self, roofline: Roofline) -> "MeasuredOperation":
        """Compare this time with the roofline of the same work."""
        return MeasuredOperation(self, roofline)

    def __str__(self) -> str:
        spread_note = (
            f"{si(self.low_s, 's')} to {si(self.high_s, 's')} for the middle half of {self.samples} samples"
        )
        caveat = "" if self.meaningful else "; the devices are simulated, so this time means nothing"
        return f"{si(self.median_s, 's')} ({spread_note}){caveat}"


@dataclass(frozen=True, slots=True)
class MeasuredOperation(Result):
    """A measured time, and the lower bound that a roofline sets for it."""

    timing: Timing
    roofline: Roofline

    @property
    def fraction(self) -> float:
        """The achieved fraction of the attainable speed; 1 is the roofline itself."""
        return self.roofline.lower_s / self.timing.median_s

    @property
    def flops_per_s(self) -> float:
        """The measured FLOPs per second."""
        return self.roofline.flops / self.timing.median_s

    @property
    def bytes_per_s(self) -> float:
        """The measured bytes per second."""
        return self.roofline.bytes / self.timing.median_s

    def __str__(self) -> str:
        bound = f"{si(self.roofline.lower_s, 's')}, {self.roofline.bound}"
        return f"measured {self.timing}; the roofline says {bound}: {self.fraction:.0%} of it attained"


@dataclass(frozen=True, slots=True)
class Machine(Result):
    """The measured fp32 rates of this machine's first device.

    C is the FLOP/s of a matmul, and W the bytes/s of an addition to a long array.
    """

    device: Devices
    flops_per_s: float
    bytes_per_s: float

    @property
    def ridge(self) -> float:
        """The arithmetic intensity, in FLOPs per byte, above which the machine is compute-bound: C / W."""
        return ridge_point(self.flops_per_s, self.bytes_per_s)

    def operation(self, flops: float, nbytes: float) -> Roofline:
        """Return the roofline of an operation on this machine."""
        return Roofline(flops=flops, bytes=nbytes, flops_per_s=self.flops_per_s, bytes_per_s=self.bytes_per_s)

    def matmul(self, B: int, D: int, F: int) -> Roofline:
        """Return the roofline of X[B, D] · W[D, F] → Y[B, F] in fp32 on this machine."""
        return self.operation(2 * B * D * F, FP32.bytes * (B * D + D * F + B * F))

    def __str__(self) -> str:
        rates = f"{si(self.flops_per_s, 'FLOPs/s')} in fp32 and {si(self.bytes_per_s, 'B/s')}"
        return f"{self.device.kind.upper()}: {rates}, so compute-bound above {self.ridge:.3g} FLOPs per byte"


def time(fn: Callable, *args: Any, samples: int = 11, min_sample_s: float = SAMPLE_S) -> Timing:
    """Time one call of `fn` after compilation and warm-up.

    Each sample consists of as many calls as together take `min_sample_s`. `fn` is called as it is: wrap it in
    `jax.jit` first, or the time will be that of Python dispatching one operation after another.
    """
    out = jax.block_until_ready(fn(*args))
    calls, sample_s = 1, _sample(fn, args, 1)
    while sample_s < min_sample_s and calls < 2**20:
        calls = max(2 * calls, min(2**20, int(calls * min_sample_s / max(sample_s, 1e-9)) + 1))
        sample_s = _sample(fn, args, calls)
    sample_times = [_sample(fn, args, calls) / calls for _ in range(max(samples, 2))]
    low, median, high = statistics.quantiles(sample_times, n=4, method="inclusive")
    return Timing(median, low, high, min(sample_times), len(sample_times), calls, _device_of(out))


def machine(*, size: int = 2048, stream_bytes: float = 2**28) -> Machine:
    """Measure C (FLOPs/s) and W (bytes/s) of this machine's first real device, for its roofline."""
    first = jax.devices()[0]
    matrix = jax.device_put(jnp.ones((size, size), jnp.float32), first)
    vector = [jax.device_put(jnp.ones(int(stream_bytes / FP32.bytes), jnp.float32), first)]
    add_in_place = jax.jit(
        lambda x: x + 1, donate_argnums=0
    )  # timing a newly allocated result would include its page faults

    def stream() -> jax.Array:
        vector[0] = add_in_place(vector[0])
        return vector[0]

    product = time(jax.jit(jnp.matmul), matrix, matrix, samples=5)
    moved_bytes = 2 * FP32.bytes * vector[0].size  # read once, written once
    return Machine(
        lab_devices.describe([first]),
        2 * size**3 / product.best_s,
        moved_bytes / time(stream, samples=5).best_s,
    )


def _sample(fn: Callable, args: tuple[Any, ...], calls: int) -> float:
    """Return the seconds that this many consecutive calls take, until the last result is ready."""
    out, start = None, clock.perf_counter()
    for _ in range(calls):
        out = fn(*args)
    jax.block_until_ready(out)
    return clock.perf_counter() - start


def _device_of(out: Any) -> Devices:
    """Return the devices that hold the result."""
    arrays = [leaf for leaf in jax.tree.leaves(out) if isinstance(leaf, jax.Array)]
    return lab_devices.describe([*arrays[0].sharding.device_set] if arrays else jax.devices()[:1])
