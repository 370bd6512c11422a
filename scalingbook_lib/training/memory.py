"""The peak memory of a chip in one training step, by part, and whether it fits.

Memory can peak at three moments: at the logits and their softmax, before any gradient exists; at the gradient
of the unembedding, which XLA leaves to the end, when all other gradients exist; and at the last layer of the
backward pass. The largest of the three counts. In a pipeline, the first stage holds the most microbatches,
and the last stage holds the logits. The terms follow the buffers that XLA's TPU compiler assigns in programs
of many styles (`tests/lab/train/test_others_memory.py`). The memory of the runtime (CUDA context,
fragmentation) is not counted. Chapter: Training.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from scalingbook_lib.machines import Chip, Machine, Slice
from scalingbook_lib.models import Transformer
from scalingbook_lib.steps.memory import ChipMemory
from scalingbook_lib.steps.pipelines import weight_copies
from scalingbook_lib.training import buffers
from scalingbook_lib.training.plan import Plan
from scalingbook_lib.training.shape import TrainingShape, shape
from scalingbook_lib.training.terms import Widths
from scalingbook_lib.training.work import work
from scalingbook_lib.units import si

AT_LOGITS, IN_LAYER = "at the logits", "in a layer"
KEEPING = ("none", "all")  # policies without recomputation: of unrolled layers, and of a loop


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingMemory(ChipMemory):
    """Bytes on one chip at the moment of peak memory, by part.

    `gradients` are those that exist at that moment, and `all_gradients` all of them. `other` is what another
    moment holds instead of the logits or of the recomputed layer (0 with pipeline stages, where it may be on
    another chip).
    """

    parts: ClassVar[tuple[str, ...]] = (
        "weights",
        "gradients",
        "optimizer",
        "activations",
        "recomputed_layer",
        "logits",
        "gathered_weights",
        "buffers",
    )
    weights: float = 0.0
    gradients: float = 0.0
    optimizer: float = 0.0
    activations: float = 0.0
    recomputed_layer: float = 0.0
    logits: float = 0.0
    gathered_weights: float = 0.0
    buffers: float = 0.0
    moment: str = IN_LAYER
    all_gradients: float = 0.0
    other: float = 0.0
    chip: Chip | None = None
    headroom: float = 0.0  # the share of the HBM to leave free; negative: by how much it may be exceeded

    @property
    def room_bytes(self) -> float:
        """The bytes of HBM without the headroom; infinite if there is no chip."""
        return (1 - self.headroom) * super(TrainingMemory, self).room_bytes

    @property
    def state(self) -> float:
        """The bytes of the training state: weights, all gradients and the optimizer state."""
        # what ZeRO shards: 2 + 2 + 12 bytes per parameter in mixed precision
        return sum((self.weights, self.all_gradients, self.optimizer))

    @property
    def note(self) -> str:
        """The moment of the peak, and what another moment holds instead."""
        if not self.other:
            return ""
        instead = f"in a recomputed layer {si(self.other, 'B')} in their place"
        if self.moment == IN_LAYER:
            instead = f"at the logits {si(self.other, 'B')} in its place"
        return f" ({self.moment}; {instead})"


def memory(
    model: Transformer,
    plan: Plan,
    *,
    batch: int,
    T: int,
    machine: Machine | None = None,
    loop: bool | None = None,
) -> TrainingMemory:
    """Return the peak memory of one chip in a step of `batch` sequences of T tokens.

    `loop` describes a compiled program: its layers are a loop (True, the default on a TPU slice) or unrolled
    (False). None stands for a program that is not compiled as a whole: it prefetches a layer's weights, and
    holds all gradients of a layer before it scatters them. Without recomputation, a loop saves what the
    policy "all" saves, and unrolled layers save what fused kernels save.
    """
    return held(shape(work(model, T, plan.remat, plan.activations, True), plan, batch), machine, loop)


def held(
    s: TrainingShape, machine: Machine | None = None, loop: bool | None = None, headroom: float = 0.0
) -> TrainingMemory:
    """Return the peak memory for a known shape; it fits if it leaves the share `headroom` of the HBM free."""
    # the largest of the moments counts, not their sum
    found = logits, _, layer = moments(s, compiled(machine) if loop is None else loop)
    most = max(found, key=lambda moment: moment.total)
    other = layer.recomputed_layer if most.moment == AT_LOGITS else logits.logits
    chip = machine.chip if machine else None
    return replace(most, chip=chip, headroom=headroom, other=0.0 if s.plan.pp > 1 else other)


def compiled(machine: Machine | None) -> bool | None:
    """Return whether a program for that machine loops over its layers; None if it is not compiled."""
    return True if isinstance(machine, Slice) else None


def states(params: float, plan: Plan) -> TrainingMemory:
    """Return the training state per chip of `params` parameters, without activations.

    With K = 12 bytes for the optimizer, it is (2 + 2 + K) P without ZeRO, 2 P + 2 P + K P / N with ZeRO-1,
    2 P + (2 + K) P / N with ZeRO-2, and (2 + 2 + K) P / N with ZeRO-3, for P = params / (tp · pp) over
    N = fsdp · cp chips. Source: Rajbhandari et al., arXiv 1910.02054, figure 1.
    """
    # TP and PP divide the parameters, and ZeRO divides their state
    found = _state(params / (plan.tp * plan.pp), plan, plan.fsdp * plan.cp)
    return TrainingMemory(**found._asdict(), all_gradients=found.gradients)


class _State(NamedTuple):
    """Bytes of training state on one chip."""

    weights: float
    gradients: float
    optimizer: float


def _state(params: float, plan: Plan, ways: int) -> _State:
    master, trained = plan.master.bytes if plan.master else 0.0, 0.0 if plan.frozen else params
    return _State(
        weights=params * plan.weights.bytes / (ways if plan.zero >= 3 else 1),  # ZeRO-3
        gradients=trained * plan.gradients.bytes / (ways if plan.zero >= 2 else 1),  # ZeRO-2 and 3
        # Adam's two moments and the master weights, with any ZeRO stage
        optimizer=0.0
        if plan.offload_optimizer
        else trained * (2 * plan.moments.bytes + master) / (ways if plan.zero >= 1 else 1),
    )


def moments(s: TrainingShape, loop: bool | None) -> tuple[TrainingMemory, TrainingMemory, TrainingMemory]:
    """Return the memory at the logits, at the unembedding's gradient, and in the last backward layer."""
    plan, stored, written_out = s.plan, s.t * s.of_token(_stored(s, loop)), loop is False
    again, at_work = s.t * (s.of_token(s.work.working) + buffers.across(s)), buffers.gathered(s, loop)
    # z: logits per microbatch per chip
    vocabulary, z = buffers.vocabulary(s), s.t * s.work.model.V / plan.tp
    # the gradient of the logits replaces the softmax, in the activations' dtype
    softmax, gradient = z * plan.bytes_of_logit, z * min(plan.activations.bytes, plan.bytes_of_logit)
    # a loss whose tiles are independent of each other
    chunked = plan.loss_tiles > 1 or plan.bytes_of_logit < plan.activations.bytes
    always, sums, made, rounded = _between_steps(s, loop)
    gathered = rounded + (vocabulary if plan.zero >= 3 and s.shared > 1 else 0.0)
    logits = TrainingMemory(
        **always,
        gradients=sums,
        activations=stored * s.stages.last,
        # if layers are unrolled, the last one is kept whole until its backward pass
        recomputed_layer=again if written_out else 0.0,
        logits=softmax,
        gathered_weights=gathered + (at_work if written_out else 0.0),
        moment=AT_LOGITS,
    )
    layer = TrainingMemory(
        **always,
        gradients=made,
        activations=stored * s.share * buffers.live(plan.schedule, plan.pp, s.m, plan.chunks),
        # all of them, for the matmuls of weight gradients that are added to a sum over microbatches
        recomputed_layer=again * (s.stages.layers if written_out and s.m > 1 else 1),
        # XLA leaves the matmul of the unembedding's gradient to the end and keeps its operand or its result
        logits=0.0 if loop is None or chunked or plan.pp > 1 else min(gradient, vocabulary),
        gathered_weights=rounded + at_work,
        buffers=buffers.summed(s, loop),
    )
    product = 0.0 if chunked or plan.frozen else vocabulary
    if loop is None:
        return logits, replace(logits, logits=gradient, buffers=product), layer
    # at that moment, all gradients exist, and the logits too
    end = {"logits": softmax, "gathered_weights": rounded, "buffers": product, "moment": AT_LOGITS}
    return logits, TrainingMemory(**always, gradients=made, **end), layer


