"""The plan to recommend for a training step: fast with 80% probability, in memory with 90%.

`recommend` searches with the software habits that published efficiencies rest on, with headroom in memory
(`memory_margin`), and by a pessimistic step time (`pessimistic`). It also finds the nearest published plan.
Where no plan leaves the headroom, it takes one that fits within the error of the memory count.
Chapter: Training Llama 3.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from scalingbook_lib import planner
from scalingbook_lib.calibrated.measured_plans import MeasuredPlan, Shape, by_nearness
from scalingbook_lib.calibrated.memory_margin import MemoryMargin, memory_margin
from scalingbook_lib.calibrated.pessimistic import OUTSIDE, Pessimistic
from scalingbook_lib.machines import Chip, Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner import Objective, Ranked, Ranking, step_time
from scalingbook_lib.planner.watch import Watch, unwatched
from scalingbook_lib.training import PEAK, Plan, TrainingEfficiency, TrainingMemory, TrainingStep, step
from scalingbook_lib.units import Result, percent, si

TYPES = ("weights", "compute", "activations", "gradients", "reduced", "moments", "master")


NODE_LIMITED = {"DeepSeek-V3": 4, "DeepSeek-R1": 4, "DeepSeek-V3.2": 4}
"""The domains among which a model's router chooses a token's experts (arXiv 2412.19437, section 2.1.2)."""


def habits(model: Transformer, chip: Chip) -> dict[str, Any]:
    """Fields of a plan as the software sets them whose published runs the efficiencies were fitted to.

    Megatron and MaxText overlap the collectives of tensor parallelism with matmuls. MaxText's cross entropy
    has a gradient of its own, for which 2 bytes are held for each logit.
    """
    found: dict[str, Any] = {"collective_matmul": True}
    if chip.torus:
        found["logit_bytes"] = 2.0
    if model.name in NODE_LIMITED:
        found["expert_domains"] = NODE_LIMITED[model.name]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Published(Result):
    """The nearest published plan, and its predicted step for the question; None where none divides."""

    plan: MeasuredPlan
    step: TrainingStep | None

    def __str__(self) -> str:
        if self.step is None:
            return (
                f"The nearest published plan is that of {self.plan}. No published plan divides this model, "
                "batch and number of chips."
            )
        return (
            f"The nearest published plan is that of {self.plan}. Here it is predicted to take "
            f"{si(self.step.total_s, 's')} and to hold {si(self.step.memory.total, 'B')} on each chip."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation(Result):
    """The result of a search, with what its ranking rests on."""

    ranking: Ranking
    objective: Pessimistic
    margin: MemoryMargin
    headroom: float  # that the plans leave; below 0 where none leaves any
    asked: float  # the headroom that was asked for

    @property
    def winner(self) -> Ranked:
        """The recommended plan; a ValueError says why there is none."""
        return self.ranking.winner

    @property
    def p80_s(self) -> float:
        """The seconds that 80 in 100 steps by the recommended plan do not exceed."""
        return self.objective.p80(self.winner.step)

    @property
    def memory(self) -> str:
        """How safely the recommended plan fits, as a sentence."""
        found = fit_sentence(self.winner.step.memory, self.margin)
        if self.headroom == self.asked:
            return found
        return f"No plan leaves the headroom of {percent(self.asked)}. {found}"

    @property
    def unusual(self) -> str:
        """Why a plan that may be faster is not recommended, as a sentence; '' where there is none."""
        best = self.ranking.best[1:] if self.ranking.best else ()
        more = (self.ranking.next_mesh,) if self.ranking.next_mesh else ()
        for one in (*more, *best):
            outside = self.objective.outside(one.plan)
            if outside and self.objective.p80(one.step) < self.p80_s:
                names = " and ".join(f"{name}={getattr(one.plan, name)}" for name in outside)
                return (
                    f"A plan with {names} may be faster, but no published run of a similar shape has such "
                    f"degrees: it would have to be {percent(OUTSIDE - 1)} better."
                )
        return ""

    @property
    def published(self) -> Published:
        """The nearest published plan."""
        r = self.ranking
        return published(r.model, r.machine, self.winner.step)

    def __str__(self) -> str:
        if not self.ranking.best:
            return str(self.ranking)
        likely = f"80 in 100 steps by such a plan take at most {si(self.p80_s, 's')}."
        return "\n".join((str(self.ranking), self.memory, likely, str(self.published)))


def recommend(
    model: Transformer,
    machine: Machine,
    *,
    batch: int,
    T: int,
    efficiency: TrainingEfficiency = PEAK,
    pods: int = 1,
    fixed: dict[str, Any] | None = None,
    tried: dict[str, tuple[Any, ...]] | None = None,
    headroom: float | None = None,
    pessimistic: bool = True,
    keep: int = 10,
    watch: Watch = unwatched,
) -> Recommendation:
    """The best `keep` plans, as `planner.plans` has them.

    `headroom` is the share of the HBM to leave free; None leaves enough to fit with a probability of 90%, and
    if no plan does, allows what the count may be off by. Without `pessimistic`, plans are ranked by their
    expected step time.
    """
    margin = memory_margin(machine.chip)
    rule = Pessimistic.of(model, machine.chips * pods, T, bool((fixed or {}).get("frozen")))
    objective: Objective = rule if pessimistic else step_time
    asked = margin.headroom if headroom is None else headroom

    def search(leave: float) -> Ranking:
        return planner.plans(
            model,
            machine,
            batch=batch,
            T=T,
            pods=pods,
            fixed=habits(model, machine.chip) | (fixed or {}),
            tried=tried,
            efficiency=efficiency,
            headroom=leave,
            objective=objective,
            keep=keep,
            watch=watch,
        )

    found, left = search(asked), asked
    tight = any(rejected.kind == "memory" for rejected in found.rejected)
    if not found.best and tight and headroom is None:
        within = search(-margin.error)
        if within.best:
            found, left = within, -margin.error
    return Recommendation(ranking=found, objective=rule, margin=margin, headroom=left, asked=asked)


def published(model: Transformer, machine: Machine, found: TrainingStep) -> Published:
    """The nearest published plan that divides this model, batch and machine, with its step for them."""
    plan = found.plan
    near = by_nearness(Shape.of(model, plan.chips, found.T, plan.frozen), plan, machine.chip.name)
    types = {name: getattr(plan, name) for name in TYPES}
    software: dict[str, Any] = {name: getattr(plan, name) for name in ("collective_matmul", "logit_bytes")}
    how: dict[str, Any] = {"batch": found.batch, "T": found.T, "efficiency": found.efficiency}
    for one in near:
        with suppress(ValueError):  # its degrees do not divide this model, batch or machine
            theirs = replace(one.on(machine.chips, plan.dcn), **types, **software)
            return Published(plan=one, step=step(model, machine, theirs, **how))
    return Published(plan=near[0], step=None)


def fit_sentence(memory: TrainingMemory, margin: MemoryMargin) -> str:
    """How safely a plan fits, as a sentence."""
    assert memory.chip
    over = memory.total / memory.chip.hbm_bytes - 1
    if over > 0:
        return (
            f"The plan is {percent(over)} over the HBM by our count; our count is off by up to "
            f"{percent(margin.error)} on published runs."
        )
    probability = margin.probability(memory.total, memory.chip.hbm_bytes)
    likely = "above 99%" if probability > 0.99 else f"of {percent(probability)}"
    held = f"{si(memory.total, 'B')} of {si(memory.chip.hbm_bytes, 'B')}"
    return f"By our count, each chip holds {held}; the plan fits with a probability {likely}."


def whole_plan(model: Transformer, chip: Chip, fixed: dict[str, Any]) -> Plan:
    """The one plan that the fields say, with the software's habits."""
    return Plan(**habits(model, chip) | fixed)
