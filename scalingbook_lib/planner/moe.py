"""What do all plans of a model with experts take? As `quick`, with the experts' own weights and exchange.

On clusters: on a torus the exchange depends on the whole mesh (`experts`). Chapter: Training LLaMA 3.
"""

from typing import Any

from scalingbook_lib.planner.links import Axis
from scalingbook_lib.planner.probe import Layers
from scalingbook_lib.planner.quick import Bench, Quick
from scalingbook_lib.planner.space import Group, Space, divisors
from scalingbook_lib.planner.splits import Split, States
from scalingbook_lib.planner.sums import Moved, Ways, moved, sums
from scalingbook_lib.training import Efficiency
from scalingbook_lib.training.feasible import reasons
from scalingbook_lib.training.shape import Shape


class Routed(Quick):
    """The plans of one space whose model has experts."""

    def __init__(self, space: Space, efficiency: Efficiency) -> None:
        super().__init__(space, efficiency)
        assert space.model.experts
        self.experts = space.model.experts
        self.tried = space.tried.get("ep", divisors(self.experts.E))
        self.expert_tp = space.tried.get("expert_tp", (None, 1))

    def _shared(self, g: Group, shape: Shape, known: dict[Any, States]) -> list[Split]:
        found = []
        for fsdp in self.space.splits(g.rest):
            splits = [self._routed(g, shape, fsdp, known, *ways) for ways in self._ways(g, fsdp)]
            found += splits or [Split(fsdp, g.rest // fsdp, States.of((), [], self._none(g, fsdp)))]
        return found

    def _ways(self, g: Group, fsdp: int) -> list[tuple[int, int | None]]:
        """Those that divide what would hold the same experts; with one way of tp, expert_tp says nothing."""
        found = []
        for expert_tp in self.expert_tp if g.tp > 1 else self.expert_tp[:1]:
            stage = g.tp // (expert_tp or g.tp) * g.cp * fsdp
            found += [(ep, expert_tp) for ep in self.tried if stage % ep == 0]
        return [ways for ways in found if not self._get(("refused", g.tp, *ways), self._refused, g.tp, *ways)]

    def _refused(self, tp: int, ep: int, expert_tp: int | None) -> str:
        fsdp = self.space.machine.chips // tp
        plan = self.space.plan(tp=tp, ep=ep, expert_tp=expert_tp, fsdp=fsdp, zero=0)
        why = reasons(self.space.model, plan, self.space.T, self.space.machine)
        return "; ".join(why) or ""

    def _none(self, g: Group, fsdp: int) -> str:
        asked = ", ".join(map(str, self.tried))
        return f"no ep of {asked} and expert_tp divide the {g.tp * g.cp * fsdp:,} chips of a stage's copy"

    def _expert(
        self, g: Group, shape: Shape, fsdp: int, ep: int, expert_tp: int | None
    ) -> tuple[float, int, int]:
        """Expert parameters of a chip, the chips inside those that hold the same, and how many do."""
        ways = expert_tp or g.tp
        stage = g.tp // ways * g.cp * fsdp
        return shape.expert * g.tp / (ways * ep), ways * ep, stage // ep

    def _routed(
        self, g: Group, shape: Shape, fsdp: int, known: dict[Any, States], ep: int, expert_tp: int | None
    ) -> Split:
        key = fsdp * g.cp, ep, expert_tp
        states = known.get(key)
        if states is None:
            states = known[key] = self._all_states(g, shape, fsdp, ep, expert_tp)
        return Split(fsdp, g.rest // fsdp, states, ep, expert_tp)

    def _all_states(self, g: Group, shape: Shape, fsdp: int, ep: int, expert_tp: int | None) -> States:
        """Of experts and of all else."""
        shared = fsdp * g.cp
        alone = expert_tp == 1 and g.tp > 1
        zeros = self.space.tried["zero"] if alone else self.space.zeros(shared)[0]
        params, _, ways = self._expert(g, shape, fsdp, ep, expert_tp)
        kinds = (self.probe.state(g.tp, zero) for zero in zeros)
        return States.of(
            zeros, [kind.held(shape.dense, shape.layers, shared, params, ways) for kind in kinds]
        )

    def _moved(self, g: Group, bench: Bench, split: Split, z: int) -> Moved:
        """Gathers, scatters and sums, of the experts' weights beside the others."""
        zero, shared, shape, mesh = split.zeros[z], split.fsdp * g.cp, bench.shape, split.mesh
        assert mesh
        params, inside, ways = self._expert(g, shape, split.fsdp, split.ep, split.expert_tp)
        key = "dense", g.tp, g.pp, shape.layers, shared, zero, mesh.X, mesh.R
        how = zero, mesh, mesh.X, shared, split.dp, shape.dense, shape.layers
        parts = self._get(key, self.weights.parts, *how)
        if ways > 1 or split.dp > 1 or self.space.pods > 1:
            axis = self.links.level(inside, ways)
            more = self.weights.parts(zero, mesh, axis, ways, split.dp, params, shape.layers)
            parts = [one + other for one, other in zip(parts, more, strict=True)]
        own = shape.dense / (shared if zero else 1) + params / (ways if zero else 1)
        found = split.moved[z] = moved(parts, self.update_s * own)
        return found

    def _tensor(self, one: Layers, axis: Axis, tp: int, split: Split) -> tuple[Ways, Ways, Ways]:
        inside = tp if (split.expert_tp or tp) > 1 else 1
        most = self.space.constant.get("expert_domains")
        rates = self.links.exchange(inside, split.ep, self.experts.k, most) if split.ep > 1 else {}
        return sums(one.tensor, axis), sums(one.ends, axis), sums(one.exchange, rates)
