"""A search for the fastest legal plan: branch and bound over `training.evaluate`.

Groups of plans are visited in the order of a lower bound of their step. The search ends where that bound is
above the best plans found. Chapter: Training Llama 3.
"""

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count, groupby
from math import inf
from typing import Any

from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner import step_bounds
from scalingbook_lib.planner.feasible import Feasible
from scalingbook_lib.planner.meshes import Group, Sharing, plan_fields
from scalingbook_lib.planner.ranking import (
    TIE,
    Objective,
    Point,
    Ranked,
    Ranking,
    Shortlist,
    SpreadObjective,
    step_time,
)
from scalingbook_lib.planner.space import Space, is_monotone, space
from scalingbook_lib.planner.watch import Watch, unwatched
from scalingbook_lib.training import PEAK, TrainingCase, TrainingEfficiency, TrainingStep, evaluate


def plans(
    model: Transformer,
    machine: Machine,
    *,
    batch: int,
    T: int,
    pods: int = 1,
    fixed: dict[str, Any] | None = None,
    tried: dict[str, tuple[Any, ...]] | None = None,
    efficiency: TrainingEfficiency = PEAK,
    headroom: float = 0.0,
    objective: Objective = step_time,
    keep: int = 10,
    every: bool = False,
    watch: Watch = unwatched,
) -> Ranking:
    """The best `keep` legal plans for `batch` sequences of T tokens on `pods` such machines.

    `fixed` gives fields of `training.Plan` their only value, as in `fixed=dict(tp=8, remat="full")`. `tried`
    gives the values to try for a field; by default they are those of `space.CANDIDATES`, and all divisors for
    the degrees of the mesh. Plans leave the share `headroom` of a chip's HBM free. `objective` ranks a step,
    in seconds that are never less than the step's. With `every`, all legal plans are timed, and otherwise
    only those that no lower bound rules out. `watch` is told how many spreads are
    found, then how many plans are timed, and says whether to end with the best so far.
    """
    asked = space(model, machine, batch=batch, T=T, pods=pods, fixed=fixed or {}, candidates=tried or {})
    case = TrainingCase(model, machine, batch=batch, T=T, efficiency=efficiency, headroom=headroom)
    search = Search(asked, case, objective, keep=keep, every=every)
    stopped = search.run(watch)
    return Ranking(
        model=model,
        machine=machine,
        batch=batch,
        T=T,
        efficiency=efficiency,
        pods=asked.pods,
        fixed=fixed or {},
        tried=tried or {},
        headroom=headroom,
        objective=objective,
        points=search.points,
        best=search.shortlist.best,
        next_mesh=search.shortlist.next_mesh,
        spreads=search.legal + asked.rejections.total,
        legal=search.legal,
        pruned=0 if stopped else search.legal - len(search.timed),
        rejected=asked.rejections.rejected,
        stopped=stopped,
    )


type Experts = tuple[int, int | None]  # ep and expert_tp


