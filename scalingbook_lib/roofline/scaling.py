"""Speed-up, efficiency and the strong-scaling limit of data parallelism.

Every chip holds all weights and processes its share of the batch. Once per step, an AllReduce that overlaps
with the backward pass sums the gradients. Latency and memory are left out. Chapter: Introduction.
"""

from dataclasses import dataclass

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.rules import data_parallel_tokens, network_bytes_per_s
from scalingbook_lib.units import BF16, DType, Result, count, si


@dataclass(frozen=True, slots=True)
class ScalingStep(Result):
    """One training step on n chips, by term. `overlap` is the fraction hidden of what could be, 0 to 1."""

    chips: float
    forward_s: float
    backward_s: float
    network_s: float
    overlap: float = 1.0

    @property
    def math_s(self) -> float:
        """Compute time of the forward and the backward pass."""
        return self.forward_s + self.backward_s

    @property
    def exposed_s(self) -> float:
        """The part of the AllReduce that the backward pass does not hide."""
        # no more than the shorter of the two can be hidden
        return self.network_s - self.overlap * min(self.backward_s, self.network_s)

    @property
    def total_s(self) -> float:
        """The time of the step: compute plus the exposed part of the AllReduce."""
        return self.math_s + self.exposed_s

    @property
    def bound(self) -> str:
        """'network-bound' where the AllReduce takes longer than the backward pass."""
        return "network-bound" if self.network_s > self.backward_s else "compute-bound"

    def __str__(self) -> str:
        terms = f"math {si(self.math_s, 's')}, AllReduce {si(self.network_s, 's')}"
        return f"{count(self.chips)} chips: {si(self.total_s, 's')}, {self.bound} ({terms})"


def data_parallel(
    P: float, B: float, n: float, chip: Chip, *, axes: int = 1, overlap: float = 1.0, dtype: DType = BF16
) -> ScalingStep:
    """P parameters on each of n chips, B tokens a step in all, gradients of `dtype` summed over the chips."""
    flops_per_s = n * chip.flops_per_s(dtype)
    moved = (
        2 * (1 - 1 / n) * dtype.bytes * P
    )  # a reduce-scatter and an all-gather, less what is there already
    return ScalingStep(
        chips=n,
        forward_s=2 * P * B / flops_per_s,  # a multiply and an add per parameter and token
        backward_s=4 * P * B / flops_per_s,  # two products of the same size: for the input, for the weights
        network_s=moved / network_bytes_per_s(chip, axes=axes),
        overlap=overlap,
    )


def knee(B: float, chip: Chip, *, axes: int = 1) -> float:
    """The number of chips at which a step of B tokens turns network-bound: exactly 1 + B · W / C.

    4 P B / (n C) = 2 (1 - 1/n) 2 P / W, solved for n: the parameters cancel.
    """
    return 1 + B / data_parallel_tokens(chip, axes=axes)


def speedup(before_s: float, after_s: float) -> float:
    """Time on one chip over time on n chips, for the same work."""
    return before_s / after_s  # amdahl1967validity


def strong_efficiency(step: ScalingStep, one: ScalingStep) -> float:
    """Speed-up per chip with the same batch: 1 is perfect."""
    return speedup(one.total_s, step.total_s) * one.chips / step.chips


def weak_efficiency(step: ScalingStep, one: ScalingStep) -> float:
    """Time on one chip over time on n chips with n times the batch: 1 is perfect."""
    return one.total_s / step.total_s  # gustafson1988reevaluating
