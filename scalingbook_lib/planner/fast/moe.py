"""What do all plans of a model with experts take? As `dense`, with the experts' own weights and exchange.

On clusters: on a torus the exchange depends on the whole mesh (`one_by_one`). Chapter: Training LLaMA 3.
"""

from scalingbook_lib.planner.fast.dense import Dense
from scalingbook_lib.planner.fast.sums import Rates
from scalingbook_lib.planner.space import Space
from scalingbook_lib.planner.spread import Share, Spread
from scalingbook_lib.training import Efficiency
from scalingbook_lib.training.feasible import reasons
from scalingbook_lib.training.shape import Shape


class MoE(Dense):
    """The plans of one space whose model has experts."""

    def __init__(self, space: Space, efficiency: Efficiency) -> None:
        super().__init__(space, efficiency)
        assert space.model.experts
        self.experts = space.model.experts

    def _shares(self, s: Spread, fsdp: int) -> list[Share]:
        found = self.space.shares(s, fsdp)
        return [one for one in found if not self._refused(s.tp, one)]

    def _refused(self, tp: int, share: Share) -> str:
        def why() -> str:
            plan = self.space.plan(
                tp=tp,
                ep=share.ep,
                expert_tp=share.expert_tp,
                fsdp=self.space.machine.chips // tp,
                zero=0,
            )
            return "; ".join(reasons(self.space.model, plan, self.space.T, self.space.machine))

        return self._get(("refused", tp, share.ep, share.expert_tp), why)

    def _none(self, s: Spread, fsdp: int) -> str:
        asked = ", ".join(map(str, self.space.expert_ways))
        return f"no ep of {asked} and expert_tp divide the {s.tp * s.cp * fsdp:,} chips of a stage's copy"

    def _expert(self, s: Spread, shape: Shape, share: Share) -> tuple[float, int, int]:
        ways = share.expert_tp or s.tp
        stage = s.tp // ways * s.cp * share.fsdp
        return shape.expert * s.tp / (ways * share.ep), ways * share.ep, stage // share.ep

    def _exchange(self, s: Spread, share: Share) -> Rates:
        if share.ep == 1:
            return {}
        inside = s.tp if (share.expert_tp or s.tp) > 1 else 1
        most = self.space.constant.get("expert_domains")
        return self.links.exchange(inside, share.ep, self.experts.k, most)
