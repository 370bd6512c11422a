"""What do all plans of one group take and hold? In a few sums each, equal to `training.step` (a test).

The overlap is that of `training.times`: what cannot overlap is waited for; of the rest, axis by axis, the
longest is waited for as far as nothing hides it. For dense models. Chapter: Training LLaMA 3.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from scalingbook_lib.machines.clusters import ClusterError
from scalingbook_lib.planner.bubbles import idle, idle_s, kept_at_once
from scalingbook_lib.planner.links import Axis, Mesh, links
from scalingbook_lib.planner.probe import Hop, Layers, probe
from scalingbook_lib.planner.ranking import Point
from scalingbook_lib.planner.space import Group, Space
from scalingbook_lib.planner.splits import Picks, Room, Split, States
from scalingbook_lib.planner.sums import Moved, Pass, Way, Ways, moved, paced, sums
from scalingbook_lib.planner.weights import Weights
from scalingbook_lib.training import Efficiency, Plan
from scalingbook_lib.training.shape import Shape

type Passes = list[Pass | None]  # per rematerialization, as far as they were asked for


class Bench(NamedTuple):
    """What all groups of a mesh and schedule share, whatever the microbatch."""

    shape: Shape
    idle: float  # over the sum of both passes; NaN where it is no such share
    hop: Hop
    kept: list[tuple[float, float, float]]
    splits: list[Split]
    passes: dict[tuple[int, object], Passes]  # of a microbatch on a line


type Misses = dict[int, tuple[float, str, str]]  # by fsdp: how far, which kind, and why
_point = tuple.__new__  # a third of the time that Point(...) takes


class Quick:
    """The dense plans of one space."""

    def __init__(self, space: Space, efficiency: Efficiency) -> None:
        self.space, self.zeros, self.remats = space, space.tried["zero"], space.tried["remat"]
        constant = tuple(sorted(space.constant.items()))
        self.probe = probe(space.model, space.machine, space.T, efficiency, constant, self.remats[0])
        self.links = links(space.machine, space.pods, efficiency)
        self.fixed_s, self.hidden = efficiency.fixed_s, Plan(**space.constant).hidden * efficiency.overlap
        self.update_s = self.probe.update_s()
        self.weights = Weights(self.probe, self.links, space.pods)
        self.unknown: Passes = [None for _ in self.remats]
        self._benches: dict[tuple[Any, ...], Bench] = {}
        self._known: dict[Any, Any] = {}

    def judge(self, g: Group, every: bool, found: list[Point]) -> tuple[int, int]:
        """Every plan of a group that fits goes to `found`; how many spreads are legal, and plans spared."""
        bench = self._benches.get(g[:5]) or self._bench(g)
        t = g.microbatch * self.space.T / g.cp
        room = Room(self._held(g, bench, t), self.space.machine.chip.hbm_bytes, every)
        fitting, spared = self._fitting(g, bench.splits, room)
        self._time(g, bench, t, fitting, room.held, found)
        return len({split.fsdp for split, _ in fitting}), spared

    def _held(self, g: Group, bench: Bench, t: float) -> list[float]:
        """Activations, per rematerialization: of the first stage, or the last with its logits."""
        first, last = bench.shape.share * kept_at_once(*g[2:5], g.M), bench.shape.last
        return [t * max(first * kept + working, last * kept + logits) for kept, working, logits in bench.kept]

    def _fitting(self, g: Group, splits: list[Split], room: Room) -> tuple[list[tuple[Split, Picks]], int]:
        """The splits that have a mesh and room, with the plans to judge; the others are counted."""
        found: list[tuple[Split, Picks]] = []
        spared, missed, picks = 0, {}, room.picks
        for split in splits:
            judged, more = picks(split)
            if not judged:
                self._missed(missed, split, room.least)
            elif split.mesh or self._laid(g, split, missed):
                found.append((split, judged))
                spared += more
        if missed:
            self._misses(g, missed, {split.fsdp for split, _ in found})
        return found, spared

    def _time(
        self, g: Group, bench: Bench, t: float, fitting: list[tuple[Split, Picks]], held: list[float],
        found: list[Point],
    ) -> None:  # fmt: skip
        """The step of every plan: a few numbers of its split, and of the passes that splits share."""
        tp, cp, pp, schedule, chunks, microbatch, M, _ = g
        pods, remats, step_s, line = self.space.pods, self.remats, self._step_s, None
        passes: Passes = []
        hops, run = chunks * bench.hop.times, M - 1 + bench.idle
        hop_bytes = hops * bench.hop.nbytes * t
        for split, judged in fitting:
            if split.line != line:
                line = split.line
                passes = bench.passes.setdefault((microbatch, line), list(self.unknown))
            hop = hop_bytes * split.hop.s_per_byte + hops * split.hop.hops_s
            for z, r in judged:
                one = passes[r]
                if one is None:
                    one = passes[r] = self._pass(g, bench.shape, split, t, r)
                weights = split.moved[z] or self._moved(g, bench, split, z)
                found.append(_point(Point, (
                    step_s(g, run, one, hop, weights), split.states[z] + held[r], pp, cp, tp, split.fsdp,
                    split.dp, pods, split.ep, split.expert_tp, split.zeros[z], remats[r], schedule, chunks,
                    microbatch,
                )))  # fmt: skip

    def _missed(self, missed: Misses, split: Split, least: float) -> None:
        """The smallest plan of each mesh that does not fit."""
        far = min(split.states, default=0.0) + least
        if split.fsdp not in missed or far < missed[split.fsdp][0]:
            missed[split.fsdp] = far, "even shards", split.why

    def _misses(self, g: Group, missed: Misses, legal: set[int]) -> None:
        """Spreads without any legal plan are counted."""
        for fsdp, (far, kind, why) in missed.items():
            if fsdp not in legal:
                self.space.misses(g, fsdp, why, far, kind)

    def _step_s(self, g: Group, run: float, one: Pass, hop: float, weights: Moved) -> float:
        """All microbatches, one of them beside what comes once a step; the bubble; the update."""
        f, f_longest, f_sum, b, b_longest, b_sum, update = weights
        low_f, sum_f, low_b, sum_b, weight = one
        low_f, low_b = (low_f if low_f > hop else hop), (low_b if low_b > hop else hop)
        each_f, last_f = (f if f > low_f else low_f), (f_longest if f_longest > low_f else low_f)
        each_b, last_b = (b if b > low_b else low_b), (b_longest if b_longest > low_b else low_b)
        h = self.hidden
        if h != 1:  # what is not hidden is waited for
            sum_f, sum_b = sum_f + hop, sum_b + hop
            each_f, last_f = h * each_f + (1 - h) * (sum_f + f), h * last_f + (1 - h) * (sum_f + f_sum)
            each_b, last_b = h * each_b + (1 - h) * (sum_b + b), h * last_b + (1 - h) * (sum_b + b_sum)
        once = last_f + last_b + update + self.fixed_s
        if run == run:
            return run * (each_f + each_b) + once
        waits = idle_s(g.pp, g.schedule, g.chunks, g.M, each_f, each_b, weight)
        return (g.M - 1) * (each_f + each_b) + waits + once

    def _get(self, key: tuple[Any, ...], make: Callable[..., Any], *how: Any) -> Any:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = make(*how)
        return found

    def _bench(self, g: Group) -> Bench:
        shape = self.probe.shape(g.tp, g.pp, g.chunks)
        splits, passes = self._get(("splits", g.tp, g.cp, g.pp, shape.layers), self._splits, g, shape)
        kept = self._get(("kept", g.tp, g.cp), self._kept, g.tp, g.cp)
        found = Bench(shape, idle(*g[2:5]), self.probe.hop(g.tp), kept, splits, passes)
        self._benches[g[:5]] = found
        return found

    def _kept(self, tp: int, cp: int) -> list[tuple[float, float, float]]:
        """Bytes of a token, per rematerialization: kept, while a layer is at work, and the logits."""
        found = (self.probe.layers(tp, remat, 1, None) for remat in self.remats)
        more = self.probe.across(tp, cp)
        return [(one.kept, one.working + more, one.logits) for one in found]

    def _splits(self, g: Group, shape: Shape) -> tuple[list[Split], dict[Any, Passes]]:
        """With their passes, none yet."""
        return self._shared(g, shape, self._get(("states", g.tp, g.pp, shape.layers), dict)), {}

    def _shared(self, g: Group, shape: Shape, known: dict[Any, States]) -> list[Split]:
        found = []
        for fsdp in self.space.splits(g.rest):
            ways = fsdp * g.cp
            states = known.get(ways)
            if states is None:
                states = known[ways] = self._states(g, shape, ways)
            found.append(Split(fsdp, g.rest // fsdp, states))
        return found

    def _states(self, g: Group, shape: Shape, shared: int) -> States:
        zeros, why = self.space.zeros(shared)
        kinds = [self.probe.state(g.tp, zero) for zero in zeros]
        return States.of(zeros, [kind.held(shape.dense, shape.layers, shared) for kind in kinds], why)

    def _laid(self, g: Group, split: Split, missed: Misses) -> bool:
        """Whether the machine has such a mesh; its rates, or why not."""
        try:
            split.lay(self.links.mesh(g.tp, g.cp, split.fsdp, g.pp, split.dp), g.pp)
        except ClusterError as refused:
            missed[split.fsdp] = float(g.tp * g.cp * split.fsdp), "mesh", str(refused)
            return False
        return True

    def _pass(self, g: Group, shape: Shape, split: Split, t: float, r: int) -> Pass:
        """Layers at the longest stage's pace, and what tensor and context ways take."""
        key = "whole", g.pp == 1, g.tp, g.cp, g.microbatch, r, split.line
        f, b, math = self._get(key, self._whole, g, split, t, r)
        share, last, staged = shape.share, shape.last, g.pp > 1
        return Pass(*paced(f, share, last, staged), *paced(b, share, last, staged), math / g.pp)

    def _whole(self, g: Group, split: Split, t: float, r: int) -> tuple[Way, Way, float]:
        """All layers, either way: arithmetic, the unembedding, what is waited for, and what is beside."""
        mesh, one, found = split.mesh, self.probe.layers(g.tp, self.remats[r], split.ep, split.expert_tp), []
        assert mesh
        C = self._get(("context", g.tp, g.cp, mesh.C), self._context, g, mesh.C)
        key = "tensor", g.tp, r, mesh.Y, split.ep, split.expert_tp
        Y, ends, Z = self._get(key, self._tensor, one, mesh.Y, g.tp, split)
        for w, line, head_s in ((0, one.forward, one.head * t), (2, one.backward, 2 * one.head * t)):
            end, beside = (ends[w].at(t), ends[w + 1].at(t)) if g.pp == 1 else (0.0, 0.0)
            waited = Y[w].at(t) + C[w].at(t) + Z[w].at(t)
            found.append((line.at(t), head_s, waited, Y[w + 1].at(t), C[w + 1].at(t), end, beside))
        return found[0], found[1], one.math * t

    def _tensor(self, one: Layers, axis: Axis, tp: int, split: Split) -> tuple[Ways, Ways, Ways]:
        return sums(one.tensor, axis), sums(one.ends, axis), sums((), axis)

    def _context(self, g: Group, axis: Axis) -> Ways:
        return sums(self.probe.context(g.tp, g.cp) if g.cp > 1 else (), axis)

    def _moved(self, g: Group, bench: Bench, split: Split, z: int) -> Moved:
        """Gathers, scatters, and sums over copies and pods."""
        zero, shared, shape, mesh = split.zeros[z], split.fsdp * g.cp, bench.shape, split.mesh
        assert mesh
        key = "moved", g.tp, g.pp, shape.layers, shared, zero, mesh.X, mesh.R
        found = split.moved[z] = self._get(key, self._weights, shape, split, mesh, zero, shared)
        return found

    def _weights(self, shape: Shape, split: Split, mesh: Mesh, zero: int, shared: int) -> Moved:
        parts = self.weights.parts(zero, mesh, mesh.X, shared, split.dp, shape.dense, shape.layers)
        return moved(parts, self.update_s * shape.dense / (shared if zero else 1))
