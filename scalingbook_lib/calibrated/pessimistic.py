"""Ranks plans by a pessimistic step time: P80, the time that 80 in 100 steps by such plans do not exceed.

A prediction is less certain the further a plan is from those that were ever measured. The logarithm of the
time has the variance `inside`² + `doubling`² · d, where d are the squared doublings by which the degrees (TP,
CP, PP, EP and the microbatch) lie outside the range of published runs of a similar shape. Both were fitted to
the errors of published runs whose source was left out (`evidence.training.spread`).

Two rules break near ties as practitioners do. A plan with a degree outside the range has to be better by 10%,
and each kind of parallelism by 1%. Chapter: Training Llama 3.
"""

from dataclasses import dataclass
from functools import cache
from math import exp, sqrt
from statistics import NormalDist

from scalingbook_lib.calibrated import records
from scalingbook_lib.calibrated.measured_plans import MeasuredRanges, Shape, ranges
from scalingbook_lib.models import Transformer
from scalingbook_lib.training import Plan, TrainingStep
from scalingbook_lib.units import Result, percent

QUANTILE = 0.8
OUTSIDE = 1.1  # by how much a plan outside the measured ranges has to be better
PER_KIND = 1.01  # and a plan with one more kind of parallelism


@dataclass(frozen=True, slots=True)
class PlanSpread(Result):
    """Standard deviations of the logarithm of a step time: inside the measured ranges, and per doubling."""

    inside: float
    doubling: float
    runs: int
    sources: int

    def deviation(self, doublings: float) -> float:
        """That of a plan so many squared doublings outside the measured ranges."""
        return sqrt(self.inside**2 + self.doubling**2 * doublings)

    def __str__(self) -> str:
        return (
            f"errors of {self.runs} runs of {self.sources} sources, each left out: {percent(self.inside)} "
            f"inside the measured degrees, {percent(self.deviation(1.0))} one doubling outside"
        )


@cache
def plan_spread(experts: bool) -> PlanSpread:
    """The recorded spread of dense models, or of models with experts."""
    return PlanSpread(**records.record("plan_spread")["experts" if experts else "dense"])


@dataclass(frozen=True, slots=True)
class Pessimistic:
    """The objective of a search for a model at sequences of T tokens on so many chips."""

    spread: PlanSpread
    measured: MeasuredRanges

    @classmethod
    def of(cls, model: Transformer, chips: int, T: int, frozen: bool = False) -> "Pessimistic":
        """The objective for a question; `chips` are those of all pods, `frozen` weights are not trained."""
        return cls(plan_spread(model.experts is not None), ranges(Shape.of(model, chips, T, frozen)))

    def __call__(self, step: TrainingStep) -> float:
        """What plans are ranked by: P80, more for unusual degrees and for each kind of parallelism."""
        return step.total_s * self._factor(_degrees(step.plan))

    def p80(self, step: TrainingStep) -> float:
        """The seconds that 80 in 100 steps by such a plan do not exceed."""
        return step.total_s * self._p80_factor(self.doublings(step.plan))

    def doublings(self, plan: Plan) -> float:
        """How far a plan lies outside the measured ranges, in squared doublings."""
        return self.measured.doublings(**_degrees(plan))

    def outside(self, plan: Plan) -> tuple[str, ...]:
        """The degrees of a plan that no published run of a similar shape has."""
        degrees = _degrees(plan)
        return tuple(name for name, n in degrees.items() if self.measured.doublings(**{name: n}))

    def least_factor(self, *, tp: int, cp: int, pp: int, microbatch: int, ep: int | None = None) -> float:
        """The least factor of all plans with these degrees."""
        known = {"tp": tp, "cp": cp, "pp": pp, "microbatch": microbatch}
        return self._factor(known if ep is None else known | {"ep": ep})

    def _factor(self, degrees: dict[str, int]) -> float:
        doublings = self.measured.doublings(**degrees)
        kinds = sum(n > 1 for name, n in degrees.items() if name != "microbatch")
        return self._p80_factor(doublings) * (OUTSIDE if doublings else 1.0) * PER_KIND**kinds

    def _p80_factor(self, doublings: float) -> float:
        return exp(NormalDist().inv_cdf(QUANTILE) * self.spread.deviation(doublings))


def _degrees(plan: Plan) -> dict[str, int]:
    return {"tp": plan.tp, "cp": plan.cp, "pp": plan.pp, "microbatch": plan.microbatch, "ep": plan.ep}
