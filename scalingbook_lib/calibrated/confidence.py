"""How certain the time and the memory of a training step are: its P80, and whether it fits."""

from dataclasses import dataclass

from scalingbook_lib import training
from scalingbook_lib.calibrated.memory_margin import MemoryMargin, memory_margin
from scalingbook_lib.calibrated.pessimistic import Pessimistic
from scalingbook_lib.calibrated.recommendation import Published, published
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.training import Plan, TrainingEfficiency, TrainingStep
from scalingbook_lib.units import percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """How certain a step and its memory are, and the nearest published plan."""

    objective: Pessimistic
    margin: MemoryMargin
    headroom: float
    near: Published

    def fit(self, step: TrainingStep) -> str:
        """How likely the plan fits, or by how much the count may be off if it is too large."""
        total, hbm_bytes = step.memory.total, step.machine.chip.hbm_bytes
        if total > hbm_bytes:
            return f"our count is off by up to {percent(self.margin.error)} on published runs"
        return f"fits with a probability {_in_words(self.probability(step))}"

    def probability(self, step: TrainingStep) -> float:
        """The probability that a step fits, from the errors of the memory count."""
        return self.margin.probability(step.memory.total, step.machine.chip.hbm_bytes)


def _in_words(value: float) -> str:
    """Return a probability as a phrase: 'of 93%', 'above 99%'."""
    return "above 99%" if value > 0.99 else "below 1%" if value < 0.01 else f"of {percent(value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenStep:
    """The step of a plan as written, or the `reasons` why it cannot be; a plan that is too large has both."""

    plan: Plan
    reasons: tuple[str, ...]
    step: TrainingStep | None = None
    confidence: Confidence | None = None


def as_written(
    model: Transformer,
    machine: Machine,
    plan: Plan,
    *,
    batch: int,
    T: int,
    efficiency: TrainingEfficiency,
    headroom: float | None = None,
) -> WrittenStep:
    """The step of exactly this plan, which may exceed the HBM by the error of the memory count."""
    margin = memory_margin(machine.chip)
    left = -margin.error if headroom is None else headroom
    why = tuple(training.feasible(model, machine, plan, batch=batch, T=T, headroom=left))
    try:
        step = training.step(model, machine, plan, batch=batch, T=T, efficiency=efficiency)
    except ValueError:
        if not why:
            raise
        return WrittenStep(plan=plan, reasons=why)
    objective = Pessimistic.of(model, plan.chips, T, plan.frozen)
    near = published(model, machine, step)
    confidence = Confidence(objective=objective, margin=margin, headroom=left, near=near)
    return WrittenStep(plan=plan, reasons=why, step=step, confidence=confidence)
