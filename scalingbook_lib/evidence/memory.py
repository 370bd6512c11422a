"""What published runs say about the count of a chip's memory: printed peaks, and that every run fitted.

A few sources print the peak, from which `margin` takes the median ratio of held over counted bytes and its
deviation. Every run executed, so a count above the chip's HBM is too high, or the row leaves out what was
offloaded or computed again: `margin` allows for as much excess as all but 3% of the runs have. Chapter:
Training.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, exp, log
from statistics import mean, stdev

from scalingbook_lib.calibrated.memory_margin import MemoryMargin, memory_margin
from scalingbook_lib.evidence.measured.training_runs import TrainingRun, runs
from scalingbook_lib.evidence.training.candidate_plans import all_runs
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.training import TrainingCase, TrainingMemory
from scalingbook_lib.training.memory import compiled, memory, moments
from scalingbook_lib.units import Result, percent, si

REFUSED = 0.03  # the share of published runs that may be said not to fit


@dataclass(frozen=True, slots=True)
class CountedRun(Result):
    """A published run and the bytes that its plan is counted to hold on each chip."""

    run: TrainingRun
    counted: float

    @property
    def software(self) -> str:
        """Whose allocator it is: XLA's on a TPU, else PyTorch's."""
        return "XLA" if self.run.chip.torus else "PyTorch"

    @property
    def over(self) -> float:
        """Counted bytes over the chip's HBM, less 1."""
        return self.counted / self.run.chip.hbm_bytes - 1

    @property
    def measured(self) -> float | None:
        """Held over counted bytes, where the source prints the peak."""
        printed = self.run.memory_bytes
        return printed / self.counted if printed else None

    @property
    def refused(self) -> bool:
        """Whether the library would say that the plan does not fit."""
        return self.over > memory_margin(self.run.chip).error

    def __str__(self) -> str:
        return f"{self.run.id}: {si(self.counted, 'B')} counted, {percent(self.over)} over the HBM"


@cache
def counted_runs() -> tuple[CountedRun, ...]:
    """Every published run with a known plan."""
    return tuple(map(_counted, (*all_runs(), *runs("held-out"))))


def fullest_moments(run: TrainingRun) -> tuple[TrainingMemory, TrainingMemory, TrainingMemory]:
    """The memory of a chip at the three moments of a run's step that can be its peak."""
    p = planned(run)
    s = TrainingCase(p.model, p.machine, batch=run.batch, T=run.T).shape(p.plan)
    return moments(s, compiled(p.machine))


def peak_bytes(run: TrainingRun) -> float:
    """The bytes that the allocator of a chip reserves at most, which is what sources print as peak memory.

    XLA plans the buffers of a program, so its peak is that of the fullest moment. PyTorch's allocator
    returns blocks only when it must, so it reserves the maximum of every part over time.
    """
    each = fullest_moments(run)
    if run.chip.torus:
        return max(moment.total for moment in each)
    return sum(max(getattr(moment, part) for moment in each) for part in TrainingMemory.parts)


def _counted(run: TrainingRun) -> CountedRun:
    p = planned(run)
    return CountedRun(run, memory(p.model, p.plan, batch=run.batch, T=run.T, machine=p.machine).total)


def refused() -> tuple[CountedRun, ...]:
    """The published runs that the library would say do not fit: the count is wrong, or the row is."""
    return tuple(one for one in counted_runs() if one.refused)


def measured(software: str) -> list[float]:
    """Held over counted bytes of the published runs whose sources print the peak, each setup once."""
    found = {}
    for one in counted_runs():
        if one.software == software and one.measured:
            found[one.run.model.name, one.run.chips, one.run.T, one.run.variant] = one.measured
    return [*found.values()]


def margin(software: str, ratios: Sequence[float]) -> MemoryMargin:
    """The margin from ratios of held over counted bytes, and from the counts of the published runs."""
    logs = [log(ratio) for ratio in ratios]
    over = sorted(one.over for one in counted_runs() if one.software == software)
    return MemoryMargin(
        software=software,
        median=round(exp(mean(logs)), 3),
        deviation=round(stdev(logs), 3),
        measured=len(ratios),
        error=round(max(over[ceil((1 - REFUSED) * len(over)) - 1], 0.0), 3),
        runs=len(over),
    )
