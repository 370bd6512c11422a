"""Would the planner have recommended what practitioners ran? The regret of published plans.

For every published run with a known plan on at least 256 chips, the planner searches for the best plan of the
same model, machine and batch, with the types and the software habits of the run. The regret is the predicted
step time of the published plan over that of the recommended one, less 1. A recommended plan may have a degree
that no run of a similar shape has only if its P80 is at least 10% better than that of every other plan
(`calibrated.pessimistic`). Chapter: Training Llama 3.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from scalingbook_lib import planner
from scalingbook_lib.calibrated.factors import record
from scalingbook_lib.calibrated.memory_margin import memory_margin
from scalingbook_lib.calibrated.pessimistic import Pessimistic
from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.evidence.scores import quantile, signed
from scalingbook_lib.evidence.training.efficiencies import efficiency_of
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.evidence.training.spread import known_runs
from scalingbook_lib.planner import Ranked
from scalingbook_lib.training import TrainingStep, step
from scalingbook_lib.units import Result, percent

FEWEST_CHIPS = 256
HABITS = (
    "dcn",
    "sequence_parallel",
    "collective_matmul",
    "context",
    "prefetch",
    "frozen",
    "weights",
    "compute",
    "activations",
    "gradients",
    "master",
    "logit_bytes",
    "expert_domains",
)
"""Fields of a plan that belong to the software, which a search for another split keeps."""


@dataclass(frozen=True, slots=True)
class Regret(Result):
    """A published run, the predicted step of its plan, and the recommended plan of the same question."""

    run: TrainingRun
    published: TrainingStep
    best: Ranked
    objective: Pessimistic

    @property
    def regret(self) -> float:
        """Predicted time of the published plan over that of the recommended one, less 1."""
        return self.published.total_s / self.best.step.total_s - 1

    @property
    def outside(self) -> tuple[str, ...]:
        """The degrees of the recommended plan that no published run of a similar shape has."""
        return self.objective.outside(self.best.plan)

    def __str__(self) -> str:
        return (
            f"{self.run.id}: {self.published.plan} is predicted to take {percent(1 + self.regret)} of the "
            f"time of {self.best.plan}"
        )


@dataclass(frozen=True, slots=True)
class Regrets(Result):
    """The regrets of many runs; positive where the planner expects to be faster."""

    found: tuple[Regret, ...]

    @property
    def quantiles(self) -> dict[float, float]:
        """The regret that so large a share of the runs does not exceed."""
        regrets = sorted(one.regret for one in self.found)
        return {share: quantile(regrets, share) for share in (0.1, 0.25, 0.5, 0.75, 0.9)}

    @property
    def outside(self) -> tuple[Regret, ...]:
        """The runs for which the recommended plan has a degree outside the published range."""
        return tuple(one for one in self.found if one.outside)

    def __str__(self) -> str:
        told = ", ".join(
            f"{percent(share)} below {signed(regret)}" for share, regret in self.quantiles.items()
        )
        return f"regret of {len(self.found)} published plans: {told}"


def questions() -> tuple[TrainingRun, ...]:
    """One run for each model, machine, batch, precision, software and split on at least 256 chips."""
    found: dict[tuple[object, ...], TrainingRun] = {}
    for run in known_runs():
        p = planned(run)
        key = (
            p.model.name,
            run.chip.name,
            run.chips,
            run.T,
            run.batch,
            run.precision,
            run.software[:1],
            p.plan,
        )
        if run.chips >= FEWEST_CHIPS and not p.plan.frozen:
            found.setdefault(key, run)
    return tuple(found.values())


def regret(run: TrainingRun) -> Regret:
    """The regret of one published run."""
    p = planned(run)
    how: dict[str, Any] = {
        "batch": run.batch,
        "T": run.T,
        "efficiency": efficiency_of(record("training").values, run),
    }
    fixed = {name: getattr(p.plan, name) for name in HABITS if name != "expert_domains" or p.model.experts}
    objective = Pessimistic.of(p.model, run.chips, run.T)
    found = planner.plans(
        p.model,
        p.machine,
        fixed=fixed,
        tried={"microbatch": tuple(sorted({1, 2, 4, p.plan.microbatch}))},
        keep=1,
        headroom=memory_margin(run.chip).headroom,
        objective=objective,
        **how,
    )
    return Regret(run, step(p.model, p.machine, p.plan, **how), found.winner, objective)


def regrets(runs: Iterable[TrainingRun] | None = None) -> Regrets:
    """The regrets of these runs, by default of all `questions`; runs that no plan fits are left out."""
    return Regrets(tuple(_found(questions() if runs is None else runs)))


def _found(runs: Iterable[TrainingRun]) -> Iterator[Regret]:
    for run in runs:
        try:
            yield regret(run)
        except ValueError:  # no plan fits, or the published one has no mesh on the default machine
            continue
