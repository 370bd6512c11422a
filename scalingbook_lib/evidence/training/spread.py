"""How much the error of a predicted step grows with a plan's distance from measured plans.

Each published run is set against the runs of other sources with a similar shape: d are the squared doublings
by which its degrees lie outside theirs. The squared logarithm of its error without its source is taken to be
a + b · d. A source with n runs has weight √n. Chapter: Training Llama 3.
"""

from collections.abc import Callable, Iterator
from math import log, sqrt
from typing import NamedTuple

from scalingbook_lib.calibrated.measured_plans import DEGREES, MeasuredPlan, Shape, ranges
from scalingbook_lib.calibrated.pessimistic import PlanSpread
from scalingbook_lib.evidence.measured.training_runs import TrainingRun, runs
from scalingbook_lib.evidence.measured.training_runs.read import read
from scalingbook_lib.evidence.resources import grouped, rows
from scalingbook_lib.evidence.training.candidate_plans import candidates
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.evidence.training.scores import scores, source
from scalingbook_lib.training.plan import PLAN_FIELDS, Plan

FARTHEST = 4.0  # squared doublings: errors of rarer plans are too few to count for more


class Extrapolated(NamedTuple):
    """A run's source, its squared doublings outside other sources' runs, and its squared error."""

    source: str
    doublings: float
    squared_error: float


def known_runs() -> tuple[TrainingRun, ...]:
    """The published runs whose degrees are known: those of the table, and later rows that leave none open."""
    later = (candidates(row, read(row)) for row in rows("added_training_runs"))
    alone = (found[0] for found in later if len({_degrees(run) for run in found}) == 1)
    return (*runs(), *runs("held-out"), *alone)


def _degrees(run: TrainingRun) -> tuple[int, ...]:
    return tuple(getattr(run, name) for name in DEGREES)


def measured_plan(run: TrainingRun) -> MeasuredPlan:
    """The plan of a run as a search knows it."""
    plan = planned(run).plan
    default = Plan()
    fields = {name: getattr(plan, name) for name in PLAN_FIELDS if name not in ("fsdp", "dp", "dcn")}
    kept = {
        name: value
        for name, value in fields.items()
        if value != getattr(default, name) and isinstance(value, int | float | str)
    }
    return MeasuredPlan(
        id=run.id,
        model=run.model.name,
        chip=run.chip.name,
        shape=Shape.of(run.model, run.chips, run.T, plan.frozen),
        mfu=round(run.mfu, 3),
        plan=kept,
    )


def measured_plans() -> tuple[MeasuredPlan, ...]:
    """Every distinct plan of a published run with known degrees, at the highest MFU that it reached."""
    found: dict[tuple[object, ...], MeasuredPlan] = {}
    for run in known_runs():
        one = measured_plan(run)
        key = one.model, one.chip, one.shape.chips, one.shape.T, *sorted(one.plan.items())
        if key not in found or found[key].mfu < one.mfu:
            found[key] = one
    return tuple(sorted(found.values(), key=lambda one: one.id))


def extrapolated(experts: bool) -> Iterator[Extrapolated]:
    """Every run with its distance from other sources' runs, where some have a similar shape."""
    found = [(score, measured_plan(score.run)) for score in scores() if score.run.experts == experts]
    for score, plan in found:
        others = [other for one, other in found if source(one.run) != source(score.run)]
        measured = ranges(plan.shape, others)
        if measured.runs:
            degrees = {name: plan.degree(name) for name in (*DEGREES, "microbatch")}
            doublings = min(measured.doublings(**degrees), FARTHEST)
            yield Extrapolated(source(score.run), doublings, log(score.leave_one_out / score.published) ** 2)


def spread(experts: bool) -> PlanSpread:
    """The spread of dense models or of models with experts.

    a is the mean squared error of the runs inside, b what those outside have more for each squared doubling.
    Errors of models with experts are so large everywhere that they do not grow: dense models' b stands in.
    """
    found = [*extrapolated(experts)]
    sources = grouped(found, lambda one: one.source)

    def average(runs: list[Extrapolated], of: Callable[[Extrapolated], float]) -> float:
        weights = [1 / sqrt(len(sources[one.source])) for one in runs]
        return sum(w * of(one) for w, one in zip(weights, runs, strict=True)) / sum(weights)

    inside = average([one for one in found if not one.doublings], lambda one: one.squared_error)
    far = [one for one in found if one.doublings]
    more = average(far, lambda one: one.squared_error) - inside
    slope = more / average(far, lambda one: one.doublings)
    return PlanSpread(
        inside=round(sqrt(inside), 3),
        doubling=spread(False).doubling if experts and slope <= 0 else round(sqrt(max(slope, 0.0)), 3),
        runs=len(found),
        sources=len(sources),
    )
