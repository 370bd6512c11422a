"""The result of a search for a training plan: the best plans, and what was rejected and why.

Chapter: Training Llama 3.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, runtime_checkable

from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner.compare import Comparison
from scalingbook_lib.planner.rejections import Rejected
from scalingbook_lib.planner.space import LADDER
from scalingbook_lib.training import Plan, TrainingEfficiency, TrainingStep
from scalingbook_lib.units import Result, count, percent, si

type Objective = Callable[[TrainingStep], float]  # seconds: never less than those of the step
TIE = 2e-9  # relative: closer times may have the same ten digits


def step_time(step: TrainingStep) -> float:
    """Return the seconds of the step, which a search minimizes by default."""
    return step.total_s


@runtime_checkable
class SpreadObjective(Protocol):
    """An objective that multiplies the step time by a factor of at least 1, the same for all of a spread."""

    def __call__(self, step: TrainingStep) -> float:
        """Return seconds that are never less than those of the step."""
        ...

    def least_factor(self, *, tp: int, cp: int, pp: int, microbatch: int, ep: int | None = None) -> float:
        """Return the smallest factor of all plans with these degrees, so that a search can prune by it."""
        ...


class Point(NamedTuple):
    """One plan that was timed: its objective and step time in seconds, and its memory per chip."""

    objective_s: float
    step_s: float
    memory_bytes: float
    plan: Plan


class Ranked(NamedTuple):
    """A plan with its step and its objective in seconds."""

    plan: Plan
    step: TrainingStep
    objective_s: float

    def __str__(self) -> str:
        return str(self.step)


@dataclass(frozen=True, kw_only=True)
class Ranking(Result):
    """The best legal plans for a model on a machine, and the number of rejections by reason.

    A spread is a mesh, a microbatch and a schedule; a plan is a spread with a ZeRO stage and a
    rematerialization policy. `points` are the plans that were timed. `pruned` counts the legal spreads whose
    lower bound is above the best plans, so that none of their plans was timed. `best` leaves out a plan if a
    better one of the same spread has a lower ZeRO stage and recomputes less. A search that was `stopped` has
    seen only a part.
    """

    model: Transformer
    machine: Machine
    batch: int
    T: int
    efficiency: TrainingEfficiency
    pods: int
    fixed: dict[str, Any]
    tried: dict[str, tuple[Any, ...]]
    headroom: float = 0.0
    objective: Objective = field(default=step_time, repr=False)
    points: list[Point] = field(repr=False)
    best: tuple[Ranked, ...]
    next_mesh: Ranked | None  # the best with another degree of tensor parallelism, or other stages
    spreads: int
    legal: int
    pruned: int
    rejected: tuple[Rejected, ...]
    stopped: bool = False

    @property
    def judged(self) -> int:
        """The number of plans that were timed."""
        return len(self.points)

    @property
    def winner(self) -> Ranked:
        """The best plan; raises a ValueError with the nearest misses if there is none."""
        if not self.best:
            raise ValueError(str(self))
        return self.best[0]

    @property
    def runner_up(self) -> Ranked:
        """Return the best plan with another TP degree or number of stages, or else the second plan."""
        _ = self.winner  # raises the reasons if there is none
        if self.next_mesh:
            return self.next_mesh
        if len(self.best) < 2:
            raise ValueError(
                "the search found only one feasible plan, so there is no second one to compare it with"
            )
        return self.best[1]

    @property
    def why(self) -> Comparison:
        """The comparison of the winner with the runner-up, term by term."""
        return Comparison(self.winner.step, self.runner_up.step)

    @property
    def counts(self) -> str:
        """The size of the search space, and the reasons for which plans were rejected."""
        refused = "; ".join(map(str, self.rejected))
        return f"{self.searched}; rejected: {refused or 'none'}"

    @property
    def searched(self) -> str:
        """The size of the search space, and how much of it was timed."""
        pruned = (
            f", {self.pruned:,} pruned because the lower bound on their step time exceeds the step time of "
            "the best plan"
        )
        return (
            f"{self.spreads:,} combinations of degrees, {self.legal:,} possible, {self.judged:,} plans timed"
            f"{pruned * (self.pruned > 0)}"
        )

    @property
    def table(self) -> str:
        """The best plans, one per line."""
        return "\n".join(("  ".join(_HEADER), *map("  ".join, map(_line, self.best))))

    def __str__(self) -> str:
        head = f"{self.model.name}, {count(self.batch * self.T)} tokens on {self.machine.name}"
        if not self.best:
            return f"{head}: no plan is possible. {self.counts}"
        also = f"\nRunner-up, {self.why}" if self.next_mesh or len(self.best) > 1 else ""
        return f"{head}: the best plan is {self.winner.plan}.\n{self.table}{also}\n{self.counts}"

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.best)


class Shortlist:
    """The best plans so far: `keep` of them, and the best for each pair of TP degree and stages.

    `remats` are the policies, starting with the one that recomputes least. Given these, a plan is left out if
    a plan of the same spread is as good with at most its ZeRO stage and recomputation.
    """

    def __init__(self, keep: int, remats: tuple[str, ...] | None) -> None:
        self.keep, self._remats = keep, remats
        self.meshes: set[tuple[int, int]] = set()  # pairs of TP degree and stages for which a plan is legal
        self.limit_s = inf  # plans above it can neither be listed nor be the best of the second pair
        self._listed: list[Ranked] = []
        self._best: dict[tuple[int, int], Ranked] = {}

    def add(self, one: Ranked) -> None:
        """Add a plan."""
        if one.objective_s > self.limit_s:
            return
        mesh = one.plan.tp, one.plan.pp
        if mesh not in self._best or order(one) < order(self._best[mesh]):
            self._best[mesh] = one
        self._listed.append(one)
        best, meshes = self.best, sorted(found.objective_s for found in self._best.values())
        kth_s = best[-1].objective_s if len(best) == self.keep else inf
        second_s = meshes[1] if len(meshes) > 1 else inf if len(self.meshes) > 1 else 0.0
        self.limit_s = max(kth_s, second_s) * (1 + TIE)
        self._listed = [found for found in self._listed if found.objective_s <= self.limit_s]

    @property
    def best(self) -> tuple[Ranked, ...]:
        """The best plans, best first, in an order that rounding cannot change."""
        found: list[Ranked] = []
        for one in sorted(self._listed, key=order):
            if not any(self._does_more(one.plan, other.plan) for other in found):
                found.append(one)
            if len(found) == self.keep:
                break
        return tuple(found)

    @property
    def next_mesh(self) -> Ranked | None:
        """The best plan whose TP degree or number of stages differs from the winner's, if any."""
        found = sorted(self._best.values(), key=order)
        return found[1] if len(found) > 1 else None

    def _does_more(self, one: Plan, other: Plan) -> bool:
        """Return whether `one` differs from `other` only by a higher ZeRO stage or more recomputation."""
        if self._remats is None or one.zero < other.zero or _SPREAD(one) != _SPREAD(other):
            return False
        return self._remats.index(one.remat) >= self._remats.index(other.remat)


