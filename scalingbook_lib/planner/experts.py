"""What do plans with experts take? Each is made and judged by `training`, one by one.

Chapter: Training LLaMA 3.
"""

from math import isfinite
from typing import Any

from scalingbook_lib.planner.quick import Miss, Spread
from scalingbook_lib.planner.ranking import Point
from scalingbook_lib.planner.space import Group, Space, divisors
from scalingbook_lib.training import Case, Efficiency, Plan
from scalingbook_lib.training.feasible import reasons


class Experts:
    """Any plan of one space, with expert parallelism where the model has experts."""

    def __init__(self, space: Space, efficiency: Efficiency) -> None:
        self.space = space
        self.case = Case(space.model, space.machine, batch=space.batch, T=space.T, efficiency=efficiency)
        E = space.model.experts.E if space.model.experts else 1
        self.tried = space.tried.get("ep", divisors(E))
        self.expert_tp = space.tried.get("expert_tp", (None, 1)) if space.model.experts else (None,)

    def group(self, g: Group) -> dict[str, Any]:
        """The fields that its plans share."""
        return {
            "pp": g.pp, "cp": g.cp, "tp": g.tp, "schedule": g.schedule, "chunks": g.chunks,
            "microbatch": g.microbatch,
        }  # fmt: skip

    def spread(self, g: Group, at: dict[str, Any], fsdp: int, zeros: tuple[int, ...], every: bool) -> Spread:
        """Every plan of a mesh, microbatch and schedule that fits."""
        ways = at | {"fsdp": fsdp, "dp": g.rest // fsdp}
        points, spared, miss = [], 0, None
        for ep, expert_tp in self._experts(g, fsdp):
            found, more, missed = self._plans(ways | {"ep": ep, "expert_tp": expert_tp}, zeros, every)
            points += found
            spared += more
            if missed:
                miss = nearer(miss, missed)
        return points, spared, miss or Miss("experts", g.tp * g.cp * fsdp, self._no_ways(g, fsdp), ways)

    def _experts(self, g: Group, fsdp: int) -> list[tuple[int, int | None]]:
        """Ways that divide what would hold the same experts; with one way of tp, expert_tp says nothing."""
        found = []
        for expert_tp in self.expert_tp if g.tp > 1 else self.expert_tp[:1]:
            stage = (g.tp if expert_tp == 1 else 1) * g.cp * fsdp
            found += [(ep, expert_tp) for ep in self.tried if stage % ep == 0]
        return found

    def _no_ways(self, g: Group, fsdp: int) -> str:
        asked = ", ".join(map(str, self.tried))
        return f"none of ep={asked} divides the {g.tp * g.cp * fsdp:,} chips of a stage's copy"

    def _plans(self, ways: dict[str, Any], zeros: tuple[int, ...], every: bool) -> Spread:
        """Up the kinds of ZeRO, and for each up the rematerializations below the least that fitted so far."""
        remats = self.space.tried["remat"]
        points, spared, miss, least = [], 0, None, len(remats)
        for zero in zeros:
            for r, remat in enumerate(remats):
                if r >= least and not every:
                    break
                plan = self.space.plan(**ways, zero=zero, remat=remat)
                step_s, held, why = self.case.judge(plan)
                if why:
                    miss = nearer(miss, self._miss(plan, held, why[0], ways | {"zero": zero, "remat": remat}))
                    continue
                points.append(_point(plan, step_s, held))
                least = min(least, r)
        return points, spared, miss

    def _miss(self, plan: Plan, held: float, why: str, ways: dict[str, Any]) -> Miss:
        if isfinite(held):
            return Miss("memory", held, why, ways)
        known = reasons(self.space.model, plan, self.space.T, self.space.machine)
        return Miss("experts" if known or "ep" in why else "mesh", plan.tp * plan.cp * plan.fsdp, why, ways)


def nearer(one: Miss | None, other: Miss) -> Miss:
    """The miss that came nearer: by memory at all, then by less of it."""
    if one is None or (one.kind != "memory", one.far) > (other.kind != "memory", other.far):
        return other
    return one


def _point(p: Plan, step_s: float, held: float) -> Point:
    return Point(step_s, held, p.pp, p.cp, p.tp, p.fsdp, p.dp, p.dcn, p.ep, p.expert_tp, p.zero, p.remat,
                 p.schedule, p.chunks, p.microbatch)  # fmt: skip