class Search:
    """The state of a search: the best plans so far, and the branches that may contain better ones."""

    def __init__(
        self, asked: Space, case: TrainingCase, objective: Objective, *, keep: int, every: bool
    ) -> None:
        self.space, self.case, self.objective, self.every = asked, case, objective, every
        self._by_spread = objective if isinstance(objective, SpreadObjective) else None
        self.remats, self.monotone = asked.candidates["remat"], is_monotone(asked)
        # places of remats of which one recomputes least
        self._least = range(1 if self.monotone else len(self.remats))
        self.shortlist = Shortlist(keep, self.remats if self.monotone else None)
        self.feasible = Feasible(asked, case)
        self.points: list[Point] = []
        self.legal = 0  # spreads
        self.timed: set[tuple[Group, int]] = set()  # spreads of which some plan was
        self._known: dict[tuple[Group, Sharing], list[tuple[int, int, float]]] = {}
        # Lower bounds of branches, and how to visit each; numbered, as visits cannot be compared.
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._pushed = count()

    def run(self, watch: Watch) -> bool:
        """Find the groups and visit the promising ones; return whether `watch` ended the search."""
        stopped = self._find(watch)
        while self._queue:
            bound_s, _, visit = heappop(self._queue)
            if bound_s > self.shortlist.limit_s and not self.every:
                break
            visit()
            if (stopped or watch(len(self.points), self.legal)) and self.points:
                return True
        return stopped

    def _find(self, watch: Watch) -> bool:
        """Queue every group with a legal plan; return whether `watch` ended the search."""
        then = self._visit_tensor if self.space.model.experts else self._visit_group
        for _, groups in groupby(self.space.groups(), key=lambda g: g.mesh):
            for g, fsdp in self.feasible.degrees(list(groups)):
                if fsdp:
                    self.legal += len(fsdp)
                    self.shortlist.meshes.add((g.mesh.tp, g.mesh.pp))
                    self._push(self._least_s(step_bounds.compute_s, g), partial(then, g, fsdp))
            if watch(self.legal, 0) and self._queue:
                return True
        return False

    def _push(self, bound_s: float, visit: Callable[[], None]) -> None:
        heappush(self._queue, (bound_s, next(self._pushed), visit))

    def _factor(self, g: Group, ep: int | None = None) -> float:
        """Return the smallest factor of the objective over the step time, for all plans of a group."""
        if self._by_spread is None:
            return 1.0
        shape = g.mesh
        return self._by_spread.least_factor(
            tp=shape.tp, cp=shape.cp, pp=shape.pp, microbatch=g.microbatch, ep=ep
        )

    def _least_s(self, bound: Callable[[Space, TrainingCase, Group, str], float], g: Group) -> float:
        """Return the lower bound of a group under all rematerialization policies."""
        least_s = min(bound(self.space, self.case, g, self.remats[r]) for r in self._least)
        return least_s * self._factor(g)

    def _visit_tensor(self, g: Group, fsdp: list[int]) -> None:
        """Queue a group with experts under a tighter bound."""
        self._push(self._least_s(step_bounds.tensor_s, g), partial(self._visit_group, g, fsdp))

    def _visit_group(self, g: Group, fsdp: list[int]) -> None:
        """Queue one branch for each placement of experts; without experts, a single one."""
        placed: dict[Experts, list[int]] = {}
        for degree in fsdp:
            for one in self.feasible.sharings(g, degree):
                placed.setdefault((one.ep, one.expert_tp), []).append(degree)
        for experts, found in placed.items():
            if len(placed) == 1:
                self._visit_experts(g, found, experts)
                continue
            bound_s = min(self._exposed_s(g, found, experts, r) for r in self._least)
            self._push(bound_s, partial(self._visit_experts, g, found, experts))

    def _visit_experts(self, g: Group, fsdp: list[int], experts: Experts) -> None:
        """Queue a branch for each policy that recomputes the least."""
        for r in self._least:
            self._push_remat(g, fsdp, experts, r)

    def _push_remat(self, g: Group, fsdp: list[int], experts: Experts, r: int) -> None:
        bound_s = self._exposed_s(g, fsdp, experts, r)
        self._push(bound_s, partial(self._visit_plans, g, fsdp, experts, r))

    def _exposed_s(self, g: Group, fsdp: list[int], experts: Experts, r: int) -> float:
        """Return the bound of one placement of experts and one policy, at the largest FSDP degree."""
        sharing = _sharing(g, fsdp[-1], experts)
        least_s = step_bounds.exposed_s(self.space, self.case, g, sharing, self.remats[r])
        return least_s * self._factor(g, experts[0])

    def _visit_plans(self, g: Group, fsdp: list[int], experts: Experts, r: int) -> None:
        """Evaluate the plans of one policy and one placement of experts that fit and may be better."""
        if self.monotone and r + 1 < len(self.remats):  # the next remat takes longer
            self._push_remat(g, fsdp, experts, r + 1)
        for zero in self.space.candidates["zero"]:
            for degree in reversed(fsdp):
                sharing = _sharing(g, degree, experts)
                known = self._known.setdefault((g, sharing), [])
                if zero not in self.feasible.zeros(g, sharing) or self._useless(known, zero, r):
                    continue
                plan = self.space.plan(**plan_fields(g, sharing), zero=zero, remat=self.remats[r])
                one = evaluate(self.case, plan)
                if one.step:
                    known.append((zero, r, one.step.total_s))
                    self.timed.add((g, degree))
                    self._add(one.step)
                elif one.memory_bytes < inf:
                    break  # fewer that share hold no less

    def _useless(self, known: list[tuple[int, int, float]], zero: int, r: int) -> bool:
        """Return whether a known plan with at most this ZeRO stage and recomputation rules this one out.

        The step of the known plan is a lower bound of this one's. If the objective has the same factor for
        all plans of a spread, this plan cannot be better; otherwise it cannot if the bound is above the
        limit.
        """
        if self.every or not self.monotone:
            return False
        alike = self.objective is step_time or self._by_spread is not None
        enough_s = 0.0 if alike else self.shortlist.limit_s
        return any(z <= zero and q <= r and step_s > enough_s for z, q, step_s in known)

    def _add(self, step: TrainingStep) -> None:
        objective_s = self.objective(step)
        if objective_s < step.total_s * (1 - TIE):
            raise ValueError(
                f"the objective of {step.plan} is {objective_s} s, below the {step.total_s} s of its step: "
                "a search prunes by lower bounds of the step, so let it be the step or longer"
            )
        self.points.append(Point(objective_s, step.total_s, step.memory.total, step.plan))
        self.shortlist.add(Ranked(step.plan, step, objective_s))


def _sharing(g: Group, fsdp: int, experts: Experts) -> Sharing:
    return Sharing(fsdp, g.mesh.data_ranks // fsdp, *experts)
