"""What do all plans of one group take and hold? In a few sums each, equal to `training.step` (a test).

The overlap is that of `training.times`: what cannot overlap is waited for; of the rest, axis by axis, the
longest is waited for as far as nothing hides it. For dense models. Chapter: Training LLaMA 3.
"""

from math import nan
from typing import Any, NamedTuple

from scalingbook_lib import pipelines
from scalingbook_lib.clusters import ClusterError
from scalingbook_lib.planner.links import Axis, Links, Mesh
from scalingbook_lib.planner.probe import Passes, Probe, Row, Stage
from scalingbook_lib.planner.ranking import Point
from scalingbook_lib.planner.space import Group, Space, frontier
from scalingbook_lib.training import Case, Efficiency, Plan

LINEAR = ("1f1b", "gpipe", "interleaved")  # idle in proportion to the sum of both passes


class Miss(NamedTuple):
    """Why a spread is not legal; `far` is the memory of the smallest of its plans, or a size."""

    kind: str
    far: float
    why: str
    ways: dict[str, Any]


class Known(NamedTuple):
    """What all spreads of a group share."""

    stage: Stage
    held: list[float]  # bytes of activations, per rematerialization
    idle: float  # over the sum of both passes; NaN where it is no such share
    passes: dict[tuple[int, int], list[tuple[float, ...]]]


class Moved(NamedTuple):
    """Weights and gradients, one way: seconds with each microbatch; and of one with all, longest and sum."""

    each: float
    longest: float
    total: float


type Spread = tuple[list[Point], int, Miss | None]  # plans judged, plans spared, or why there is none
type Both = tuple[Moved, Moved]


class Quick:
    """The dense plans of one space."""

    def __init__(self, space: Space, efficiency: Efficiency) -> None:
        case = Case(space.model, space.machine, batch=space.batch, T=space.T, efficiency=efficiency)
        self.zeros, self.remats = space.tried["zero"], space.tried["remat"]
        self.probe = Probe(case, space.constant, self.zeros, self.remats)
        self.links = Links(space.machine, space.pods, efficiency)
        self.room, self.T, self.pods = space.machine.chip.hbm_bytes, space.T, space.pods
        self.fixed_s = efficiency.fixed_s
        self.hidden = Plan(**space.constant).hidden * efficiency.overlap
        self._known: dict[Any, Any] = {}
        self._rows = {zero: self.probe.weights(zero) for zero in self.zeros}

    def group(self, g: Group) -> Known:
        """What to know before its spreads."""
        ways, most = g[:1] + g[2:5], g.M if g.schedule == "gpipe" else min(g.M, 2 * g.pp)
        stage = self._get(("stage", *ways), lambda: self.probe.stage(*ways))
        held = self._get(("held", *ways, most), lambda: self.probe.activations(*ways, most))
        idle = self._get(("idle", *ways[1:]), lambda: _idle(*ways[1:]))
        t = g.microbatch * self.T / g.cp
        return Known(stage, [t * one for one in held], idle, {})

    def _get(self, key: tuple[Any, ...], make: Any) -> Any:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def spread(self, g: Group, at: Known, fsdp: int, zeros: tuple[int, ...], every: bool) -> Spread:
        """Every plan of a mesh, microbatch and schedule that fits."""
        shared, dp = fsdp * g.cp, g.rest // fsdp
        state = [self._state(at.stage, zero, shared) for zero in zeros]
        judged, spared = frontier(state, at.held, self.room, every)
        if not judged:
            return [], 0, _too_large(g, fsdp, min(state) + min(at.held))
        try:
            mesh = self.links.mesh(g.tp, g.cp, fsdp, g.pp, dp)
        except ClusterError as refused:
            ways = {"tp": g.tp, "cp": g.cp, "fsdp": fsdp, "pp": g.pp, "dp": dp}
            return [], 0, Miss("mesh", g.tp * g.cp * fsdp, str(refused), ways)
        key = id(mesh.Y), id(mesh.C)
        passes = at.passes.get(key) or at.passes.setdefault(key, self._passes(g, at.stage, mesh))
        hop = _sums(at.stage.hops, mesh.P, g.microbatch * self.T / g.cp)
        points = []
        for z, r in judged:
            moved = self._moved(g, at.stage, mesh, shared, dp, zeros[z])
            ways = shared if zeros[z] else 1
            step_s = self._step_s(g, at, passes[r], hop, moved, at.stage.optimizer / ways)
            points.append(
                Point(step_s, state[z] + at.held[r], g.pp, g.cp, g.tp, fsdp, dp, self.pods, 1, None, zeros[z],
                      self.remats[r], g.schedule, g.chunks, g.microbatch)
            )  # fmt: skip
        return points, spared, None

    def _state(self, stage: Stage, zero: int, shared: int) -> float:
        z = self.zeros.index(zero)
        return stage.alone[z] if shared == 1 else stage.fixed[z] + stage.parted[z] / shared

    def _passes(self, g: Group, stage: Stage, mesh: Mesh) -> list[tuple[float, ...]]:
        """Forward, then backward: what is waited for, and what tensor and context ways take beside it."""
        t, found = g.microbatch * self.T / g.cp, []
        context = _sums(self._get((g.tp, g.cp), lambda: self._context(g)), mesh.C, t)
        for remat in self.remats:
            one: Passes = self._get((g.tp, remat), lambda remat=remat: self.probe.passes(g.tp, remat))
            tensor = _sums(one.tensor, mesh.Y, t)
            ends = _sums(one.ends, mesh.Y, t) if g.pp == 1 else (0.0, 0.0, 0.0, 0.0)
            share, row = stage.share, []
            for w, work, head_s in ((0, one.forward, one.head * t), (2, one.backward, 2 * one.head * t)):
                layers_s, b = work.seconds(t), w + 1
                paced = (
                    max(share * layers_s, stage.last * layers_s + head_s) if g.pp > 1 else layers_s + head_s
                )
                waited = paced + share * (tensor[w] + context[w]) + ends[w]
                row += [waited, share * tensor[b] + ends[b], share * context[b]]
            found.append((*row, one.math * t / g.pp))
        return found

    def _context(self, g: Group) -> tuple[Row, ...]:
        return self.probe.context(g.tp, g.cp) if g.cp > 1 else ()

    def _moved(self, g: Group, stage: Stage, mesh: Mesh, shared: int, dp: int, zero: int) -> Both:
        """Gathers, scatters, and sums over copies and pods; they do not depend on the microbatch."""
        key = "moved", g.tp, g.cp, g.pp, stage.layers, shared, zero
        if key not in self._known:
            parts = {"X": stage.dense, "R": stage.dense / shared, "S": stage.dense / (shared * dp)}
            each, once = [0.0, 0.0], [{"X": 0.0, "R": 0.0, "S": 0.0}, {"X": 0.0, "R": 0.0, "S": 0.0}]
            for row in self._rows[zero]:
                if {"X": shared, "R": dp, "S": self.pods}[row.axes] > 1:
                    axis = {"X": mesh.X, "R": mesh.R}
                    rate = self.links.pods if row.axes == "S" else axis[row.axes][row.call]
                    one = row.nbytes * parts[row.axes] * rate.s_per_byte + stage.layers * rate.hops_s
                    if row.once:
                        once[row.when == "bwd"][row.axes] += row.times * one
                    else:
                        each[row.when == "bwd"] += row.times * one
            self._known[key] = tuple(_merged(*both) for both in zip(each, once, strict=True))
        return self._known[key]

    def _step_s(
        self,
        g: Group,
        at: Known,
        passes: tuple[float, ...],
        hop: tuple[float, ...],
        moved: Both,
        update_s: float,
    ) -> float:
        """The step's seconds: all microbatches, one of them beside what comes once a step; bubble; update."""
        busy_f, Y_f, C_f, busy_b, Y_b, C_b, weight = passes
        forward, backward = moved
        busy_f, busy_b, P_f, P_b = busy_f + hop[0], busy_b + hop[2], hop[1], hop[3]
        f, last_f = self._pass((busy_f, Y_f, C_f, P_f), forward)
        b, last_b = self._pass((busy_b, Y_b, C_b, P_b), backward)
        idle = at.idle * (f + b) if at.idle == at.idle else _bubble(g, f, b, weight)
        return (g.M - 1) * (f + b) + last_f + last_b + idle + update_s + self.fixed_s

    def _pass(self, beside: tuple[float, ...], moved: Moved) -> tuple[float, float]:
        """One microbatch, and the one that also has what comes once; what is not hidden is waited for."""
        low, h = max(beside), self.hidden
        each, last = max(low, moved.each), max(low, moved.longest)
        if h == 1:
            return each, last
        rest = (1 - h) * sum(beside)
        return h * each + rest + (1 - h) * moved.each, h * last + rest + (1 - h) * moved.total


