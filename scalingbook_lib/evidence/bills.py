"""How many more chip-hours does a whole run take than its plan? What the bills of published runs add.

A plan is steps, one like another, in the best split. A bill has more: the steps of the software and the split
that were used, and what is no such step: restarts and what is done again after them, stages at other lengths,
a batch that grows at first, evaluation, failed starts. Chapter: Training LLaMA 3.
"""

from dataclasses import dataclass, replace
from functools import cache

from scalingbook_lib.evidence import resources
from scalingbook_lib.training import PlannedRun
from scalingbook_lib.units import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill(Result):
    """Published chip-hours over planned ones: the geometric mean over sources, and what it is made of.

    `steps` · `besides` is `factor`; `besides` is known from the runs that print the time of their steps, too.
    `within`, up or down, shall hold four in five of the runs of a source that nobody has seen.
    """

    date: str
    runs: int
    factor: float
    within: float
    steps: float
    besides: float
    left_out: float  # the mean error of runs whose source the factor never saw

    def of(self, run: PlannedRun) -> PlannedRun:
        """The same run as its bill would come."""
        return replace(run, seconds=run.seconds * self.factor)

    def __str__(self) -> str:
        parts = f"{self.steps:.2f} (slower steps) · {self.besides:.2f} (restarts, other stages, evaluation)"
        return (
            f"bills of {self.runs} published runs are {self.factor:.2f} = {parts} times such plans, "
            f"within a factor of {self.within:.2f}"
        )


@cache
def bill() -> Bill:
    """As `tools.bills` froze it in `bills.json`."""
    return Bill(**resources.record("bills"))
