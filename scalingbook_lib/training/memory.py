"""What does each chip hold in one training step, part by part, and does it fit?

Three moments are full: at the logits, at the gradient of the unembedding, and in the last layer that the
backward pass comes to. They are never together, so the largest is counted. In a pipeline the first stage has most
microbatches in its layer, and the last one the logits. What a runtime keeps for itself (CUDA's context,
fragments between buffers) is not counted. The terms were found in the buffers that XLA assigned to programs of
many styles; `tests/lab/train` compiles some. Chapter: Training.
"""

from dataclasses import dataclass
from typing import NamedTuple

from scalingbook_lib.machines import Machine
from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.training.plan import Plan
from scalingbook_lib.training.remat import products
from scalingbook_lib.training.shape import Shape, shape
from scalingbook_lib.training.work import work
from scalingbook_lib.units import Told, binary, percent, si


class Parts(NamedTuple):
    """Bytes on one chip at one moment."""

    weights: float = 0.0
    gradients: float = 0.0
    optimizer: float = 0.0
    activations: float = 0.0
    recomputed_layer: float = 0.0
    logits: float = 0.0
    gathered_weights: float = 0.0
    buffers: float = 0.0

    @property
    def state(self) -> float:
        """Weights, gradients and the optimizer's state."""
        return sum((self.weights, self.gradients, self.optimizer))

    @property
    def total(self) -> float:
        """All parts."""
        return sum(self)


class Moments(NamedTuple):
    """What a chip holds when it is fullest."""

    logits: Parts  # the logits and their softmax; of a microbatch's gradients there are none yet
    unembedding: Parts  # the logits' gradient, and the unembedding's own, not scattered yet
    layer: Parts  # all layers' gradients, and one layer done again

    @property
    def fullest(self) -> Parts:
        """The one that must fit."""
        return max(self, key=lambda parts: parts.total)


@dataclass(frozen=True, slots=True)
class Memory(Told):
    """Bytes on one chip at the fullest moment, by part: `memory["gathered weights"]`.

    `chip` is None where only the sum is asked for. `state` is what stays between steps, and all gradients.
    `other` is what the other moment has in place of the logits, or of the recomputed layer (0 with stages,
    where it may be another chip's).
    """

    parts: Parts
    state: float
    moment: str = "in a layer"  # or "at the logits"
    chip: Chip | None = None
    other: float = 0.0

    def __getitem__(self, part: str) -> float:
        """The bytes of one part."""
        found = self._named
        if part not in found:
            raise KeyError(f"no part {part!r}; there are {', '.join(found)}")
        return found[part]

    @property
    def _named(self) -> dict[str, float]:
        return {name.replace("_", " "): n for name, n in self.parts._asdict().items()}

    @property
    def terms(self) -> dict[str, float]:
        """Every part that has any, by name."""
        return {name: n for name, n in self._named.items() if n}

    @property
    def total(self) -> float:
        """All parts."""
        return self.parts.total

    @property
    def fits(self) -> bool:
        """Whether the chip's HBM holds it."""
        return self.chip is None or self.total <= self.chip.hbm_bytes

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {si(n, 'B')}" for name, n in self.terms.items())
        if self.other:
            instead = f"in a layer done again {si(self.other, 'B')} in their place"
            if self.moment == "in a layer":
                instead = f"at the logits {si(self.other, 'B')} in its place"
            parts += f" ({self.moment}; {instead})"
        if self.chip is None:
            return f"{si(self.total, 'B')} on each chip: {parts}"
        verb = "fits" if self.fits else "does not fit"
        room = f"{binary(self.chip.hbm_bytes)} of {self.chip.name}"
        share = percent(self.total / self.chip.hbm_bytes)
        return f"{si(self.total, 'B')} {verb} in {room} ({share}): {parts}"


def memory(
    model: Transformer, plan: Plan, *, batch: int, T: int, machine: Machine | None = None, loop: bool = False
) -> Memory:
    """What one chip holds at the fullest moment of a step of `batch` sequences of T tokens.

    `loop`: as a compiled loop over the layers has it, which gathers no layer ahead, scatters the gradients of
    each matrix while those of the next are made, and with remat="none" keeps what is kept of "all".
    """
    # between the loop of the forward pass and that of the backward pass no kernel is fused
    remat = "all" if loop and plan.remat == "none" else plan.remat
    return held(shape(work(model, T, remat, plan.activations, True), plan, batch), machine, loop)


def held(s: Shape, machine: Machine | None = None, loop: bool = False) -> Memory:
    """`memory` of a shape."""
    found = moments(s, loop)
    dense, expert = _states(s)
    in_layer = found.fullest is found.layer
    return Memory(
        parts=found.fullest,
        state=_copies(s) * (dense.weights + dense.gradients + expert.weights + expert.gradients)
        + dense.optimizer
        + expert.optimizer,
        moment="in a layer" if in_layer else "at the logits",
        chip=machine.chip if machine else None,
        other=0.0 if s.plan.pp > 1 else found.logits.logits if in_layer else found.layer.recomputed_layer,
    )


def states(params: float, plan: Plan) -> Memory:
    """The state of `params` parameters alone: with K = 12 bytes for the optimizer, the ZeRO paper's table.

    (2 + 2 + K) P; ZeRO-1 2 P + 2 P + K P / N, ZeRO-2 2 P + (2 + K) P / N, ZeRO-3 (2 + 2 + K) P / N, of P / tp
    / pp parameters over N = fsdp · cp chips. Source: Rajbhandari et al., arXiv 1910.02054, figure 1.
    """
    found = _state(params / (plan.tp * plan.pp), plan, plan.fsdp * plan.cp)
    return Memory(found, found.state)