def _merged(each: float, once: dict[str, float]) -> Moved:
    last = each + once["X"]
    return Moved(each, max(last, once["R"], once["S"]), last + once["R"] + once["S"])


def _sums(rows: tuple[Row, ...], axis: Axis, t: float) -> tuple[float, float, float, float]:
    """Waited for and beside, forward; waited for and beside, backward."""
    found = [0.0, 0.0, 0.0, 0.0]
    for row in rows:
        rate = axis[row.call]
        seconds = row.times * (row.nbytes * t * rate.s_per_byte + rate.hops_s)
        found[2 * (row.when == "bwd") + row.overlappable] += seconds
    return found[0], found[1], found[2], found[3]


def _idle(pp: int, schedule: str, chunks: int) -> float:
    """Idle time over the sum of both passes of a microbatch; NaN where it is no such share."""
    if pp == 1:
        return 0.0
    if schedule not in LINEAR:
        return nan
    return float(pipelines.bubble(schedule, pp, pp, chunks, forward_s=1.0, backward_s=1.0).idle_s) / 2


def _bubble(g: Group, f: float, b: float, weight: float) -> float:
    found = pipelines.bubble(
        g.schedule, g.pp, g.M, g.chunks, forward_s=f, backward_s=b, weight_s=min(weight, b)
    )
    return max(float(found.idle_s), 0.0)


def _too_large(g: Group, fsdp: int, far: float) -> Miss:
    ways = {"tp": g.tp, "cp": g.cp, "fsdp": fsdp, "pp": g.pp, "dp": g.rest // fsdp, "schedule": g.schedule}
    return Miss("memory", far, "", ways | {"chunks": g.chunks, "microbatch": g.microbatch})
