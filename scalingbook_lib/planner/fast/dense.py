"""What do all plans of one group take and hold, if no experts are spread? Chapter: Training LLaMA 3."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from scalingbook_lib.machines.clusters import ClusterError
from scalingbook_lib.planner.fast.links import Mesh, links
from scalingbook_lib.planner.fast.splits import Picks, Room, Split, States, fullest
from scalingbook_lib.planner.fast.step import Steps, idle, live_at
from scalingbook_lib.planner.fast.sums import Moved, Params, Pass, Rates, Way, Ways, Weights
from scalingbook_lib.planner.fast.unit import Held, Triple, unit
from scalingbook_lib.planner.ranking import Point
from scalingbook_lib.planner.space import Space
from scalingbook_lib.planner.spread import Group, Kind, Share, Spread
from scalingbook_lib.training import Efficiency, Plan
from scalingbook_lib.training.shape import Shape

_tuple = tuple.__new__  # makes a Point in half of the time that Point(...) takes

type Passes = list[Pass | None]  # per rematerialization, as far as they were asked for


@dataclass(slots=True)
class Bench:
    """What all groups of a mesh and schedule share, whatever the microbatch."""

    shape: Shape
    idle: float  # over the sum of both passes; NaN where it is no such share
    hop_bytes: float  # to the next stage, for a token and one chunk
    held: list[Held]  # per rematerialization
    splits: list[Split]
    passes: dict[tuple[int, object], Passes]  # of a microbatch on a line


class Miss(NamedTuple):
    """Why a mesh has no legal plan, and how far it is from one: bytes, or chips."""

    far: float
    kind: str
    why: str


class Dense:
    """The plans of one space. Experts, if there were any, would not be spread: see `MoE`."""

    def __init__(self, space: Space, efficiency: Efficiency) -> None:
        self.space, self.remats = space, space.tried["remat"]
        constant = tuple(sorted(space.constant.items()))
        asked = space.model, space.machine, space.T, efficiency
        self.unit = unit(*asked, constant=constant, remat=self.remats[0])
        self.links = links(space.machine, space.pods, efficiency)
        self.steps = Steps(Plan(**space.constant).hidden * efficiency.overlap, efficiency.fixed_s)
        self.weights = Weights(self.unit, self.links)
        self.unknown: Passes = [None for _ in self.remats]
        self.kinds = {z: [Kind(z, remat) for remat in self.remats] for z in (0, *space.tried["zero"])}
        self._benches: dict[tuple[Spread, bool, int], Bench] = {}
        self._known: dict[Any, Any] = {}

    def judge(self, g: Group, every: bool, found: list[Point]) -> tuple[int, int]:
        """Every plan of a group that fits goes to `found`; how many spreads are legal, and plans spared."""
        key = g.spread, g.m > 1, min(g.microbatch, 2)
        bench = self._benches.get(key) or self._bench(*key)
        t = g.microbatch * self.space.T / g.spread.cp
        room = Room(self._held(g, bench, t), self.space.machine.chip.hbm_bytes, every)
        fitting, spared = self._fitting(g, bench.splits, room)
        found += self._timed(g, bench, t, fitting, room.held)
        return len({split.share.fsdp for split, _ in fitting}), spared

    def _held(self, g: Group, bench: Bench, t: float) -> list[Triple]:
        """Activations, per rematerialization: of the last stage with its logits, or the first in a layer."""
        s = g.spread
        first, last = bench.shape.share * live_at(s.pp, s.schedule, s.chunks, g.m), bench.shape.last
        return [
            (
                t * (last * one.stored + one.logits),
                t * (last * one.stored + one.unembedding),
                t * (first * one.stored + one.layer) + min(t * one.kept, one.vocabulary),
            )
            for one in bench.held
        ]

    def _fitting(self, g: Group, splits: list[Split], room: Room) -> tuple[list[tuple[Split, Picks]], int]:
        """The splits that have a mesh and room, with the plans to judge; the others are counted."""
        found: list[tuple[Split, Picks]] = []
        spared, missed, picks = 0, {}, room.picks
        for split in splits:
            judged, more = picks(split)
            if not judged:
                self._missed(missed, split, room.far(split))
            elif split.mesh or self._laid(g.spread, split, missed):
                found.append((split, judged))
                spared += more
        legal = {split.share.fsdp for split, _ in found} if missed else set()
        for fsdp, miss in missed.items():  # spreads without any legal plan are counted
            if fsdp not in legal:
                self.space.misses(g, fsdp, miss.why, miss.far, miss.kind)
        return found, spared

    def _missed(self, missed: dict[int, Miss], split: Split, far: float) -> None:
        """The smallest plan of each mesh that does not fit."""
        fsdp = split.share.fsdp
        if fsdp not in missed or far < missed[fsdp].far:
            missed[fsdp] = Miss(far, "even shards", split.why)

    def _timed(
        self, g: Group, bench: Bench, t: float, fitting: list[tuple[Split, Picks]], held: list[Triple]
    ) -> list[Point]:
        """The step of every plan: a few numbers of its split, and of the passes that splits share."""
        found, line, passes = [], None, []
        run, chunks, kinds, step_s = g.m - 1 + bench.idle, g.spread.chunks, self.kinds, self.steps.step_s
        hop_bytes = chunks * bench.hop_bytes * t
        for split, picks in fitting:
            if split.line != line:
                line = split.line
                passes = bench.passes.setdefault((g.microbatch, line), list(self.unknown))
            hop_s = hop_bytes * split.hop.s_per_byte + chunks * split.hop.hops_s
            zeros, states, share, moved = split.zeros, split.nbytes, split.share, split.moved
            for z, r in picks:
                one = passes[r]
                if one is None:
                    one = passes[r] = self._pass(g, bench.shape, split, t, r)
                weights = moved[z] or self._moved(g.spread, bench.shape, split, z)
                seconds, nbytes = step_s(g, run, one, hop_s, weights), fullest(states[z], held[r])
                found.append(_tuple(Point, (seconds, nbytes, g, share, kinds[zeros[z]][r])))
        return found

    def _get(self, key: tuple[Any, ...], make: Callable[..., Any], *how: Any, **named: Any) -> Any:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = make(*how, **named)
        return found

    def _bench(self, s: Spread, summed: bool, microbatch: int) -> Bench:
        """`summed`: gradients of several microbatches. `microbatch` is 1, or stands for several sequences."""
        shape = replace(self.unit.shape(s.tp, s.pp, s.chunks), m=1 + summed)
        splits, passes = self._get(("splits", s.tp, s.cp, s.pp, shape.layers, summed), self._splits, s, shape)
        found = self._benches[s, summed, microbatch] = Bench(
            shape=shape,
            idle=idle(s.pp, s.schedule, s.chunks),
            hop_bytes=self.unit.hop_bytes(s.tp),
            held=self._get(("held", s.tp, s.cp, s.pp > 1, microbatch), self._bytes, s, microbatch),
            splits=splits,
            passes=passes,
        )
        return found

    def _bytes(self, s: Spread, microbatch: int) -> list[Held]:
        return [self.unit.held(s.tp, s.cp, remat, s.pp > 1, microbatch) for remat in self.remats]

    def _splits(self, s: Spread, shape: Shape) -> tuple[list[Split], dict[Any, Passes]]:
        """With their passes, none yet."""
        known = self._get(("states", s.tp, s.pp, shape.layers, shape.m), dict)
        found = []
        for fsdp in self.space.splits(s.rest):
            shares = self._shares(s, fsdp)
            for share in shares:
                key = fsdp * s.cp, share.ep, share.expert_tp
                states = known.get(key)
                if states is None:
                    states = known[key] = self._states(s, shape, share)
                found.append(Split(share, states))
            if not shares:
                found.append(Split(Share(fsdp, s.rest // fsdp), States.of((), [], self._none(s, fsdp))))
        return found, {}

    def _shares(self, s: Spread, fsdp: int) -> list[Share]:
        """The ways to spread experts over a stage."""
        return [Share(fsdp, s.rest // fsdp)]

    def _none(self, s: Spread, fsdp: int) -> str:
        """Why there are none of these ways."""
        return ""

    def _states(self, s: Spread, shape: Shape, share: Share) -> States:
        shared = share.fsdp * s.cp
        zeros, why = self.space.zeros(shared)
        if share.expert_tp == 1 and s.tp > 1:  # experts are shared where all else is not
            zeros, why = self.space.tried["zero"], ""
        params, _, ways = self._expert(s, shape, share)
        here = replace(shape, shared=shared, expert=params, expert_shared=ways)
        held = [self.unit.states(here, zero, s.rest * s.cp) for zero in zeros]
        return States.of(zeros, held, why)

    def _expert(self, s: Spread, shape: Shape, share: Share) -> tuple[float, int, int]:
        """Expert parameters of a chip, the chips inside those that hold the same, and how many do."""
        return 0.0, 1, 1

    def _laid(self, s: Spread, split: Split, missed: dict[int, Miss]) -> bool:
        """Whether the machine has such a mesh; its rates, or why not."""
        share = split.share
        try:
            split.lay(self.links.mesh(s.tp, s.cp, share.fsdp, s.pp, share.dp), s.pp)
        except ClusterError as refused:
            missed[share.fsdp] = Miss(float(s.tp * s.cp * share.fsdp), "mesh", str(refused))
            return False
        return True

    def _pass(self, g: Group, shape: Shape, split: Split, t: float, r: int) -> Pass:
        """Layers at the longest stage's pace, and what tensor and context ways take."""
        s = g.spread
        key = "whole", s.pp == 1, s.tp, s.cp, g.microbatch, r, split.line
        forward, backward, math_s = self._get(key, self._whole, s, split, t, self.remats[r])
        return Pass(forward.paced(shape), backward.paced(shape), math_s / s.pp)

    def _whole(self, s: Spread, split: Split, t: float, remat: str) -> tuple[Way, Way, float]:
        """All layers, either way, and the seconds of forward products."""
        share, mesh = split.share, split.mesh
        assert mesh
        one = self.unit.layers(s.tp, remat, share.ep, share.expert_tp, t)
        Y, Z = self._get(
            ("tensor", s.tp, s.pp == 1, remat, mesh.Y, share.ep, share.expert_tp),
            self._tensor,
            s,
            share,
            remat,
            mesh.Y,
        )
        C = self._get(("context", s.tp, s.cp, mesh.C), self._context, s, mesh.C)
        forward = Way.of(one.forward_s, one.math.head, t, Y=Y.forward, C=C.forward, Z=Z.forward)
        backward = Way.of(one.backward_s, 2 * one.math.head, t, Y=Y.backward, C=C.backward, Z=Z.backward)
        return forward, backward, one.math.total

    def _tensor(self, s: Spread, share: Share, remat: str, Y: Rates) -> tuple[Ways, Ways]:
        """Tensor and expert ways."""
        rows = self.unit.moved(s.tp, remat, share.ep, share.expert_tp, s.pp > 1)
        return Ways.of(rows, "Y", Y), Ways.of(rows, "Z", self._exchange(s, share))

    def _context(self, s: Spread, C: Rates) -> Ways:
        return Ways.of(self.unit.context(s.tp, s.cp) if s.cp > 1 else (), "C", C)

    def _exchange(self, s: Spread, share: Share) -> Rates:
        """What sends tokens to their experts."""
        return {}

    def _moved(self, s: Spread, shape: Shape, split: Split, z: int) -> Moved:
        """Gathers, scatters, and sums over copies and pods."""
        zero, share, mesh = split.zeros[z], split.share, split.mesh
        assert mesh
        shared = share.fsdp * s.cp
        key = "moved", s.tp, s.pp, shape.layers, shared, zero, mesh.X, mesh.R, share.ep, share.expert_tp
        found = self._get(key, self._weights, s, shape, share, mesh, zero)
        split.moved[z] = found
        return found

    def _weights(self, s: Spread, shape: Shape, share: Share, mesh: Mesh, zero: int) -> Moved:
        params, inside, ways = self._expert(s, shape, share)
        groups = (Params(shape.dense, mesh.X, share.fsdp * s.cp),)
        if params:
            axis = self.links.level(inside, ways) if ways > 1 else self.links.none
            groups += (Params(params, axis, ways),)
        return self.weights.moved(zero, shape.layers, groups, mesh, share.dp)
