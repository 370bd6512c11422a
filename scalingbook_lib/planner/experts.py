"""What do plans with experts take? Each is made and judged by `training`, one by one.

Chapter: Training LLaMA 3.
"""

from math import isfinite
from typing import Any, NamedTuple

from scalingbook_lib.planner.ranking import Point
from scalingbook_lib.planner.space import Group, Space, divisors
from scalingbook_lib.training import Case, Efficiency, Plan
from scalingbook_lib.training.feasible import reasons


class Miss(NamedTuple):
    """Why a plan is not legal; `far` is its memory, or a size."""

    kind: str
    far: float
    why: str


class Experts:
    """Any plan of one space, with expert parallelism where the model has experts."""

    def __init__(self, space: Space, efficiency: Efficiency) -> None:
        self.space = space
        self.case = Case(space.model, space.machine, batch=space.batch, T=space.T, efficiency=efficiency)
        E = space.model.experts.E if space.model.experts else 1
        self.tried = space.tried.get("ep", divisors(E))
        self.expert_tp = space.tried.get("expert_tp", (None, 1)) if space.model.experts else (None,)

    def judge(self, g: Group, every: bool, found: list[Point]) -> tuple[int, int]:
        """Every plan of a group that fits goes to `found`; how many spreads are legal, and plans spared."""
        legal = 0
        for fsdp in self.space.splits(g.rest):
            zeros, why = self.space.zeros(fsdp * g.cp)
            before, miss = len(found), None if zeros else Miss("even shards", fsdp, why)
            for ep, expert_tp in self._experts(g, fsdp) if zeros else ():
                ways = {"tp": g.tp, "cp": g.cp, "fsdp": fsdp, "pp": g.pp, "dp": g.rest // fsdp, "ep": ep}
                more = {"schedule": g.schedule, "chunks": g.chunks, "microbatch": g.microbatch}
                kinds = self.space.tried["zero"] if expert_tp == 1 else zeros  # tp chips share experts
                points, missed = self._plans({**ways, **more, "expert_tp": expert_tp}, kinds, every)
                found += points
                miss = nearer(miss, missed)
            legal += len(found) > before
            if len(found) == before:
                miss = miss or Miss("experts", g.tp * g.cp * fsdp, self._no_ways(g, fsdp))
                self.space.misses(g, fsdp, miss.why, miss.far, miss.kind)
        return legal, 0

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

    def _plans(
        self, ways: dict[str, Any], zeros: tuple[int, ...], every: bool
    ) -> tuple[list[Point], Miss | None]:
        """Up the kinds of ZeRO, and for each up the rematerializations below the least that fitted so far."""
        remats = self.space.tried["remat"]
        points, miss, least = [], None, len(remats)
        for zero in zeros:
            for r, remat in enumerate(remats):
                if r >= least and not every:
                    break
                plan = self.space.plan(**ways, zero=zero, remat=remat)
                step_s, held, why = self.case.judge(plan)
                if why:
                    miss = nearer(miss, self._miss(plan, held, why[0]))
                    continue
                points.append(_point(plan, step_s, held))
                least = min(least, r)
        return points, miss

    def _miss(self, plan: Plan, held: float, why: str) -> Miss:
        if isfinite(held):
            return Miss("memory", held, why)
        known = reasons(self.space.model, plan, self.space.T, self.space.machine)
        return Miss("experts" if known or "ep" in why else "mesh", plan.tp * plan.cp * plan.fsdp, why)


def nearer(one: Miss | None, other: Miss | None) -> Miss | None:
    """The miss that came nearer: by memory at all, then by less of it."""
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda miss: (miss.kind != "memory", miss.far))


def _point(p: Plan, step_s: float, held: float) -> Point:
    return Point(step_s, held, p.pp, p.cp, p.tp, p.fsdp, p.dp, p.dcn, p.ep, p.expert_tp, p.zero, p.remat,
                 p.schedule, p.chunks, p.microbatch)  # fmt: skip
