"""What does each chip hold in one training step, part by part, and does it fit?

Three moments are full: the logits with their softmax, when no gradient exists yet; the gradient of the
unembedding, which XLA leaves to the end, when all others exist; the last layer of the backward pass. They are
never together, so the largest is counted. In a pipeline the first stage has most microbatches in its layer,
and the last one the logits. The terms are what XLA's TPU compiler assigns buffers to in programs of many
styles (`tests/lab/train/test_others_memory.py`). What a runtime keeps for itself (CUDA's context, fragments
between buffers) is not counted. Chapter: Training.
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
KEEPING = ("none", "all")  # policies that do nothing again: of layers written out, and of a loop


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingMemory(ChipMemory):
    """Bytes on one chip at the fullest moment, by part.

    `gradients` are those of that moment, `all_gradients` what they come to. `other` is what the other moment
    has in place of the logits, or of the recomputed layer (0 with stages, where it may be another chip's).
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
    headroom: float = 0.0  # share of the HBM that is to stay free; below 0, by how much it may be exceeded

    @property
    def room_bytes(self) -> float:
        """The HBM without the headroom; infinite without a chip."""
        return (1 - self.headroom) * super(TrainingMemory, self).room_bytes

    @property
    def state(self) -> float:
        """Weights, all gradients and the optimizer's state, whatever the moment."""
        # what ZeRO shares: 2 + 2 + 12 bytes a parameter in mixed precision
        return sum((self.weights, self.all_gradients, self.optimizer))

    @property
    def note(self) -> str:
        """The moment, and what the other moment has in place of its parts."""
        if not self.other:
            return ""
        instead = f"in a layer done again {si(self.other, 'B')} in their place"
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
    """What one chip holds at the fullest moment of a step of `batch` sequences of T tokens.

    `loop`: of a compiled program, whether its layers are a loop (on a TPU slice: True, unless it is said) or
    written out; None of one that is not compiled, which gathers a layer ahead and has a layer's gradients
    together before it scatters them. Where nothing is done again, a loop keeps what is kept of "all", and
    layers that are written out what fused kernels keep.
    """
    return held(shape(work(model, T, plan.remat, plan.activations, True), plan, batch), machine, loop)


def held(
    s: TrainingShape, machine: Machine | None = None, loop: bool | None = None, headroom: float = 0.0
) -> TrainingMemory:
    """`memory` of a shape; it fits if it leaves the share `headroom` of the HBM free."""
    # the fullest moment counts, not the sum of all
    found = logits, _, layer = moments(s, compiled(machine) if loop is None else loop)
    most = max(found, key=lambda moment: moment.total)
    other = layer.recomputed_layer if most.moment == AT_LOGITS else logits.logits
    chip = machine.chip if machine else None
    return replace(most, chip=chip, headroom=headroom, other=0.0 if s.plan.pp > 1 else other)


def compiled(machine: Machine | None) -> bool | None:
    """Whether a program for that machine is a loop over its layers; None where it is not compiled."""
    return True if isinstance(machine, Slice) else None


def states(params: float, plan: Plan) -> TrainingMemory:
    """The state of `params` parameters alone: with K = 12 bytes for the optimizer, the ZeRO paper's table.

    (2 + 2 + K) P; ZeRO-1 2 P + 2 P + K P / N, ZeRO-2 2 P + (2 + K) P / N, ZeRO-3 (2 + 2 + K) P / N, of P / tp
    / pp parameters over N = fsdp · cp chips. Source: Rajbhandari et al., arXiv 1910.02054, figure 1.
    """
    # tensor ways and stages cut the parameters, ZeRO what is kept of each
    found = _state(params / (plan.tp * plan.pp), plan, plan.fsdp * plan.cp)
    return TrainingMemory(**found._asdict(), all_gradients=found.gradients)


class _State(NamedTuple):
    """Bytes of one chip's parameters, shared by some chips."""

    weights: float
    gradients: float
    optimizer: float


def _state(params: float, plan: Plan, ways: int) -> _State:
    master, trained = plan.master.bytes if plan.master else 0.0, 0.0 if plan.frozen else params
    return _State(
        weights=params * plan.weights.bytes / (ways if plan.zero >= 3 else 1),  # from ZeRO-3 on
        gradients=trained * plan.gradients.bytes / (ways if plan.zero >= 2 else 1),  # from ZeRO-2 on
        # Adam's two moments and the copy of the weights, from ZeRO-1 on
        optimizer=0.0
        if plan.offload_optimizer
        else trained * (2 * plan.moments.bytes + master) / (ways if plan.zero >= 1 else 1),
    )


def moments(s: TrainingShape, loop: bool | None) -> tuple[TrainingMemory, TrainingMemory, TrainingMemory]:
    """All that a chip holds: at the logits, at the unembedding's gradient, in the last layer to be done."""
    plan, stored, written_out = s.plan, s.t * s.of_token(_stored(s, loop)), loop is False
    again, at_work = s.t * (s.of_token(s.work.working) + buffers.across(s)), buffers.gathered(s, loop)
    # z: logits of a microbatch on a chip
    vocabulary, z = buffers.vocabulary(s), s.t * s.work.model.V / plan.tp
    # The gradient of the logits takes the place of the softmax, in the activations' type.
    softmax, gradient = z * plan.bytes_of_logit, z * min(plan.activations.bytes, plan.bytes_of_logit)
    # a loss whose tiles do not wait for each other
    chunked = plan.loss_tiles > 1 or plan.bytes_of_logit < plan.activations.bytes
    always, sums, made, rounded = _between_steps(s, loop)
    gathered = rounded + (vocabulary if plan.zero >= 3 and s.shared > 1 else 0.0)
    logits = TrainingMemory(
        **always,
        gradients=sums,
        activations=stored * s.stages.last,
        # of layers that are written out the last one waits as it is for its turn in the backward pass
        recomputed_layer=again if written_out else 0.0,
        logits=softmax,
        gathered_weights=gathered + (at_work if written_out else 0.0),
        moment=AT_LOGITS,
    )
    layer = TrainingMemory(
        **always,
        gradients=made,
        activations=stored * s.share * buffers.live(plan.schedule, plan.pp, s.m, plan.chunks),
        # and all of them, for the products of their weights' gradients, where these are added to a sum
        recomputed_layer=again * (s.stages.layers if written_out and s.m > 1 else 1),
        # XLA leaves the product of the unembedding's gradient to the end, and its operand waits, or is less
        logits=0.0 if loop is None or chunked or plan.pp > 1 else min(gradient, vocabulary),
        gathered_weights=rounded + at_work,
        buffers=buffers.summed(s, loop),
    )
    product = 0.0 if chunked or plan.frozen else vocabulary
    if loop is None:
        return logits, replace(logits, logits=gradient, buffers=product), layer
    # then, with the loss itself, all gradients are there
    end = {"logits": softmax, "gathered_weights": rounded, "buffers": product, "moment": AT_LOGITS}
    return logits, TrainingMemory(**always, gradients=made, **end), layer


def _stored(s: TrainingShape, loop: bool | None) -> Widths:
    """Activations that wait for the backward pass.

    No kernel is fused across the end of a loop, so all that the backward pass reads is written.
    """
    plan, w = s.plan, s.work
    if loop is None or plan.remat not in KEEPING or plan.remat == KEEPING[loop]:
        return s.stored
    return s.on_chip(work(w.model, w.T, KEEPING[loop], plan.activations, True).stored)


def _between_steps(s: TrainingShape, loop: bool | None) -> tuple[dict[str, Any], float, float, float]:
    """What is there at every moment; sums over microbatches; gradients after all layers; what is rounded.

    XLA rounds the shards of all layers together before a loop begins, so that each is gathered rounded. A
    compiled loop has its layers' gradients together beside the sums, in the weights' type; layers that are
    written out have each scattered as it is made, and added. What is not compiled has all gradients.
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
    sums = copies * gradients if s.m > 1 else 0.0  # of one microbatch, nothing waits to be added to
    if loop is None:
        return always, sums, copies * gradients, 0.0
    kind = (plan.weights.bytes if loop else s.moved) / plan.gradients.bytes
    own = copies * (layers.gradients + expert.gradients) * min(kind, 1) if loop or s.m == 1 else 0.0
    narrower = s.moved / plan.weights.bytes if loop and s.moved < plan.weights.bytes else 0.0
    return always, sums, sums + own, (layers.weights + expert.weights) * narrower