def order(one: Ranked) -> tuple[Any, ...]:
    """Return a sort key: the objective to ten digits, then fewer stages, lower CP, TP, ZeRO, less remat."""
    plan = one.plan
    again = LADDER.index(plan.remat) if plan.remat in LADDER else len(LADDER)
    first = plan.pp, plan.cp, plan.tp, plan.zero, again  # of equal plans, the one that is simplest to run
    fields = (getattr(plan, name) for name in _ORDER)
    rest = [(isinstance(f, str), f if isinstance(f, int) else 0, str(f)) for f in fields]
    return (float(f"{one.objective_s:.9e}"), *first, rest)  # comparable, whatever the types


_SPREAD = attrgetter("pp", "cp", "tp", "fsdp", "dp", "ep", "expert_tp", "schedule", "chunks", "microbatch")
_ORDER = ("fsdp", "dp", "dcn", "ep", "expert_tp", "zero", "remat", "schedule", "chunks", "microbatch")
_AXES = ("tp", "cp", "pp", "fsdp", "dp", "ep")
_HEADER = (
    *(f"{name:>5}" for name in (*_AXES, "ZeRO", "mb")), f"{'schedule':14}", f"{'remat':9}", f"{'step':>8}",
    f"{'MFU':>6}", f"{'memory':>8}", "largest overhead",
)  # fmt: skip


def _line(one: Ranked) -> tuple[str, ...]:
    p, s = one.plan, one.step
    pipe = f"{p.schedule}{f' ×{p.chunks}' if p.chunks > 1 else ''}" if p.pp > 1 else "–"
    zero = p.zero if p.fsdp * p.cp > 1 else "–"  # nobody to share with
    return (
        *(f"{getattr(p, name):>5,}" for name in _AXES), f"{zero:>5}", f"{p.microbatch:>5}", f"{pipe:14}",
        f"{p.remat:9}", f"{si(s.total_s, 's'):>8}", f"{percent(s.mfu):>6}", f"{si(s.memory.total, 'B'):>8}",
        s.largest_overhead,
    )  # fmt: skip