def _stored(s: TrainingShape, loop: bool | None) -> Widths:
    """Return the saved activations.

    No kernel is fused across the end of a loop, so everything that the backward pass reads is written.
    """
    plan, w = s.plan, s.work
    if loop is None or plan.remat not in KEEPING or plan.remat == KEEPING[loop]:
        return s.stored
    return s.on_chip(work(w.model, w.T, KEEPING[loop], plan.activations, True).stored)


def _between_steps(s: TrainingShape, loop: bool | None) -> tuple[dict[str, Any], float, float, float]:
    """Return the state that always exists, sums over microbatches, all gradients, and rounded weights.

    XLA rounds the shards of all layers before a loop begins, so the loop gathers rounded weights. A compiled
    loop holds the gradients of all its layers in the weights' dtype, in addition to the sums. Unrolled layers
    scatter each gradient as it is computed, and add it. A program that is not compiled holds all gradients.
    """
    plan = s.plan
    copies = weight_copies(plan.schedule) if plan.pp > 1 else 1
    dense, expert = _state(s.dense, plan, s.shared), _state(s.expert, plan, s.expert_shared)
    layers, gradients = _state(buffers.in_layers(s), plan, s.shared), dense.gradients + expert.gradients
    always = {
        "weights": copies * (dense.weights + expert.weights),
        "optimizer": dense.optimizer + expert.optimizer,
        "all_gradients": copies * gradients,
    }
    sums = copies * gradients if s.m > 1 else 0.0  # with a single microbatch, there is nothing to accumulate
    if loop is None:
        return always, sums, copies * gradients, 0.0
    kind = (plan.weights.bytes if loop else s.moved) / plan.gradients.bytes
    own = copies * (layers.gradients + expert.gradients) * min(kind, 1) if loop or s.m == 1 else 0.0
    narrower = s.moved / plan.weights.bytes if loop and s.moved < plan.weights.bytes else 0.0
    return always, sums, sums + own, (layers.weights + expert.weights) * narrower
