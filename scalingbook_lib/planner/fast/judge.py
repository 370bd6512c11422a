"""What do all plans of one group take and hold? Chapter: Training LLaMA 3."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

from scalingbook_lib.machines.clusters import ClusterError
from scalingbook_lib.planner.fast.links import MeshRates
from scalingbook_lib.planner.fast.splits import FIRST, Picks, RankSplit, RankSplits, Room, fullest
from scalingbook_lib.planner.fast.step import StepSums, idle
from scalingbook_lib.planner.fast.sums import (
    AxisWaits,
    Direction,
    Moved,
    PlanPass,
    Rates,
    SharedParams,
    WeightSums,
)
from scalingbook_lib.planner.fast.unit import Triple, unit
from scalingbook_lib.planner.ranking import Point
from scalingbook_lib.planner.space import Space
from scalingbook_lib.planner.spread import Group, Policy, Sharing, Spread
from scalingbook_lib.planner.tally import Miss, nearer
from scalingbook_lib.training import Plan, TrainingCase, TrainingEfficiency
from scalingbook_lib.training.buffers import live
from scalingbook_lib.training.shape import TrainingShape

_tuple = tuple.__new__  # makes a Point in half of the time that Point(...) takes

type Passes = list[PlanPass | None]  # per rematerialization, as far as they were asked for


@dataclass(slots=True)
class Bench:
    """What all groups of a mesh and schedule share, whatever the microbatch."""

    shape: TrainingShape
    live: float  # the most microbatches that wait, if there are as many
    idle: float | None  # over the sum of both passes; None where it is no such share
    hop_bytes: float  # to the next stage, for a token and one chunk
    splits: list[RankSplit]
    passes: dict[tuple[int, object], Passes]  # of a microbatch on a line


class Fast:
    """The plans of one space, judged by the sums that they share."""

    def __init__(self, space: Space, efficiency: TrainingEfficiency) -> None:
        self.space, self.remats = space, space.tried["remat"]
        self.unit = unit(
            TrainingCase(space.model, space.machine, batch=1, T=space.T, efficiency=efficiency),
            pods=space.pods,
            constant=tuple(sorted(space.constant.items())),
            remat=self.remats[0],
        )
        self.steps = StepSums(Plan(**space.constant).hidden * efficiency.overlap, efficiency.fixed_s)
        self.weights, self.splits = WeightSums(self.unit), RankSplits(space, self.unit)
        self.policies = {z: [Policy(z, remat) for remat in self.remats] for z in (0, *space.tried["zero"])}
        self.put_off = {r: self.unit.case.work(space.plan(remat=r)).put_off for r in self.remats}
        self._known: dict[Any, Any] = {}

    def judge(self, g: Group, every: bool, found: list[Point]) -> tuple[int, int]:
        """Every plan of a group that fits goes to `found`; how many spreads are legal, and plans spared."""
        # sums over several microbatches are there from the start of a step
        bench = self._get((g.spread, g.m > 1), self._bench, g.spread, g.m > 1)
        t = g.microbatch * self.space.T / g.spread.cp
        room = Room(self._held(g, bench, t), self.space.machine.chip.hbm_bytes, every)
        fitting, spared = self._fitting(g, bench.splits, room)
        found += self._timed(g, bench, t, fitting, room.held)
        several = self.space.model.experts  # then a spread has several splits, else one
        return len({split.sharing.fsdp for split, _ in fitting} if several else fitting), spared

    def _get(self, key: tuple[Any, ...], make: Callable[..., Any], *how: Any) -> Any:
        """What plans share, made once in a search.

        Of 2,800 splits, 540 differ in what they hold, and of 2,100 passes 660 in their layers: without this,
        a search takes 1.3 times as long.
        """
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = make(*how)
        return found

    def _bench(self, s: Spread, summed: bool) -> Bench:
        shape = self.unit.shape(s.tp, s.pp, s.chunks)
        layers = s.tp, s.cp, s.pp, shape.stages  # the schedule counts by these alone
        return Bench(
            shape=shape,
            live=live(s.schedule, s.pp, inf, s.chunks),
            idle=idle(s.pp, s.schedule, s.chunks),
            hop_bytes=self.unit.hop_bytes(s.tp),
            splits=self._get(("splits", summed, *layers), self.splits.of, s, summed),
            passes=self._get(("passes", *layers), dict),
        )

    def _held(self, g: Group, bench: Bench, t: float) -> list[Triple]:
        """Activations, per rematerialization: of the last stage with its logits, or the first in a layer."""
        s = g.spread
        # the first stage has most microbatches waiting, the last one the logits
        first, last = bench.shape.share * min(bench.live, g.m), bench.shape.stages.last
        cp = s.cp if self.unit.gathers else 1  # else what a token holds does not depend on it
        return [
            (
                t * (last * one.stored + one.logits),
                t * (last * one.waiting + one.unembedding),
                t * (first * one.stored + one.layer) + min(t * one.logits_gradient, one.vocabulary),
            )  # several sequences have their logits in place
            for one in self.unit.held(s.tp, cp, self.remats, s.pp > 1, min(g.microbatch, 2))
        ]

    def _fitting(
        self, g: Group, splits: list[RankSplit], room: Room
    ) -> tuple[list[tuple[RankSplit, Picks]], int]:
        """The splits that have a mesh and room, with the plans to judge; the others are counted."""
        found: list[tuple[RankSplit, Picks]] = []
        spared, missed, for_all, kinds = 0, {}, room.for_all, len(room.held)
        for split in splits:
            all_fit = split.most <= for_all  # most do: a call for each takes a fiftieth of a search
            judged, more = (FIRST, kinds * len(split.tops) - 1) if all_fit else room.picks(split)
            if not judged:
                miss = Miss("even shards" if split.why else "memory", room.far(split), split.why)
                missed[split.sharing.fsdp] = nearer(missed.get(split.sharing.fsdp), miss)
            elif split.mesh or self._laid(g.spread, split, missed):
                found.append((split, judged))
                spared += more
        legal = {split.sharing.fsdp for split, _ in found} if missed else set()
        for fsdp, miss in missed.items():  # spreads without any legal plan are counted
            if fsdp not in legal:
                self.space.misses(g, fsdp, miss)
        return found, spared

    def _laid(self, s: Spread, split: RankSplit, missed: dict[int, Miss]) -> bool:
        """Whether the machine has such a mesh; its rates, or why not."""
        fsdp, dp = split.sharing.fsdp, split.sharing.dp
        try:
            self._exchange(s, split.sharing)  # an exchange may cut a domain that no other axis cuts
            split.lay(self.unit.links.mesh(s.tp, s.cp, fsdp, s.pp, dp), s.pp)
        except ClusterError as refused:
            missed[fsdp] = Miss("mesh", s.tp * s.cp * fsdp, str(refused))
            return False
        return True

    def _timed(
        self, g: Group, bench: Bench, t: float, fitting: list[tuple[RankSplit, Picks]], held: list[Triple]
    ) -> list[Point]:
        """The step of every plan: a few numbers of its split, and of the passes that splits share."""
        found, line, passes = [], None, []
        # microbatches before the last, and the bubble as so many
        run = None if bench.idle is None else g.m - 1 + bench.idle
        chunks, policies, step_s = g.spread.chunks, self.policies, self.steps.step_s
        hop_bytes = chunks * bench.hop_bytes * t
        for split, picks in fitting:
            if split.line != line:
                line = split.line
                passes = bench.passes.setdefault((g.microbatch, line), [None] * len(self.remats))
            hop_s = hop_bytes * split.hop.s_per_byte + chunks * split.hop.hops_s
            zeros, states, sharing, moved = split.zeros, split.nbytes, split.sharing, split.moved
            for z, r in picks:
                one = passes[r]
                if one is None:
                    one = passes[r] = self._pass(g, bench.shape, split, t, self.remats[r])
                weights = moved[z] or self._moved(g.spread, bench.shape, split, z)
                seconds, nbytes = step_s(g, run, one, hop_s, weights), fullest(states[z], held[r])
                found.append(_tuple(Point, (seconds, nbytes, g, sharing, policies[zeros[z]][r])))
        return found

    def _pass(self, g: Group, shape: TrainingShape, split: RankSplit, t: float, remat: str) -> PlanPass:
        """Both directions at the longest stage's pace."""
        s = g.spread
        key = "all layers", s.pp == 1, s.tp, s.cp, g.microbatch, remat, split.line
        forward, backward = self._get(key, self._layers, s, split, t, remat)
        return PlanPass(forward.paced(shape), backward.paced(shape), self.put_off[remat])

    def _layers(self, s: Spread, split: RankSplit, t: float, remat: str) -> tuple[Direction, Direction]:
        """All layers, either way, with tensor, context and expert ways."""
        sharing, mesh = split.sharing, split.mesh
        assert mesh
        cp = 1 if self.unit.even else s.cp  # else what a token takes does not depend on it
        one = self.unit.layers(s.tp, cp, remat, Sharing(1, 1, sharing.ep, sharing.expert_tp), t)
        key = "tensor", s.tp, s.pp == 1, remat, mesh.Y, sharing.ep, sharing.expert_tp
        Y, Z = self._get(key, self._tensor, s, sharing, remat, mesh.Y)
        rows = self.unit.context(s.tp, s.cp, remat) if s.cp > 1 else ()
        C = self._get(("context", s.tp, s.cp, remat, mesh.C), AxisWaits.of, rows, "C", mesh.C)
        forward = Direction.of(one.forward_s, one.math.head, t, Y=Y.forward, C=C.forward, Z=Z.forward)
        backward = Direction.of(
            one.backward_s, 2 * one.math.head, t, Y=Y.backward, C=C.backward, Z=Z.backward
        )
        return forward, backward

    def _tensor(self, s: Spread, sharing: Sharing, remat: str, Y: Rates) -> tuple[AxisWaits, AxisWaits]:
        """Tensor and expert ways."""
        rows = self.unit.moved(s.tp, remat, sharing.ep, sharing.expert_tp, s.pp > 1)
        return AxisWaits.of(rows, "Y", Y), AxisWaits.of(rows, "Z", self._exchange(s, sharing))

    def _exchange(self, s: Spread, sharing: Sharing) -> Rates:
        """What sends tokens to their experts, and back."""
        experts = self.space.model.experts
        if sharing.ep == 1 or not experts:
            return {}
        inside = s.tp if (sharing.expert_tp or s.tp) > 1 else 1
        return self.unit.links.exchange(
            inside, sharing.ep, experts.k, self.space.constant.get("expert_domains")
        )

    def _moved(self, s: Spread, shape: TrainingShape, split: RankSplit, z: int) -> Moved:
        """Gathers, scatters, and sums over copies and pods."""
        zero, one, mesh = split.zeros[z], split.sharing, split.mesh
        assert mesh
        shared = one.fsdp * s.cp
        summed = mesh.X, mesh.R, mesh.Y if shape.kv else None
        key = "moved", s.tp, s.pp, shape.stages, shared, zero, *summed, one.ep, one.expert_tp
        found = split.moved[z] = self._get(key, self._weights, s, shape, one, mesh, zero)
        return found

    def _weights(
        self, s: Spread, shape: TrainingShape, sharing: Sharing, mesh: MeshRates, zero: int
    ) -> Moved:
        shared = sharing.fsdp * s.cp
        groups, links = (SharedParams(shape.dense, mesh.X, shared),), self.unit.links
        experts = self.splits.experts(s.tp, shape, shared, ep=sharing.ep, expert_tp=sharing.expert_tp)
        if experts.params:
            axis = links.level(experts.inside, experts.ways) if experts.ways > 1 else links.none
            groups += (SharedParams(experts.params, axis, experts.ways),)
        kv = shape.kv / shared
        return self.weights.moved(zero, shape.stages.layers, groups, mesh, dp=sharing.dp, kv=kv)
