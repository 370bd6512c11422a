"""What are the terms of an operation's time, and which is the longest?"""

import math
from dataclasses import dataclass

from scalingbook_lib.units import Told, at_least, percent, si


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline(Told):
    """One operation against one arithmetic rate and one bandwidth; every time follows from these figures."""

    flops: float
    bytes: float
    flops_per_s: float
    bytes_per_s: float
    latency_s: float = 0.0
    over: str = "memory"

    def __post_init__(self) -> None:
        if not (self.flops >= 0 and self.bytes >= 0 and self.latency_s >= 0):
            raise ValueError(
                f"{self.flops} FLOPs, {self.bytes} bytes, {self.latency_s} s: none may be negative"
            )
        if not (self.flops_per_s > 0 and self.bytes_per_s > 0):
            raise ValueError(f"{self.flops_per_s} FLOPs/s and {self.bytes_per_s} B/s: write positive rates")

    @property
    def math_s(self) -> float:
        """T_math: the time of the arithmetic alone."""
        return self.flops / self.flops_per_s

    @property
    def memory_s(self) -> float:
        """T_comms: the time of moving the bytes alone, over memory or, in a network roofline, over links."""
        return self.bytes / self.bytes_per_s

    @property
    def comms_s(self) -> float:
        """The same as `memory_s`, by the name it has where the bytes cross links."""
        return self.memory_s

    @property
    def lower_s(self) -> float:
        """The time if everything overlaps: the longest term."""
        return max(self.math_s, self.memory_s, self.latency_s)

    @property
    def upper_s(self) -> float:
        """The time if nothing overlaps: the sum of the terms."""
        return self.math_s + self.memory_s + self.latency_s

    @property
    def intensity(self) -> float:
        """FLOPs for every byte moved; inf where nothing moves."""
        return self.flops / self.bytes if self.bytes else math.inf

    @property
    def ridge(self) -> float:
        """The intensity at which math and memory take equally long."""
        return self.flops_per_s / self.bytes_per_s

    @property
    def bound(self) -> str:
        """The longest term: 'compute-bound', 'memory-bound' (or 'network-bound'), 'latency-bound'."""
        # a launch or a hop beside which the other two are short: neither faster math nor memory helps
        if self.latency_s > max(self.math_s, self.memory_s):
            return "latency-bound"
        return "compute-bound" if self.math_s >= self.memory_s else f"{self.over}-bound"

    @property
    def attained_flops_per_s(self) -> float:
        """The FLOP/s that are reached if everything overlaps."""
        return self.flops / self.lower_s if self.lower_s else 0.0

    @property
    def attained_fraction(self) -> float:
        """The share of the peak that is reached if everything overlaps: min(1, intensity / ridge)."""
        return self.math_s / self.lower_s if self.lower_s else 0.0

    def __str__(self) -> str:
        late = f", latency {si(self.latency_s, 's')}" if self.latency_s else ""
        return (
            f"{self.bound}: math {si(self.math_s, 's')}, {self.over} {si(self.memory_s, 's')}{late}, "
            f"so at best {percent(self.attained_fraction)} of the peak"
        )


def overlapped(math_s: float, comms_s: float, hidden: float) -> float:
    """The time if a share `hidden` of the shorter term hides behind the longer: 1 is the max, 0 the sum."""
    if not 0 <= hidden <= 1:
        raise ValueError(f"hidden={hidden} is no share; write a number from 0 (nothing overlaps) to 1")
    # no more than the shorter term can hide
    return math_s + comms_s - hidden * min(math_s, comms_s)


def pipelined(math_s: float, comms_s: float, chunks: int) -> float:
    """The time in equal chunks, each copied while the one before is computed.

    The longer term in full, and one chunk of the shorter, which nothing hides.
    """
    at_least(1, chunks=chunks)
    # n - 1 of the n chunks of the shorter term run beside the longer one
    return overlapped(math_s, comms_s, 1 - 1 / chunks)
