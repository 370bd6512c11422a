"""What do all plans of one group take and hold? In a few sums each, equal to `training.step` (a test).

The overlap is that of `training.times`: what cannot overlap is waited for; of the rest, axis by axis, the
longest is waited for as far as nothing hides it. For dense models. Chapter: Training LLaMA 3.
"""

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

from scalingbook_lib.clusters import ClusterError
from scalingbook_lib.planner.bubbles import idle, idle_s, kept_at_once
from scalingbook_lib.planner.links import Axis, Mesh, links
from scalingbook_lib.planner.probe import Hop, Layers, probe
from scalingbook_lib.planner.ranking import Point
from scalingbook_lib.planner.space import Group, Space, frontier
from scalingbook_lib.planner.sums import Moved, Pass, Way, Ways, moved, paced, sums
from scalingbook_lib.training import Efficiency, Plan
from scalingbook_lib.training.shape import Shape

FIRST = [(0, 0)]  # of ZeRO and of rematerialization, the least of each


class Split:
    """One way to share the data ranks and the experts, with all that does not depend on the microbatch."""

    __slots__ = ("dp", "ep", "expert_tp", "fsdp", "mesh", "most", "moved", "states", "ways", "why", "zeros")

    def __init__(
        self, fsdp: int, dp: int, zeros: tuple[int, ...], why: str, states: list[float], ep: int = 1,
        expert_tp: int | None = None,
    ) -> None:  # fmt: skip
        self.fsdp, self.dp, self.zeros, self.why, self.states = fsdp, dp, zeros, why, states
        self.ep, self.expert_tp = self.ways = ep, expert_tp
        self.most = max(states, default=inf)
        self.mesh: Mesh | None = None
        self.moved: list[Moved | None] = [None] * len(zeros)


