"""What do plans take that share no sums? Each is made and judged by `training`, one by one.

Chapter: Training LLaMA 3.
"""

from math import isfinite

from scalingbook_lib.planner.ranking import Point
from scalingbook_lib.planner.space import Space
from scalingbook_lib.planner.spread import Group, Policy, Sharing, ways
from scalingbook_lib.planner.tally import Miss, nearer
from scalingbook_lib.training import Plan, TrainingCase, TrainingEfficiency
from scalingbook_lib.training.feasible import reasons


class OneByOne:
    """Any plan of one space, with expert parallelism where the model has experts."""

    def __init__(self, space: Space, efficiency: TrainingEfficiency) -> None:
        self.space = space
        self.case = TrainingCase(
            space.model, space.machine, batch=space.batch, T=space.T, efficiency=efficiency
        )

    def judge(self, g: Group, every: bool, found: list[Point]) -> tuple[int, int]:
        """Every plan of a group that fits goes to `found`; how many spreads are legal, and plans spared."""
        legal, spread = 0, g.spread
        for fsdp in self.space.splits(spread.rest):
            zeros, why = self.space.zeros(fsdp * spread.cp)
            before, miss = len(found), None if zeros else Miss("even shards", fsdp, why)
            for sharing in self.space.shares(spread, fsdp) if zeros else ():
                kinds = (
                    self.space.tried["zero"] if sharing.expert_tp == 1 else zeros
                )  # tp chips share experts
                points, missed = self._plans(g, sharing, kinds, every)
                found += points
                miss = nearer(miss, missed)
            legal += len(found) > before
            if len(found) == before:
                copy, asked = spread.tp * spread.cp * fsdp, ", ".join(map(str, self.space.expert_ways))
                why = f"none of ep={asked} divides the {copy:,} chips of a stage's copy"
                miss = miss or Miss("experts", copy, why)
                self.space.misses(g, fsdp, miss)
        return legal, 0

    def _plans(
        self, g: Group, sharing: Sharing, zeros: tuple[int, ...], every: bool
    ) -> tuple[list[Point], Miss | None]:
        """Up the kinds of ZeRO, and for each up the rematerializations below the least that fitted so far."""
        remats = self.space.tried["remat"]
        points, miss, least = [], None, len(remats)
        for zero in zeros:
            for r, remat in enumerate(remats):
                # with more of ZeRO, what rematerializes as much or more is no faster (`has_laws`)
                if r >= least and not every:
                    break
                plan = self.space.plan(**ways(g, sharing), zero=zero, remat=remat)
                step_s, held, why = self.case.judge(plan)
                if why:
                    miss = nearer(miss, self._miss(plan, held, why[0]))
                    continue
                points.append(Point(step_s, held, g, sharing, Policy(zero, remat)))
                least = min(least, r)
        return points, miss

    def _miss(self, plan: Plan, held: float, why: str) -> Miss:
        if isfinite(held):
            return Miss("memory", held, why)
        known = reasons(self.space.model, plan, self.space.T, self.space.machine)
        return Miss("experts" if known or "ep" in why else "mesh", plan.tp * plan.cp * plan.fsdp, why)
