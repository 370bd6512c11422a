"""Finds by how much an input must change for a different plan or layout to become the best."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from scalingbook_cli import plan, serve
from scalingbook_cli.parameter_types import written_fields
from scalingbook_cli.workbench.answers import read
from scalingbook_cli.workbench.setup import WorkbenchSetup
from scalingbook_lib import inference, planner, training
from scalingbook_lib.machines import Machine
from scalingbook_lib.units import Result

FACTORS = (1.25, 0.8, 1.5, 1 / 1.5, 2.0, 0.5, 4.0, 0.25)  # the nearest first
RATES = ("compute", "HBM", "HBM capacity", "links")
LABELS = {
    "compute": "Compute rate",
    "HBM": "HBM bandwidth",
    "HBM capacity": "HBM capacity",
    "links": "Interconnect bandwidth",
    "batch": "Global batch size",
    "prompt": "Prompt length",
}
LENGTHS = {"plan": "batch", "serve": "prompt"}
TYPED = ("model", "machine", "batch", "T", "efficiency")
CLOSE = 0.01  # a way that is so little worse is as good
type Way = training.Plan | inference.Layout
type Cost = Callable[[Way], float | None]  # of a way, as a multiple of the best; None where it is impossible
type Search = Callable[[float], tuple[Way, Cost]]


@dataclass(frozen=True, slots=True)
class Flip(Result):
    """The factor of an input at which the choice changes; `factor` is None if none up to 4 does."""

    what: str
    factor: float | None
    changed: str = ""
    lost: float | None = None  # by the way that was best; None where it is then impossible

    def __str__(self) -> str:
        if self.factor is None:
            return f"{LABELS[self.what]}: the best choice stays the same from 0.25× to 4×."
        lost = "is no longer possible" if self.lost is None else f"is {self.lost:.0%} worse"
        changed = f"the best choice changes to {self.changed}, and the current one {lost}"
        return f"{LABELS[self.what]} at {self.factor:.3g}×: {changed}."


def inputs(command: str) -> tuple[str, ...]:
    """The inputs of a command that can be varied."""
    return (LENGTHS[command], *RATES)


def flip(setup: WorkbenchSetup, command: str, what: str) -> Flip:
    """The nearest factor of an input at which another choice is better by more than 1%."""
    searched = (_training if command == "plan" else _serving)(setup, what)
    now, _ = searched(1.0)
    for factor in FACTORS:
        try:
            then, cost = searched(factor)
        except ValueError:  # nothing is possible there
            continue
        before = cost(now)
        if then != now and (before is None or before > 1 + CLOSE):
            return Flip(what, factor, _changed(now, then), None if before is None else 1 - 1 / before)
    return Flip(what, None)


def _changed(now: Way, then: Way) -> str:
    parts = [f.name for f in fields(now) if getattr(now, f.name) != getattr(then, f.name)]
    return ", ".join(f"{name} {getattr(then, name)} instead of {getattr(now, name)}" for name in parts)


def _training(setup: WorkbenchSetup, what: str) -> Search:
    typed = read(setup, "plan")
    fixed = written_fields(
        {f.name: typed[f.name] for f in fields(training.Plan) if f.name in typed}, typed["machine"].chip
    )
    now = plan.PlanRequest.read(**{name: typed[name] for name in TYPED}, fixed=fixed)

    def search(factor: float) -> tuple[Way, Cost]:
        asked = replace(now, machine=_scaled(now.machine, what, factor))
        if what == "batch":
            asked = replace(asked, batch=max(round(now.batch * factor), 1))
        how: dict[str, Any] = {"batch": asked.batch, "T": asked.T}
        found = asked.recommend(fixed, 1)
        best = found.winner

        def cost(way: Way) -> float | None:
            assert isinstance(way, training.Plan)
            if training.feasible(asked.model, asked.machine, way, headroom=found.headroom, **how):
                return None
            step = training.step(asked.model, asked.machine, way, efficiency=asked.efficiency, **how)
            return found.ranking.objective(step) / best.objective_s

        return best.plan, cost

    return search


def _serving(setup: WorkbenchSetup, what: str) -> Search:
    typed = read(setup, "serve")
    fixed = written_fields(
        {f.name: typed[f.name] for f in fields(inference.Layout) if f.name in typed}, typed["machine"].chip
    )
    now = serve.ServeRequest.of(typed)
    itl_s = typed["itl_s"]

    def search(factor: float) -> tuple[Way, Cost]:
        asked = replace(now, machine=_scaled(now.machine, what, factor))
        if what == "prompt":
            asked = replace(asked, P=max(round(now.P * factor), 1))
        found = asked.front(fixed, itl_s=itl_s)
        if not found.points:
            raise ValueError(str(found))

        def cost(way: Way) -> float | None:
            assert isinstance(way, inference.Layout)
            alone = asked.front({f.name: getattr(way, f.name) for f in fields(way)}, itl_s=itl_s)
            return alone.best.cost / found.best.cost if alone.points else None

        return found.best.layout, cost

    return search


def _scaled(machine: Machine, what: str, factor: float) -> Machine:
    return planner.faster(machine, what, factor) if what in RATES else machine