class Bench(NamedTuple):
    """What all groups of a mesh and schedule share, whatever the microbatch."""

    shape: Shape
    idle: float  # over the sum of both passes; NaN where it is no such share
    hop: Hop
    splits: list[Split]


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
        self._known: dict[Any, Any] = {}

    def judge(self, g: Group, every: bool, found: list[Point]) -> tuple[int, int]:
        """Every plan of a group that fits goes to `found`; how many spreads are legal, and plans spared."""
        tp, cp, pp, schedule, chunks, microbatch, _, _ = g
        bench: Bench = self._get((tp, cp, pp, schedule, chunks), self._bench, g)
        t, room, pods = microbatch * self.space.T / cp, self.space.machine.chip.hbm_bytes, self.space.pods
        held = [t * one for one in self._get(("held", *g[2:5], tp, g.M), self._held, g, bench.shape)]
        most, least, kinds = max(held), min(held), len(held)
        missed, spared, legal, remats = {}, 0, set(), self.remats
        hops = chunks * bench.hop.times
        hop_bytes = hops * bench.hop.nbytes * t
        on: tuple[Axis, Axis, tuple[int, int | None]] | None = None
        known: list[Pass | None] = []
        for split in bench.splits:
            if not every and split.most + most <= room:
                judged, more = FIRST, len(split.zeros) * kinds - 1
            else:
                judged, more = frontier(split.states, held, room, every)
            if not judged:
                self._missed(missed, split, least)
                continue
            mesh = split.mesh or self._mesh(g, split, missed)
            if mesh is None:
                continue
            legal.add(split.fsdp)
            spared += more
            if on is None or mesh.Y is not on[0] or mesh.C is not on[1] or split.ways != on[2]:
                on, known = (mesh.Y, mesh.C, split.ways), [None] * kinds
            hop = 0.0
            if pp > 1:
                rate = mesh.P["permute"]
                hop = hop_bytes * rate.s_per_byte + hops * rate.hops_s
            for z, r in judged:
                one = known[r]
                if one is None:
                    one = known[r] = self._pass(g, bench.shape, split, t, r)
                weights = split.moved[z] or self._moved(g, bench, split, z)
                step_s = self._step_s(g, bench.idle, one, hop, weights)
                found.append(_point(Point, (
                    step_s, split.states[z] + held[r], pp, cp, tp, split.fsdp, split.dp, pods, split.ep,
                    split.expert_tp, split.zeros[z], remats[r], schedule, chunks, microbatch,
                )))  # fmt: skip
        for fsdp, (far, kind, why) in missed.items():
            if fsdp not in legal:
                self.space.misses(g, fsdp, why, far, kind)
        return len(legal), spared

    def _missed(self, missed: dict[int, tuple[float, str, str]], split: Split, least: float) -> None:
        """The smallest plan of each mesh that does not fit."""
        far = min(split.states, default=0.0) + least
        if split.fsdp not in missed or far < missed[split.fsdp][0]:
            missed[split.fsdp] = far, "even shards", split.why

    def _step_s(self, g: Group, share: float, one: Pass, hop: float, weights: Moved) -> float:
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
        both = each_f + each_b
        waits = (
            share * both
            if share == share
            else idle_s(g.pp, g.schedule, g.chunks, g.M, each_f, each_b, weight)
        )
        return (g.M - 1) * both + last_f + last_b + waits + update + self.fixed_s

    def _get(self, key: tuple[Any, ...], make: Callable[..., Any], *how: Any) -> Any:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = make(*how)
        return found

    def _bench(self, g: Group) -> Bench:
        shape = self.probe.shape(g.tp, g.pp, g.chunks)
        hop = self._get(("hop", g.tp), self.probe.hop, g.tp)
        splits = self._get(("splits", g.tp, g.cp, g.pp, shape.layers), self._splits, g, shape)
        return Bench(shape, self._get(("idle", *g[2:5]), idle, *g[2:5]), hop, splits)

    def _splits(self, g: Group, shape: Shape) -> list[Split]:
        return [self._split(g, shape, fsdp) for fsdp in self.space.splits(g.rest)]

    def _split(self, g: Group, shape: Shape, fsdp: int) -> Split:
        zeros, why = self.space.zeros(fsdp * g.cp)
        key = "states", g.tp, g.pp, shape.layers, fsdp * g.cp
        return Split(fsdp, g.rest // fsdp, zeros, why, self._get(key, self._states, g, shape, key[-1], zeros))

    def _states(self, g: Group, shape: Shape, shared: int, zeros: tuple[int, ...]) -> list[float]:
        kinds = [self._get(("state", g.tp, zero), self.probe.state, g.tp, zero) for zero in zeros]
        return [kind.held(shape.dense, shape.layers, shared) for kind in kinds]

    def _mesh(self, g: Group, split: Split, missed: dict[int, tuple[float, str, str]]) -> Mesh | None:
        """The rates under the mesh; counted as refused where the machine has no such mesh."""
        try:
            split.mesh = self.links.mesh(g.tp, g.cp, split.fsdp, g.pp, split.dp)
        except ClusterError as refused:
            missed[split.fsdp] = float(g.tp * g.cp * split.fsdp), "mesh", str(refused)
        return split.mesh

    def _layers(self, tp: int, r: int) -> Layers:
        return self._get(("layers", tp, r), self.probe.layers, tp, self.remats[r])

    def _held(self, g: Group, shape: Shape) -> list[float]:
        """Activations of a token, per rematerialization: of the first stage, or the last with its logits."""
        often, found = self._get(("live", *g[2:5], g.M), kept_at_once, *g[2:5], g.M), []
        for r in range(len(self.remats)):
            one = self._layers(g.tp, r)
            first, last = shape.share * one.kept * often, shape.last * one.kept + one.logits
            found.append(one.working + (max(first, last) if g.pp > 1 else last))
        return found

    def _pass(self, g: Group, shape: Shape, split: Split, t: float, r: int) -> Pass:
        """Layers at the longest stage's pace, and what tensor and context ways take."""
        assert split.mesh
        on = g.tp, g.cp, g.microbatch, r, split.ep, split.expert_tp, id(split.mesh.Y), id(split.mesh.C)
        return self._get(("pass", g.pp, shape.layers, *on), self._one, g, shape, split, t, on)

    def _one(self, g: Group, shape: Shape, split: Split, t: float, on: tuple[Any, ...]) -> Pass:
        f, b, math = self._get(("whole", g.pp == 1, *on), self._whole, g, split, t, on[3])
        share, last, staged = shape.share, shape.last, g.pp > 1
        return Pass(*paced(f, share, last, staged), *paced(b, share, last, staged), math / g.pp)

    def _whole(self, g: Group, split: Split, t: float, r: int) -> tuple[Way, Way, float]:
        """All layers, either way: arithmetic, the unembedding, what is waited for, and what is beside."""
        mesh, one, found = split.mesh, self.probe.layers(g.tp, self.remats[r], split.ep, split.expert_tp), []
        assert mesh
        C = self._get(("context", g.tp, g.cp, id(mesh.C)), self._context, g, mesh.C)
        key = "tensor", g.tp, r, id(mesh.Y), split.ep, split.expert_tp
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
        key = "moved", g.tp, g.pp, shape.layers, shared, zero, id(mesh.X), id(mesh.R)
        found = split.moved[z] = self._get(key, self._weights, shape, split, zero, shared)
        return found

    def _weights(self, shape: Shape, split: Split, zero: int, shared: int) -> Moved:
        assert split.mesh
        parts = self._parts(split, zero, split.mesh.X, shared, shape.dense, shape.layers)
        return moved(parts, self.update_s * shape.dense / (shared if zero else 1))

    def _parts(self, split: Split, zero: int, X: Axis, ways: int, params: float, layers: int) -> list[float]:
        """Of X with each microbatch and once; of R and S, which hold one part of what is shared, once."""
        found, copies = [0.0] * 8, split.dp * ways
        if ways > 1:
            found[:4] = self._copies(zero, "X", X, params, layers)
        if split.dp > 1 and split.mesh:
            found[4:6] = self._copies(zero, "R", split.mesh.R, params / ways, layers)[2:]
        if self.space.pods > 1:
            found[6:] = self._copies(zero, "S", self.links.pods, params / copies, layers)[2:]
        return found

    def _copies(self, zero: int, letter: str, axis: Axis, n: float, layers: int) -> tuple[float, ...]:
        """Seconds for n parameters: forward and backward with each microbatch, and both once a step."""
        f, b, F, B, f_hops, b_hops, F_hops, B_hops = self._get(
            (zero, letter, id(axis)), self._rows, zero, letter, axis
        )
        return (
            n * f + layers * f_hops,
            n * b + layers * b_hops,
            n * F + layers * F_hops,
            n * B + layers * B_hops,
        )

    def _rows(self, zero: int, letter: str, axis: Axis) -> list[float]:
        slopes, bases = [0.0] * 4, [0.0] * 4
        for row in self._get(("weights", zero), self.probe.weights, zero):
            if row.axes == letter:
                rate, k = axis[row.call], 2 * row.once + (row.when == "bwd")
                slopes[k] += row.times * row.nbytes * rate.s_per_byte
                bases[k] += row.times * rate.hops_s
        return slopes + bases
