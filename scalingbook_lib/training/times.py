"""The time of a training step by term, and the exposed part of its collectives.

These functions return plain numbers, fast enough for a search; `step` presents them. In each pass of a
microbatch, collectives that cannot overlap are exposed. The others are hidden behind these and behind
compute: with overlap "full", only the excess of the longest mesh axis is exposed, with "none" all of it, and
in between a mixture of both. Chapter: Training.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.steps import pipelines
from scalingbook_lib.training.efficiency import TrainingEfficiency
from scalingbook_lib.training.layer_times import layer_times
from scalingbook_lib.training.links import TrainingCollective, host_rate
from scalingbook_lib.training.plan import Plan
from scalingbook_lib.training.shape import TrainingShape
from scalingbook_lib.training.terms import ByClass

type Waits = dict[str, float]  # seconds by mesh axis


@dataclass(frozen=True, kw_only=True, slots=True)
class Seconds:
    """The time of a step by term; compute and memory are those of the mean pipeline stage."""

    math: ByClass  # model FLOPs over C: 6 per parameter per token, and attention's
    recomputed_s: float  # recomputation
    memory_s: float  # norms, activation functions, exposed weight reads, and the host
    uneven_s: float  # the work of the longest stage beyond the mean one
    exposed: Waits  # exposed communication by mesh axis
    bubble_s: float
    optimizer_s: float
    fixed_s: float
    total_s: float
    forward_s: float  # one microbatch in the longest stage, with exposed communication
    backward_s: float


def seconds(
    s: TrainingShape, traffic: Sequence[TrainingCollective], chip: Chip, efficiency: TrainingEfficiency
) -> Seconds:
    """Return every term of one step; `pipelines.bubble` gets passes with their exposed communication."""
    p, m, hidden = s.plan.pp, s.m, s.plan.hidden * efficiency.overlap
    mean = m / p  # microbatches times the mean share of the layers per stage
    passes = 2 if s.plan.frozen else 3  # per matmul: its result, and the gradients of both operands
    # the logits of a tile are recomputed for their gradient
    head_recomputed = 1 if s.plan.loss_tiles > 1 else 0
    one = layer_times(s, chip, efficiency)
    exposed: Waits = defaultdict(float)
    long_f = _longest_stage_s(s, one.forward_s, one.math.head)
    long_b = _longest_stage_s(s, one.backward_s, (passes - 1 + head_recomputed) * one.math.head)
    # a transfer also proceeds while the chip waits for the host
    hides_f = s.stages.longest * (one.math.attention + one.forward_waited_s)
    attention_back_s = 2 * one.math.attention + one.recomputed_attention_s
    hides_b = s.stages.longest * (attention_back_s + one.backward_waited_s)
    forward = [row for row in traffic if row.when == "fwd"]
    backward = [row for row in traffic if row.when == "bwd"]
    each_f, step_f = _pass(forward, long_f, hides_f, m, hidden, exposed)
    each_b, step_b = _pass(backward, long_b, hides_b, m, hidden, exposed)
    bubble_s = _bubble_s(s, each_f, each_b)
    optimizer_s = _optimizer_bytes(s) / (chip.hbm_bytes_per_s * efficiency.memory) + _fetched_s(s, chip)
    waited_s = one.forward_waited_s + one.backward_waited_s
    worked_s = one.forward_s + one.backward_s + (passes + head_recomputed) * one.math.head
    return Seconds(
        math=ByClass(
            matmul=passes * mean * one.math.matmul,
            attention=3 * mean * one.math.attention,
            experts=passes * mean * one.math.experts,
            head=passes * mean * one.math.head,
        ),
        recomputed_s=mean * (one.recomputed_s + head_recomputed * one.math.head),
        memory_s=mean * (3 * one.memory_s + one.recomputed_memory_s - s.plan.frozen * one.read_s + waited_s),
        uneven_s=m * (long_f + long_b) - mean * worked_s if p > 1 else 0.0,
        exposed=dict(exposed),
        bubble_s=bubble_s,
        optimizer_s=optimizer_s,
        fixed_s=efficiency.fixed_s,
        total_s=step_f + step_b + bubble_s + optimizer_s + efficiency.fixed_s,
        forward_s=each_f,
        backward_s=each_b,
    )


def _pass(
    traffic: Sequence[TrainingCollective],
    math_s: float,
    hides_ring_s: float,
    m: int,
    hidden: float,
    exposed: Waits,
) -> tuple[float, float]:
    """Return the seconds of one microbatch and of all m in one direction, and add to `exposed`.

    A collective is on the critical path of each microbatch, or overlaps with its compute, or runs once per
    step and overlaps with a single microbatch: the first one forward or the last one backward. `hides_ring_s`
    is the time that can hide a ring of keys and values.
    """
    critical: Waits = defaultdict(float)
    overlapped: Waits = defaultdict(float)
    once: Waits = defaultdict(float)
    ring_s, pieces = 0.0, 1
    for row in traffic:
        if row.axes == "C" and row.overlappable:
            ring_s, pieces = ring_s + row.seconds / m, row.n
            continue
        waits = once if row.once else overlapped if row.overlappable else critical
        waits[row.axes] += row.seconds if row.once else row.seconds / m
    if ring_s:
        critical["C"] += _ring_wait(ring_s, pieces, hides_ring_s, hidden)
    busy_s = math_s + sum(critical.values())
    for axis, s in critical.items():
        exposed[axis] += m * s
    # collectives that run once add to the communication of one of the m microbatches
    each = busy_s + _exposed_s(busy_s, overlapped, hidden, exposed, m - 1 if once else m)
    if not once:
        return each, m * each
    for axis, s in overlapped.items():
        once[axis] += s
    return each, (m - 1) * each + busy_s + _exposed_s(busy_s, once, hidden, exposed, 1)


def _ring_wait(ring_s: float, pieces: int, hides_ring_s: float, hidden: float) -> float:
    """The part of a ring's time that is exposed, in seconds per microbatch.

    While a chip attends to one of the `pieces` of keys and values, or waits for the host, the next one
    arrives. Attention to the last piece hides nothing, and neither do the matmuls: the output projection
    needs every piece.
    """
    # (pieces - 1) · max(transfer - attention, 0) of one piece, summed over the ring's steps
    hideable_s = hides_ring_s * (pieces - 1) / pieces
    return (1 - hidden) * ring_s + hidden * max(ring_s - hideable_s, 0.0)


def _exposed_s(busy_s: float, overlapped: Waits, hidden: float, exposed: Waits, repeats: int) -> float:
    """Return the exposed seconds of one microbatch, and add those of `repeats` microbatches to `exposed`.

    With full overlap they are the excess of the longest axis over `busy_s`, and without overlap all of them.
    """
    if not overlapped:
        return 0.0
    total_s = 0.0
    longest = max(overlapped, key=overlapped.__getitem__)
    for axis, axis_s in overlapped.items():
        # collectives over different axes have links of their own, so only the longest can be exposed
        excess_s = max(axis_s - busy_s, 0.0) if axis == longest else 0.0
        axis_exposed_s = (1 - hidden) * axis_s + hidden * excess_s
        if axis_exposed_s:
            total_s += axis_exposed_s
            exposed[axis] += repeats * axis_exposed_s
    return total_s


def _longest_stage_s(s: TrainingShape, layers_s: float, head_s: float) -> float:
    """Return the seconds of the longest stage: the one with the most work, or the last with the head."""
    # the longest stage sets the pace
    return max(s.stages.longest * layers_s, s.stages.last_work * layers_s + head_s)


def _bubble_s(s: TrainingShape, forward_s: float, backward_s: float) -> float:
    plan = s.plan
    if plan.pp == 1:
        return 0.0
    found = pipelines.bubble(
        plan.schedule,
        plan.pp,
        s.m,
        plan.chunks,
        forward_s=forward_s,
        backward_s=backward_s,
        weight_s=0.0 if plan.frozen else s.work.deferrable_backward_fraction * backward_s,
    )
    return float(max(found.idle_s, 0.0))


def _updated_params(s: TrainingShape) -> float:
    """Return the number of parameters that one chip updates."""
    return s.dense / s.shared + s.expert / s.expert_shared if s.plan.zero else s.dense + s.expert


def _state_bytes(plan: Plan) -> float:
    """Return the bytes of optimizer state per parameter; without a master copy, the weights count."""
    master = plan.master.bytes if plan.master else plan.weights.bytes
    return 2 * plan.moments.bytes + master


def _optimizer_bytes(s: TrainingShape) -> float:
    """Return the bytes that the optimizer step of one chip reads and writes."""
    plan = s.plan
    each = 2 * _state_bytes(plan) + plan.gradients.bytes + plan.weights.bytes  # the state is read and written
    return 0.0 if plan.frozen else _updated_params(s) * each


def _fetched_s(s: TrainingShape, chip: Chip) -> float:
    """Return the seconds to fetch an offloaded optimizer state; the updated state returns meanwhile."""
    if not s.plan.offload_optimizer or s.plan.frozen:
        return 0.0
    state = 2 * s.plan.moments.bytes + (s.plan.master.bytes if s.plan.master else 0.0)
    return _updated_params(s) * state / host_rate(chip)
