"""How far the count of a chip's memory is off, and the headroom that a plan therefore needs.

The library counts the tensors of a step. A chip holds more: the context of the framework, the buffers of NCCL
and fragments between allocations. Software also keeps other tensors than the count assumes.
`tools.memory_margins` records the ratio of held over counted bytes, from printed peaks and from compiled
programs, and by how much the counts of published runs exceed the HBM in which they ran. Chapter: Training.
"""

from dataclasses import dataclass
from functools import cache
from math import exp, log
from statistics import NormalDist

from scalingbook_lib.calibrated import records
from scalingbook_lib.machines import Chip
from scalingbook_lib.units import Result, percent

FITS_WITH = 0.9  # the probability with which a recommended plan fits


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryMargin(Result):
    """Held over counted bytes under one software: lognormal, with this median and standard deviation.

    `measured` setups determine them. `error` is the share of the HBM by which the count of a published run
    may exceed it: all but 3% of `runs` stay below.
    """

    software: str
    median: float
    deviation: float
    measured: int
    error: float
    runs: int

    def probability(self, counted: float, hbm_bytes: float) -> float:
        """The probability that a plan of so many counted bytes fits."""
        return NormalDist(log(self.median), self.deviation).cdf(log(hbm_bytes / counted))

    @property
    def headroom(self) -> float:
        """The share of a chip's HBM that a plan leaves free in order to fit with a probability of 90%."""
        factor = exp(log(self.median) + self.deviation * NormalDist().inv_cdf(FITS_WITH))
        return 1 - 1 / factor

    def __str__(self) -> str:
        return (
            f"Under {self.software}, a chip holds {self.median:.2f} times the counted bytes, with a standard "
            f"deviation of {percent(self.deviation)} ({self.measured} setups). A plan that leaves "
            f"{percent(self.headroom)} of the HBM free fits with a probability of {percent(FITS_WITH)}."
        )


@cache
def memory_margin(chip: Chip) -> MemoryMargin:
    """The recorded margin of a chip's usual software: XLA on a TPU, else PyTorch."""
    return MemoryMargin(**records.record("memory_margins")["XLA" if chip.torus else "PyTorch"])
