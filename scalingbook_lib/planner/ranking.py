"""What did the search find? The best plans, why the first beats the second, and what was refused.

Chapter: Training LLaMA 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any, NamedTuple

from scalingbook_lib import training
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner.compare import Comparison
from scalingbook_lib.planner.spread import Group, Policy, Sharing, ways
from scalingbook_lib.planner.tally import Rejected
from scalingbook_lib.training import Plan, TrainingEfficiency, TrainingStep
from scalingbook_lib.units import Result, count, percent, si


class Point(NamedTuple):
    """One legal plan of a search: its step, a chip's memory, and how it is spread."""

    step_s: float
    memory_bytes: float
    group: Group
    sharing: Sharing
    policy: Policy

    @property
    def ways(self) -> dict[str, Any]:
        """What makes the plan: fields of `training.Plan`."""
        return {**ways(self.group, self.sharing), **self.policy._asdict()}


class Judged(NamedTuple):
    """A plan with its step."""

    plan: Plan
    step: TrainingStep

    def __str__(self) -> str:
        return str(self.step)


@dataclass(frozen=True, kw_only=True)
class Ranking(Result):
    """Every legal plan for a model on a machine, the best first, and the rejected by reason.

    A spread is a mesh, a microbatch and a schedule; `judged` plans are spreads with a kind of ZeRO and a
    rematerialization. `spared` plans fit too, but do more of one and no less of the other than a judged
    one of the same spread: no law lets them be faster. A search that was `stopped` has seen a part of all.
    """

    model: Transformer
    machine: Machine
    batch: int
    T: int
    efficiency: TrainingEfficiency
    pods: int
    fixed: dict[str, Any]
    tried: dict[str, tuple[Any, ...]]
    constant: dict[str, Any] = field(repr=False)
    points: list[Point] = field(repr=False)
    best: tuple[Judged, ...]
    spreads: int
    legal: int
    spared: int
    rejected: tuple[Rejected, ...]
    stopped: bool = False

    @property
    def judged(self) -> int:
        """How many plans were timed."""
        return len(self.points)

    @property
    def winner(self) -> Judged:
        """The best; a ValueError that tells the nearest misses where there is none."""
        if not self.best:
            raise ValueError(str(self))
        return self.best[0]

    @property
    def runner_up(self) -> Judged:
        """The best plan with other tensor ways or stages than the winner; else simply the second."""
        best = self.winner.plan
        spreads = ((p.group.spread, p) for p in self.points)
        others = [p for s, p in spreads if (s.tp, s.pp) != (best.tp, best.pp)]
        if not others and len(self.best) < 2:
            raise ValueError("one plan is legal, and there is no other to compare it with")
        if not others:
            return self.best[1]
        step = self.step(first(others, 1)[0])
        return Judged(step.plan, step)

    @property
    def why(self) -> Comparison:
        """Why the winner wins over the runner-up, term by term."""
        return Comparison(self.winner.step, self.runner_up.step)

    def plan(self, point: Point) -> Plan:
        """The plan of a point."""
        return Plan(**{**self.constant, **point.ways})

    def step(self, point: Point) -> TrainingStep:
        """The step of a point, by term."""
        asked = {"batch": self.batch, "T": self.T, "efficiency": self.efficiency}
        return training.step(self.model, self.machine, self.plan(point), **asked)

    @property
    def counts(self) -> str:
        """How many plans there are, and why not more."""
        refused = "; ".join(map(str, self.rejected))
        spared = f", {self.spared:,} more cannot be faster" if self.spared else ""
        return (
            f"{self.spreads:,} ways to spread it, {self.legal:,} legal, {self.judged:,} plans judged"
            f"{spared}; rejected: {refused or 'none'}"
        )

    @property
    def table(self) -> str:
        """The best plans, a line each."""
        return "\n".join(("  ".join(_HEADER), *map("  ".join, map(_line, self.best))))

    def __str__(self) -> str:
        head = f"{self.model.name}, {count(self.batch * self.T)} tokens on {self.machine.name}"
        if not self.best:
            return f"{head}: no plan is legal. {self.counts}"
        also = f"\nNext, {self.why}" if len(self.points) > 1 else ""
        return f"{head}: {self.winner.plan} is the best.\n{self.table}{also}\n{self.counts}"

    def __iter__(self) -> Iterator[Judged]:
        return iter(self.best)


def order(point: Point) -> tuple[Any, ...]:
    """By time to ten digits; of equals, fewer stages, then context, tensor, ZeRO, ..., then less memory."""
    ways = point.ways
    first = ways["pp"], ways["cp"], ways["tp"], ways["zero"]  # of equals the simplest: what is easiest to run
    rest = [(isinstance(f, str), f if isinstance(f, int) else 0, str(f)) for f in map(ways.get, _ORDER)]
    return (float(f"{point.step_s:.9e}"), *first, rest)  # comparable, whatever the types


_ORDER = ("fsdp", "dp", "dcn", "ep", "expert_tp", "zero", "remat", "schedule", "chunks", "microbatch")


def first(points: list[Point], keep: int) -> list[Point]:
    """The best, in an order that rounding cannot change."""
    # of all points, which may be hundreds of thousands, only these few are put in order
    near = nsmallest(keep, [p.step_s for p in points])
    if not near:
        return []
    most = near[-1] * (1 + 1e-9)
    return sorted((p for p in points if p.step_s <= most), key=order)[:keep]


_AXES = ("tp", "cp", "pp", "fsdp", "dp", "ep")
_HEADER = (
    *(f"{name:>5}" for name in (*_AXES, "ZeRO", "mb")), f"{'schedule':14}", f"{'remat':9}", f"{'step':>8}",
    f"{'MFU':>6}", f"{'memory':>8}", "loses most to",
)  # fmt: skip


def _line(one: Judged) -> tuple[str, ...]:
    p, s = one
    pipe = f"{p.schedule}{f' ×{p.chunks}' if p.chunks > 1 else ''}" if p.pp > 1 else "–"
    zero = p.zero if p.fsdp * p.cp > 1 else "–"  # nobody to share with
    return (
        *(f"{getattr(p, name):>5,}" for name in _AXES), f"{zero:>5}", f"{p.microbatch:>5}", f"{pipe:14}",
        f"{p.remat:9}", f"{si(s.total_s, 's'):>8}", f"{percent(s.mfu):>6}", f"{si(s.memory.total, 'B'):>8}",
        s.loss,
    )  # fmt: skip