def _state(params: float, plan: Plan, ways: int) -> Parts:
    """Weights, gradients, optimizer's state of one chip's parameters, shared by `ways` chips."""
    master = plan.master.bytes if plan.master else 0.0
    return Parts(
        weights=params * plan.weights.bytes / (ways if plan.zero >= 3 else 1),
        gradients=params * plan.gradients.bytes / (ways if plan.zero >= 2 else 1),
        optimizer=params * (2 * plan.moments.bytes + master) / (ways if plan.zero >= 1 else 1),
    )


def moments(s: Shape, loop: bool = False) -> Moments:
    """All that a chip holds at each moment."""
    plan, w = s.plan, s.work
    (dense, expert), layers = _states(s), _state(_in_layers(s), plan, s.shared)
    copies = _copies(s)
    own = layers.gradients + expert.gradients
    if s.m > 1:  # sums over microbatches are there from the start, and a loop adds each one's own to them
        own *= min(plan.weights.bytes / plan.gradients.bytes, 1) if loop else 0
    summed = copies * (dense.gradients + expert.gradients) if s.m > 1 else 0.0
    # XLA rounds all layers' shards before the loop, so that each is gathered rounded
    rounded = layers.weights + expert.weights if loop and plan.weights.bytes > s.moved else 0.0
    rounded *= s.moved / plan.weights.bytes
    z, outer = s.t * w.model.V / plan.tp, s.moved * max(w.embedding, w.head) / plan.tp
    kept = z * min(plan.activations.bytes, plan.logit_bytes)  # in 16 bits: the product's result, its gradient
    stored = s.t * s.of_token(w.stored)
    at_logits = Parts(
        weights=copies * (dense.weights + expert.weights),
        gradients=summed,
        optimizer=dense.optimizer + expert.optimizer,
        activations=stored * s.last,
        logits=z * plan.logit_bytes,
        gathered_weights=rounded + (outer if plan.zero >= 3 and s.shared > 1 else 0.0),
    )
    return Moments(
        logits=at_logits,
        unembedding=at_logits._replace(logits=kept, buffers=outer),
        layer=at_logits._replace(
            gradients=summed + copies * own,
            activations=stored * s.share * live(plan, s.m),
            recomputed_layer=s.t * (s.of_token(w.working) + across(s)),
            # the product that is the unembedding's gradient comes last, so its operand is kept
            logits=kept if plan.pp == 1 else 0.0,
            gathered_weights=rounded + _gathered(s, 1 if loop else 2),
            buffers=_buffers(s, loop),
        ),
    )


def _states(s: Shape) -> tuple[Parts, Parts]:
    """Of the dense parameters, and of the experts'."""
    return _state(s.dense, s.plan, s.shared), _state(s.expert, s.plan, s.expert_shared)


def _in_layers(s: Shape) -> float:
    """Dense parameters of a stage's layers on a chip, before they are shared."""
    return s.share * (s.work.split / s.plan.tp + s.work.copied)


def _copies(s: Shape) -> int:
    """DualPipe has two stages on each chip."""
    return 2 if s.plan.schedule == "dualpipe" and s.plan.pp > 1 else 1


def across(s: Shape) -> float:
    """Bytes for each token: a sequence's keys and values with their gradients, where they are gathered."""
    plan, w = s.plan, s.work
    if plan.context != "gather" or plan.cp == 1:
        return 0.0
    each = plan.activations.bytes * w.kv / w.model.softmax_layers / min(plan.tp, w.model.K)
    return 2 * plan.cp * each


def _gathered(s: Shape, at_once: int) -> float:
    """FSDP: the layer at work, and the one that is gathered ahead."""
    if s.plan.zero < 3:
        return 0.0
    dense = _in_layers(s) if s.shared > 1 else 0.0
    expert = s.expert if s.expert_shared > 1 else 0.0
    return s.moved * at_once * (dense + expert) / s.layers


def _buffers(s: Shape, loop: bool) -> float:
    """A layer's gradients before they are summed; the whole input, output and a gradient of a product."""
    plan = s.plan
    whole = 3 * plan.activations.bytes * s.t * s.work.model.D if s.wide > 1 else 0.0
    if plan.zero < 2 or s.shared * plan.dp * plan.dcn == 1:
        return whole
    return whole + s.moved * (2 * _largest(s) if loop else (_in_layers(s) + s.expert) / s.layers)


def _largest(s: Shape) -> float:
    """The elements of the largest matrix of a layer, those of all experts of a chip together."""
    dense = [w for w in products(s.work.model) if w.part != "experts"]
    experts = s.expert / s.layers / (3 if s.work.model.gated else 2)
    return max(experts, *(w.size / s.plan.tp for w in dense))


def live(plan: Plan, m: int) -> float:
    """The most microbatches whose activations a stage holds: all with GPipe, at most p with 1F1B.

    Interleaved, p + (p - 1)/v of them; DualPipe p + 1, of its two stages.
    """
    p = plan.pp
    if p == 1:
        return 1
    most = {"gpipe": m, "interleaved": p + (p - 1) / plan.chunks, "dualpipe": p + 1}.get(plan.schedule, p)
    return min(m, most)
