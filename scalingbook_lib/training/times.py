"""How long does a plan's step take, and what of its collectives does the arithmetic hide?

Numbers alone, quick enough for a search; `step` tells them. Per pass and microbatch: what cannot overlap is
waited for; the rest is hidden by it and by the arithmetic as far as it is shorter, axis by axis ("full"), or
not at all ("none"), or in between. Chapter: Training.
"""

from collections.abc import Sequence
from typing import NamedTuple

from scalingbook_lib import pipelines
from scalingbook_lib.hardware import Chip
from scalingbook_lib.training.efficiency import Efficiency
from scalingbook_lib.training.shape import Shape
from scalingbook_lib.training.traffic import Traffic
from scalingbook_lib.training.work import CLASSES


class Seconds(NamedTuple):
    """A step by term. `math` is the mean stage's, by class; `memory_s` its norms and activation functions."""

    math: tuple[float, float, float, float]
    again_s: float  # arithmetic done a second time
    memory_s: float
    uneven_s: float  # what the longest stage does more than the mean one
    exposed: dict[str, float]  # by mesh axis, what is waited for
    bubble_s: float
    optimizer_s: float
    fixed_s: float
    total_s: float
    forward_s: float  # of one microbatch in the longest stage, waiting included
    backward_s: float


class _Pass(NamedTuple):
    """One pass of one microbatch: the time it takes, and what of it is waited for, by axis."""

    total_s: float
    exposed: dict[str, float]


def seconds(s: Shape, traffic: Sequence[Traffic], chip: Chip, efficiency: Efficiency) -> Seconds:
    """Every term of one step; the bubble is `pipelines.bubble` of the passes as they are, waiting included."""
    plan, e = s.plan, efficiency
    math, again, pointwise = _each(s, chip, e)  # whole model, one microbatch
    mean_f, mean_b = sum(math) + pointwise, 2 * (sum(math) + pointwise) + again
    if plan.remat == "full":
        mean_b += pointwise
    scale_f = _pace(s, sum(math[:3]) + pointwise, math[3])
    scale_b = _pace(s, mean_b - 2 * math[3], 2 * math[3])
    forward = _passed(scale_f, traffic, "fwd", s.M, plan.hidden)
    backward = _passed(scale_b, traffic, "bwd", s.M, plan.hidden)
    ahead = _passed(scale_f, traffic, "fwd", s.M, plan.hidden, once=True)
    behind = _passed(scale_b, traffic, "bwd", s.M, plan.hidden, once=True)
    bubble_s = _idle(s, forward.total_s, backward.total_s, min(sum(math) / plan.pp, backward.total_s))
    exposed: dict[str, float] = {}
    for each, last in ((forward, ahead), (backward, behind)):
        for axis in {**each.exposed, **last.exposed}:
            part = (s.M - 1) * each.exposed.get(axis, 0.0) + last.exposed.get(axis, 0.0)
            exposed[axis] = exposed.get(axis, 0.0) + part
    mean = s.M / plan.pp
    optimizer_s = _update(s) / (chip.hbm_bytes_per_s * e.memory)
    worked = s.M * (forward.total_s + backward.total_s)
    once = ahead.total_s - forward.total_s + behind.total_s - backward.total_s
    twice = 4.0 if plan.remat == "full" else 3.0
    return Seconds(
        tuple(3 * mean * one for one in math), mean * again, twice * mean * pointwise,  # type: ignore[arg-type]
        s.M * (scale_f + scale_b) - mean * (mean_f + mean_b), exposed, bubble_s, optimizer_s, e.fixed_s,
        worked + once + bubble_s + optimizer_s + e.fixed_s, forward.total_s, backward.total_s,
    )  # fmt: skip


def _each(s: Shape, chip: Chip, e: Efficiency) -> tuple[tuple[float, float, float, float], float, float]:
    """One microbatch through all layers on the chips of one stage: products by class, those done again, the rest.

    Attention and the unembedding compute in the type of the activations.
    """
    plan, w, t = s.plan, s.work, s.t / s.plan.tp
    fast, plain = chip.flops_per_s(plan.compute), chip.flops_per_s(plan.activations)
    per = tuple(
        t / (rate * getattr(e, name)) for name, rate in zip(CLASSES, (fast, plain, fast, plain), strict=True)
    )
    math = tuple(n * one for n, one in zip(w.forward, per, strict=True))
    again = sum(n * one for n, one in zip(w.again, per, strict=True))
    moved = s.t * (w.pointwise_wide / s.wide + w.pointwise_split / plan.tp)
    return math, again, moved / (chip.hbm_bytes_per_s * e.memory)  # type: ignore[return-value]


def _pace(s: Shape, layers_s: float, head_s: float) -> float:
    """The longest stage: one with the most layers, or the last with the unembedding."""
    return max(s.share * layers_s, s.last * layers_s + head_s) if s.plan.pp > 1 else layers_s + head_s


def _passed(
    math_s: float, traffic: Sequence[Traffic], when: str, M: int, hidden: float, *, once: bool = False
) -> _Pass:  # fmt: skip
    """One microbatch's pass; with `once`, the one that also has what comes once a step."""
    waited: dict[str, float] = {}
    beside: dict[str, float] = {}
    for row in traffic:
        if row.when == when and (once or not row.once):
            which = beside if row.overlappable else waited
            part = row.each_s * row.times / (1 if row.once else M)
            which[row.axes] = which.get(row.axes, 0.0) + part
    busy = math_s + sum(waited.values())
    if beside:
        worst = max(beside, key=lambda axis: beside[axis])
        excess = hidden * max(beside[worst] - busy, 0.0)
        for axis, part in beside.items():
            left = (1 - hidden) * part + (excess if axis == worst else 0.0)
            if left:
                waited[axis] = waited.get(axis, 0.0) + left
    return _Pass(math_s + sum(waited.values()), waited)


def _idle(s: Shape, forward_s: float, backward_s: float, weight_s: float) -> float:
    plan = s.plan
    if plan.pp == 1:
        return 0.0
    found = pipelines.bubble(
        plan.schedule,
        plan.pp,
        s.M,
        plan.chunks,
        forward_s=forward_s,
        backward_s=backward_s,
        weight_s=weight_s,
    )
    return float(max(found.idle_s, 0.0))


def _update(s: Shape) -> float:
    """Bytes of one chip's optimizer step: the state read and written, gradients read, weights written."""
    plan = s.plan
    ways = (s.shared, s.expert_shared) if plan.zero else (1, 1)
    own = s.dense / ways[0] + s.expert / ways[1]
    master = plan.master.bytes if plan.master else plan.weights.bytes
    return own * (2 * (2 * plan.moments.bytes + master) + plan.gradients.bytes + plan.weights.bytes)
