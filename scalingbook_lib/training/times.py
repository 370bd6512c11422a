"""The time of a training step by term, and the exposed part of its collectives.

These functions return plain numbers, fast enough for a search; `step` presents them. In each pass of a
microbatch, collectives that cannot overlap are exposed. The others are hidden behind these and behind
compute: with overlap "full", only the excess of the longest mesh axis is exposed, with "none" all of it, and
in between a mixture of both. Chapter: Training.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, hypot, prod

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import sublayers
from scalingbook_lib.models.arithmetic.layers import pairs
from scalingbook_lib.steps import pipelines
from scalingbook_lib.training.efficiency import TrainingEfficiency
from scalingbook_lib.training.links import TrainingCollective, host_rate
from scalingbook_lib.training.plan import Plan
from scalingbook_lib.training.remat import FULL_LAYERS, named, replayed_share
from scalingbook_lib.training.shape import TrainingShape
from scalingbook_lib.training.terms import ByClass

WIDE_HEAD = 128  # head width for which `TrainingEfficiency.attention` is the rate

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Layers:
    """The time of one microbatch through all layers and the head, summed over the pipeline stages."""

    math: ByClass  # forward
    recomputed_s: float  # recomputation, in the backward pass
    memory_s: float  # forward, and twice as much backward
    memory_again_s: float  # once more if layers are recomputed
    relaunched: float  # the share of the layers whose forward kernels are launched again
    read_s: float  # of memory_s: exposed weight reads
    attention_again_s: float  # of recomputed_s: attention
    frozen: bool
    layers: int
    routed_layers: int  # layers with experts
    host_s: float  # host time to launch one layer with experts, forward

    @property
    def forward_s(self) -> float:
        """The seconds of the forward pass, without the head."""
        return self._device_s + self.forward_waited_s

    @property
    def backward_s(self) -> float:
        """The seconds of the backward pass, without the head: two matmuls per forward one (frozen: one)."""
        return self._back_s + self.backward_waited_s

    @property
    def forward_waited_s(self) -> float:
        """The seconds that the forward pass waits for the host."""
        return self._hosted(self._device_s, 1)

    @property
    def backward_waited_s(self) -> float:
        """The seconds that the backward pass waits for the host."""
        return self._hosted(self._back_s, self._launches)

    @property
    def _device_s(self) -> float:
        return self.math.layers + self.memory_s

    @property
    def _back_s(self) -> float:
        spared_s = self.math.matmul + self.math.experts + self.read_s if self.frozen else 0.0
        return 2 * self._device_s + self.recomputed_s + self.memory_again_s - spared_s

    @property
    def _launches(self) -> float:
        return 2 + self.relaunched  # in units of a forward pass; recomputation is launched again

    def _hosted(self, device_s: float, launches: float) -> float:
        """Return the seconds that the host adds to a pass of `device_s` seconds of chip work.

        The longer of the two sets the pace; if they are equal, neither fully hides the other.
        """
        if not self.host_s:
            return 0.0
        layer_s = device_s / self.layers
        return self.routed_layers * (hypot(layer_s, launches * self.host_s) - layer_s)


def seconds(
    s: TrainingShape, traffic: Sequence[TrainingCollective], chip: Chip, efficiency: TrainingEfficiency
) -> Seconds:
    """Return every term of one step; `pipelines.bubble` gets passes with their exposed communication."""
    p, m, hidden = s.plan.pp, s.m, s.plan.hidden * efficiency.overlap
    mean = m / p  # microbatches times the mean share of the layers per stage
    passes = 2 if s.plan.frozen else 3  # per matmul: its result, and the gradients of both operands
    head_again = 1 if s.plan.loss_tiles > 1 else 0  # the logits of a tile are recomputed for their gradient
    one = layers(s, chip, efficiency)
    exposed: Waits = defaultdict(float)
    long_f = _longest(s, one.forward_s, one.math.head)
    long_b = _longest(s, one.backward_s, (passes - 1 + head_again) * one.math.head)
    # a transfer also proceeds while the chip waits for the host
    hides_f = s.stages.longest * (one.math.attention + one.forward_waited_s)
    attention_back_s = 2 * one.math.attention + one.attention_again_s
    hides_b = s.stages.longest * (attention_back_s + one.backward_waited_s)
    forward = [row for row in traffic if row.when == "fwd"]
    backward = [row for row in traffic if row.when == "bwd"]
    each_f, step_f = _pass(forward, long_f, hides_f, m, hidden, exposed)
    each_b, step_b = _pass(backward, long_b, hides_b, m, hidden, exposed)
    bubble_s = _idle(s, each_f, each_b)
    optimizer_s = _update(s) / (chip.hbm_bytes_per_s * efficiency.memory) + _fetched_s(s, chip)
    waited_s = one.forward_waited_s + one.backward_waited_s
    worked_s = one.forward_s + one.backward_s + (passes + head_again) * one.math.head
    return Seconds(
        math=ByClass(
            matmul=passes * mean * one.math.matmul,
            attention=3 * mean * one.math.attention,
            experts=passes * mean * one.math.experts,
            head=passes * mean * one.math.head,
        ),
        recomputed_s=mean * (one.recomputed_s + head_again * one.math.head),
        memory_s=mean * (3 * one.memory_s + one.memory_again_s - s.plan.frozen * one.read_s + waited_s),
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
    waited: Waits = defaultdict(float)
    beside: Waits = defaultdict(float)
    last: Waits = defaultdict(float)  # that single microbatch: what runs once, then what always runs
    ring_s, pieces = 0.0, 1
    for row in traffic:
        if row.axes == "C" and row.overlappable:
            ring_s, pieces = ring_s + row.seconds / m, row.n
            continue
        waits = last if row.once else beside if row.overlappable else waited
        waits[row.axes] += row.seconds if row.once else row.seconds / m
    if ring_s:
        waited["C"] += _ring_wait(ring_s, pieces, hides_ring_s, hidden)
    busy = math_s + sum(waited.values())
    for axis, s in waited.items():
        exposed[axis] += m * s
    # collectives that run once add to the communication of one of the m microbatches
    each = busy + _left(busy, beside, hidden, exposed, m - 1 if last else m)
    if not last:
        return each, m * each
    for axis, s in beside.items():
        last[axis] += s
    return each, (m - 1) * each + busy + _left(busy, last, hidden, exposed, 1)


def _ring_wait(ring_s: float, pieces: int, hides_ring_s: float, hidden: float) -> float:
    """The part of a ring's time that is exposed, in seconds per microbatch.

    While a chip attends to one of the `pieces` of keys and values, or waits for the host, the next one
    arrives. Attention to the last piece hides nothing, and neither do the matmuls: the output projection
    needs every piece.
    """
    # (pieces - 1) · max(transfer - attention, 0) of one piece, summed over the ring's steps
    beside_s = hides_ring_s * (pieces - 1) / pieces
    return (1 - hidden) * ring_s + hidden * max(ring_s - beside_s, 0.0)


def _left(busy: float, beside: Waits, hidden: float, exposed: Waits, often: int) -> float:
    """Return the exposed seconds beside `busy`: the excess of the longest axis, or without overlap all."""
    if not beside:
        return 0.0
    left = 0.0
    worst = max(beside, key=beside.__getitem__)
    for axis, part in beside.items():
        rest = (1 - hidden) * part + (hidden * max(part - busy, 0.0) if axis == worst else 0.0)
        # collectives over different axes have links of their own, so only the longest can be exposed
        if rest:
            left += rest
            exposed[axis] += often * rest
    return left


def layers(s: TrainingShape, chip: Chip, e: TrainingEfficiency) -> Layers:
    """Return the compute time by class, FLOPs over C, and the time spent on memory and on the host.

    Every chip computes with its replicas of KV heads. Attention and the unembedding compute in the dtype of
    the activations. Pointwise operations are memory-bound, and so are matmuls with few tokens, whose weights
    take longer to read than to multiply. The host is exposed if it takes longer to launch the kernels of a
    layer with experts than the chip takes to run them.
    """
    plan, w, t = s.plan, s.work, s.t / s.plan.tp  # t: tokens per chip, as if each chip had whole layers
    narrow_s, plain_s = t / chip.flops_per_s(plan.compute), t / chip.flops_per_s(plan.activations)
    of_flop = ByClass(  # seconds for one FLOP per token
        matmul=narrow_s / e.matmul * w.again(plan.tp),
        attention=plain_s / e.attention * (1 + e.ramp / w.T) * _crowded(s) * _padded(s, e),
        experts=narrow_s / e.experts * s.busiest(e.expert_skew) * _tiles(s, e),
        head=plain_s / e.head,
    )
    math = ByClass(
        matmul=w.forward.matmul * of_flop.matmul,
        attention=w.forward.attention * of_flop.attention,
        experts=w.forward.experts * of_flop.experts,
        head=w.forward.head * of_flop.head,
    )
    attention_again_s = w.recomputed.attention * of_flop.attention
    recomputed_s = (
        w.recomputed.matmul * of_flop.matmul + attention_again_s + w.recomputed.experts * of_flop.experts
    )
    bytes_per_s = chip.hbm_bytes_per_s * e.memory
    permuted = e.permutation * w.model.moe_layers * s.routed * w.model.D * plan.activations.bytes
    pointwise = s.t * s.of_token(w.pointwise) + _merged(s) + e.operands * _operands(s) + permuted
    passed_s = pointwise / bytes_per_s + sublayers.full_layers(w.model) * e.layer_s
    read_s = _read(s, w.forward, of_flop, bytes_per_s)
    again = _relaunched(w.model, plan.remat)
    return Layers(
        math=math,
        recomputed_s=recomputed_s,
        memory_s=passed_s + read_s,
        read_s=read_s,
        attention_again_s=attention_again_s,
        frozen=plan.frozen,
        layers=w.model.L,
        routed_layers=w.model.moe_layers,
        host_s=e.expert_layer_s + e.expert_launch_s * s.local_experts if w.model.moe_layers else 0.0,
        memory_again_s=again * passed_s + _read(s, w.recomputed, of_flop, bytes_per_s) if again else 0.0,
        relaunched=again,
    )


def _relaunched(model: Transformer, remat: str) -> float:
    """Return the share of the layers whose forward kernels run again; single modules launch few kernels."""
    if remat.startswith(FULL_LAYERS):
        return replayed_share(model, remat)
    return 0.0 if remat in ("none", "all") or named(remat).recomputed else 1.0


def _crowded(s: TrainingShape) -> float:
    """Return the attention work of the chip with the end of a causal sequence over the mean: 2 - 1/cp.

    The last of cp shards attends to all shards, and the first only to itself; in a ring, all chips wait for
    the last one in every step. Zigzag (Brandon et al., arXiv 2311.09431; Llama 3's 2 cp shards) gives each
    chip two shards whose work adds up to the mean, and with Ulysses each chip has the whole sequence. Within
    a window, shards differ less.
    """
    plan, w = s.plan, s.work
    if plan.cp == 1 or plan.zigzag or plan.context == "ulysses" or not w.causal:
        return 1.0
    kinds, piece = w.model.layer_kinds, w.T // plan.cp
    last = sum(k.layers * pairs(piece, w.T, causal=True, window=k.window) for k in kinds)
    return plan.cp * last / sum(k.layers * pairs(w.T, w.T, causal=True, window=k.window) for k in kinds)


def _merged(s: TrainingShape) -> float:
    """Return the bytes to merge a ring's partial outputs: two are read and one is written per further shard.

    The backward pass does this twice, for the gradients of queries and of keys and values. With zigzag,
    shards from later in the sequence concern only the later half of a chip's queries, so a query attends to
    (3 cp + 1) / 4 shards. The published runs with the shortest shards (1,024 tokens: cp=8 at 8,192) show no
    other loss in attention.
    """
    plan, w = s.plan, s.work
    if plan.cp == 1 or plan.context != "ring":
        return 0.0
    pieces = (3 * plan.cp + 1) / 4 if plan.zigzag and w.causal else plan.cp
    return 3 * plan.activations.bytes * (pieces - 1) * s.t * sublayers.attended(w.model) / plan.tp


def _padded(s: TrainingShape, e: TrainingEfficiency) -> float:
    """The time of an attention kernel over that of its FLOPs at the rate of wide heads without windows."""
    w = s.work
    if not w.model.softmax_layers:  # heads of a recurrence are no heads of attention
        return 1.0
    narrow = (1 + e.head_ramp / w.model.H) / (1 + e.head_ramp / WIDE_HEAD)
    if not e.attention_block or not w.causal or not any(k.window for k in w.model.layer_kinds):
        return narrow

    def met(more: float) -> float:
        windows = ((k.layers, round(k.window + more) if k.window else None) for k in w.model.layer_kinds)
        return sum(layers * pairs(w.T, w.T, causal=True, window=window) for layers, window in windows)

    return narrow * met(e.attention_block) / met(0)


def _tiles(s: TrainingShape, e: TrainingEfficiency) -> float:
    """Return the FLOPs of experts in whole tiles over the exact FLOPs (half a tile of rows more)."""
    model, tile = s.work.model, e.expert_tile
    if not model.experts or not tile:
        return 1.0
    rows = 1 + tile * s.local_experts / (2 * s.routed)
    widths = model.D, model.experts.F / s.plan.expert_ways
    return rows * prod(ceil(width / tile) * tile / width for width in widths)


def _operands(s: TrainingShape) -> float:
    """Return the bytes that matmuls read and write; narrower inputs are first written in two layouts."""
    plan, operands = s.plan, s.work.operands
    wide, narrow = plan.activations.bytes, plan.compute.bytes
    each = (wide + narrow) / 2 + ((wide + 2 * narrow) / 2 if narrow < wide else 0)
    return s.t * (operands.wide + operands.split / plan.tp) * each


def _read(s: TrainingShape, done: ByClass, of_flop: ByClass, bytes_per_s: float) -> float:
    """Return the seconds by which reading the weights once per microbatch exceeds their matmuls."""
    plan, w = s.plan, s.work
    # w bytes per parameter over W_hbm, per FLOP of a token; compared with t/C
    dense_s = s.moved * (w.split + w.beyond(plan.tp)) / (plan.tp * bytes_per_s * w.forward.matmul)
    read_s = max(dense_s - of_flop.matmul, 0.0) * done.matmul
    if not w.expert:
        return read_s
    expert_s = s.moved * w.expert / (plan.expert_ways * plan.ep * bytes_per_s * w.forward.experts)
    return read_s + max(expert_s - of_flop.experts, 0.0) * done.experts


def _longest(s: TrainingShape, layers_s: float, head_s: float) -> float:
    """Return the seconds of the longest stage: the one with the most work, or the last with the head."""
    # the longest stage sets the pace
    return max(s.stages.longest * layers_s, s.stages.last_work * layers_s + head_s)


def _idle(s: TrainingShape, forward_s: float, backward_s: float) -> float:
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
        weight_s=0.0 if plan.frozen else s.work.put_off * backward_s,
    )
    return float(max(found.idle_s, 0.0))


def _owned(s: TrainingShape) -> float:
    """Return the number of parameters that one chip updates."""
    return s.dense / s.shared + s.expert / s.expert_shared if s.plan.zero else s.dense + s.expert


def _state_bytes(plan: Plan) -> float:
    """Return the bytes of optimizer state per parameter; without a master copy, the weights count."""
    master = plan.master.bytes if plan.master else plan.weights.bytes
    return 2 * plan.moments.bytes + master


def _update(s: TrainingShape) -> float:
    """Return the bytes that the optimizer step of one chip reads and writes."""
    plan = s.plan
    each = 2 * _state_bytes(plan) + plan.gradients.bytes + plan.weights.bytes  # the state is read and written
    return 0.0 if plan.frozen else _owned(s) * each


def _fetched_s(s: TrainingShape, chip: Chip) -> float:
    """Return the seconds to fetch an offloaded optimizer state; the updated state returns meanwhile."""
    if not s.plan.offload_optimizer or s.plan.frozen:
        return 0.0
    state = 2 * s.plan.moments.bytes + (s.plan.master.bytes if s.plan.master else 0.0)
    return _owned(s) * state / host_rate(chip)
