"""The chip-hours of published whole runs over those of their plans.

A plan consists of equal steps in the best split. A whole run costs more: its software and its split are
slower, and it has restarts and recomputed steps, stages at other sequence lengths, a batch that grows at
first, evaluation and failed starts. Chapter: Training Llama 3.
"""

from dataclasses import dataclass, replace
from functools import cache

from scalingbook_lib.calibrated import records
from scalingbook_lib.training import PlannedRun
from scalingbook_lib.units import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipHourOverhead(Result):
    """Published over planned chip-hours: `factor`, the geometric mean over sources, and its parts.

    `slower_steps` · `other_overheads` is `factor`; `other_overheads` comes from the runs that also print
    their step time. `interval_factor`, up or down, is to cover 80% of the runs of an unseen source.
    `leave_one_out_error` is the mean error of runs whose source was left out.
    """

    date: str
    runs: int
    factor: float
    interval_factor: float
    slower_steps: float
    other_overheads: float
    leave_one_out_error: float

    def of(self, run: PlannedRun) -> PlannedRun:
        """The run with its time multiplied by `factor`, as it is likely to be reported."""
        return replace(run, seconds=run.seconds * self.factor)

    def __str__(self) -> str:
        return (
            f"in {self.runs} published runs, the reported chip-hours were {self.factor:.2f} times those of "
            f"the best plan, on average: {self.slower_steps:.2f} for slower steps, times "
            f"{self.other_overheads:.2f} for restarts, other stages and evaluation; eight out of ten runs "
            f"are within a factor of {self.interval_factor:.2f} of that"
        )


@cache
def chip_hour_overhead() -> ChipHourOverhead:
    """The overhead that `tools.cost_report` recorded."""
    return ChipHourOverhead(**records.record("chip_hour_overhead"))
