"""How long does a plan's step take, and what of its collectives does the arithmetic hide?

Numbers alone, quick enough for a search; `step` tells them. Per pass and microbatch: what cannot overlap is
waited for; the rest is hidden by it and by the arithmetic as far as it is shorter, axis by axis ("full"), or
not at all ("none"), or in between. Chapter: Training.
"""

from collections.abc import Sequence
from typing import NamedTuple

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.steps import pipelines
from scalingbook_lib.training.efficiency import Efficiency
from scalingbook_lib.training.shape import Shape
from scalingbook_lib.training.traffic import Traffic


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


type Waits = dict[str, float]  # seconds by mesh axis


def seconds(s: Shape, traffic: Sequence[Traffic], chip: Chip, efficiency: Efficiency) -> Seconds:
    """Every term of one step; the bubble is `pipelines.bubble` of the passes, waiting included."""
    M, hidden, mean = s.M, s.plan.hidden * efficiency.overlap, s.M / s.plan.pp
    math, again, pointwise = _each(s, chip, efficiency)  # of the whole model, for one microbatch
    forward, worked = sum(math), sum(math[:3]) + pointwise
    anew = pointwise if s.plan.remat not in ("none", "all") else 0.0
    long_f = _pace(s, worked, math[3])
    long_b = _pace(s, 2 * worked + again + anew, 2 * math[3])
    exposed: Waits = {}
    each_f, step_f = _passes(long_f, traffic, "fwd", M, hidden, exposed)
    each_b, step_b = _passes(long_b, traffic, "bwd", M, hidden, exposed)
    bubble_s = _idle(s, each_f, each_b, min(forward / s.plan.pp, each_b))
    optimizer_s = _update(s) / (chip.hbm_bytes_per_s * efficiency.memory)
    uneven_s = M * (long_f + long_b) - mean * (3 * (forward + pointwise) + again + anew)
    return Seconds(
        (3 * mean * math[0], 3 * mean * math[1], 3 * mean * math[2], 3 * mean * math[3]), mean * again,
        mean * (3 * pointwise + anew), uneven_s if s.plan.pp > 1 else 0.0, exposed, bubble_s, optimizer_s,
        efficiency.fixed_s, step_f + step_b + bubble_s + optimizer_s + efficiency.fixed_s, each_f, each_b,
    )  # fmt: skip


def _passes(
    math_s: float, traffic: Sequence[Traffic], when: str, M: int, hidden: float, exposed: Waits
) -> tuple[float, float]:
    """One microbatch's pass, and all of a step; what is waited for is added to `exposed`.

    What comes once a step is beside one microbatch, the first forward or the last backward.
    """
    waited: Waits = {}
    beside: Waits = {}
    once: Waits = {}
    for _, _, axes, its, _, _, times, each_s, overlappable, single, _ in traffic:
        if its == when:
            which = once if single else beside if overlappable else waited
            which[axes] = which.get(axes, 0.0) + (times * each_s if single else times * each_s / M)
    busy = math_s + sum(waited.values())
    for axis, part in waited.items():
        exposed[axis] = exposed.get(axis, 0.0) + M * part
    each = busy + _left(busy, beside, hidden, exposed, M - 1 if once else M)
    if not once:
        return each, M * each
    for axis, part in beside.items():
        once[axis] = once.get(axis, 0.0) + part
    return each, (M - 1) * each + busy + _left(busy, once, hidden, exposed, 1)


def _left(busy: float, beside: Waits, hidden: float, exposed: Waits, often: int) -> float:
    """What `busy` seconds do not hide: full overlap leaves the longest axis's excess, none leaves all."""
    if not beside:
        return 0.0
    left = 0.0
    worst = max(beside, key=beside.__getitem__)
    for axis, part in beside.items():
        rest = (1 - hidden) * part + (hidden * max(part - busy, 0.0) if axis == worst else 0.0)
        if rest:
            left += rest
            exposed[axis] = exposed.get(axis, 0.0) + often * rest
    return left


def _each(s: Shape, chip: Chip, e: Efficiency) -> tuple[tuple[float, float, float, float], float, float]:
    """One microbatch through all layers: products by class, those done again, and what waits for the HBM.

    Attention and the unembedding compute in the type of the activations. The HBM is waited for by pointwise
    operations, and by products of so few tokens that their weights take longer to read than to multiply.
    """
    plan, w, t = s.plan, s.work, s.t / s.plan.tp
    fast, plain = t / chip.flops_per_s(plan.compute), t / chip.flops_per_s(plan.activations)
    per = fast / e.matmul, plain / e.attention * (1 + e.ramp / w.T), fast / e.experts, plain / e.head
    f, g = w.forward, w.again
    math = f[0] * per[0], f[1] * per[1], f[2] * per[2], f[3] * per[3]
    again = g[0] * per[0] + g[1] * per[1] + g[2] * per[2]
    moved = s.t * (w.pointwise_wide / s.wide + w.pointwise_split / plan.tp) + e.operands * _operands(s)
    rate = chip.hbm_bytes_per_s * e.memory
    lost = w.model.L * e.layer_s + w.model.moe_layers * e.expert_layer_s
    return math, again, moved / rate + lost + _read(s, math, rate)


def _operands(s: Shape) -> float:
    """Bytes that products read and write; a narrower type is written first, as it is and transposed."""
    plan, w = s.plan, s.work
    wide, narrow = plan.activations.bytes, plan.compute.bytes
    each = (wide + narrow) / 2 + ((wide + 2 * narrow) / 2 if narrow < wide else 0)
    return s.t * (w.operands_wide + w.operands_split / plan.tp) * each


def _read(s: Shape, math: tuple[float, ...], bytes_per_s: float) -> float:
    """What reading the layers' weights, once a microbatch, takes longer than their products."""
    plan, w = s.plan, s.work
    dense = s.moved * w.split / (plan.tp * bytes_per_s)
    expert = s.moved * w.expert / (plan.expert_ways * plan.ep * bytes_per_s)
    return max(dense - math[0], 0.0) + max(expert - math[2], 0.0)


def _pace(s: Shape, layers_s: float, head_s: float) -> float:
    """The longest stage: one with the most layers, or the last with the unembedding."""
    return max(s.share * layers_s, s.last * layers_s + head_s) if s.plan.pp > 1 else layers_s + head_s


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
