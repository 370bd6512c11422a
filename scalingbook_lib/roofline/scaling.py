"""Speedup, efficiency and the strong-scaling limit of data parallelism.

Every chip holds all weights and processes its share of the batch. Once per step, an AllReduce that overlaps
with the backward pass sums the gradients. Latency and memory are left out. Chapter: Introduction.
"""

from dataclasses import dataclass

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.rules import data_parallel_tokens, network_bytes_per_s
from scalingbook_lib.units import BF16, DType, Result, count, si


@dataclass(frozen=True, slots=True)
class ScalingStep(Result):
    """The time of one training step on n chips, by term, in seconds.

    `overlap` is the fraction, from 0 to 1, of the hideable AllReduce time that is hidden.
    """

    chips: float
    forward_s: float
    backward_s: float
    network_s: float
    overlap: float = 1.0

    @property
    def math_s(self) -> float:
        """The compute time of the forward and the backward pass in seconds."""
        return self.forward_s + self.backward_s

    @property
    def exposed_s(self) -> float:
        """The seconds of the AllReduce that the backward pass does not hide."""
        # at most the shorter of the two can be hidden
        return self.network_s - self.overlap * min(self.backward_s, self.network_s)

    @property
    def total_s(self) -> float:
        """The time of the step in seconds: compute plus the exposed part of the AllReduce."""
        return self.math_s + self.exposed_s

    @property
    def bound(self) -> str:
        """'network-bound' if the AllReduce takes longer than the backward pass, otherwise 'compute-bound'."""
        return "network-bound" if self.network_s > self.backward_s else "compute-bound"

    def __str__(self) -> str:
        terms = f"math {si(self.math_s, 's')}, AllReduce {si(self.network_s, 's')}"
        return f"{count(self.chips)} chips: {si(self.total_s, 's')}, {self.bound} ({terms})"


def data_parallel(
    P: float, B: float, n: float, chip: Chip, *, axes: int = 1, overlap: float = 1.0, dtype: DType = BF16
) -> ScalingStep:
    """One step with P parameters on each of n chips and B tokens in the global batch.

    The gradients have type `dtype` and are summed over `axes` torus axes.
    """
    flops_per_s = n * chip.flops_per_s(dtype)
    moved = (
        2 * (1 - 1 / n) * dtype.bytes * P
    )  # a reduce-scatter and an all-gather, each without the part a chip already has
    return ScalingStep(
        chips=n,
        forward_s=2 * P * B / flops_per_s,  # a multiply and an add per parameter per token
        # two matmuls of the same size: for the input gradient and for the weight gradient
        backward_s=4 * P * B / flops_per_s,
        network_s=moved / network_bytes_per_s(chip, axes=axes),
        overlap=overlap,
    )


def knee(B: float, chip: Chip, *, axes: int = 1) -> float:
    """The number of chips at which a step of B tokens turns network-bound: 1 + B · W / C.

    This solves 4 P B / (n C) = 2 (1 - 1/n) 2 P / W for n; the number of parameters cancels.
    """
    return 1 + B / data_parallel_tokens(chip, axes=axes)


def speedup(before_s: float, after_s: float) -> float:
    """Time on one chip over time on n chips, for the same work."""
    return before_s / after_s  # amdahl1967validity


def strong_efficiency(step: ScalingStep, one: ScalingStep) -> float:
    """Speedup per chip with the same global batch: 1 is perfect."""
    return speedup(one.total_s, step.total_s) * one.chips / step.chips


def weak_efficiency(step: ScalingStep, one: ScalingStep) -> float:
    """Time on one chip over time on n chips with n times the batch: 1 is perfect."""
    return one.total_s / step.total_s  # gustafson1988reevaluating
