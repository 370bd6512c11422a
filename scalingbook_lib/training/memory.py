"""What does each chip hold in one training step, part by part, and does it fit?

Three moments are full: the logits with their softmax, when no gradient exists yet; the gradient of the
unembedding; the last layer of the backward pass. They are never together, so the largest is counted. In a
pipeline the first stage has most microbatches in its layer, and the last one the logits. The terms are what
XLA's TPU compiler assigns buffers to in programs of many styles (`tests/lab/train/test_others_memory.py`).
What a runtime keeps for itself (CUDA's context, fragments between buffers) is not counted. Chapter: Training.
"""

from dataclasses import dataclass, replace
from operator import attrgetter

from scalingbook_lib.machines import Machine
from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.models import Transformer
from scalingbook_lib.training.plan import Plan
from scalingbook_lib.training.remat import products
from scalingbook_lib.training.shape import Shape, shape
from scalingbook_lib.training.work import work
from scalingbook_lib.units import Told, binary, percent, si

AT_LOGITS, IN_LAYER = "at the logits", "in a layer"
KEEPING = ("none", "all")  # policies that do nothing again: of layers written out, and of a loop


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory(Told):
    """Bytes on one chip at the fullest moment, by part: `memory["gathered weights"]`.

    `gradients` are those of that moment, `all_gradients` what they come to. `other` is what the other moment
    has in place of the logits, or of the recomputed layer (0 with stages, where it may be another chip's).
    `chip` is None where only the sum is asked for.
    """

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

    def __getitem__(self, part: str) -> float:
        """The bytes of one part."""
        if part not in PARTS:
            raise KeyError(f"no part {part!r}; there are {', '.join(PARTS)}")
        return PARTS[part](self)

    @property
    def terms(self) -> dict[str, float]:
        """Every part that has any, by name."""
        return {name: n for name, part in PARTS.items() if (n := part(self))}

    @property
    def total(self) -> float:
        """All parts."""
        return sum(part(self) for part in PARTS.values())

    @property
    def state(self) -> float:
        """Weights, all gradients and the optimizer's state, whatever the moment."""
        return sum((self.weights, self.all_gradients, self.optimizer))

    @property
    def fits(self) -> bool:
        """Whether the chip's HBM holds it."""
        return self.chip is None or self.total <= self.chip.hbm_bytes

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {si(n, 'B')}" for name, n in self.terms.items())
        if self.other:
            instead = f"in a layer done again {si(self.other, 'B')} in their place"
            if self.moment == IN_LAYER:
                instead = f"at the logits {si(self.other, 'B')} in its place"
            parts += f" ({self.moment}; {instead})"
        if self.chip is None:
            return f"{si(self.total, 'B')} on each chip: {parts}"
        verb = "fits" if self.fits else "does not fit"
        room = f"{binary(self.chip.hbm_bytes)} of {self.chip.name}"
        share = percent(self.total / self.chip.hbm_bytes)
        return f"{si(self.total, 'B')} {verb} in {room} ({share}): {parts}"


PARTS = {
    "weights": attrgetter("weights"),
    "gradients": attrgetter("gradients"),
    "optimizer": attrgetter("optimizer"),
    "activations": attrgetter("activations"),
    "recomputed layer": attrgetter("recomputed_layer"),
    "logits": attrgetter("logits"),
    "gathered weights": attrgetter("gathered_weights"),
    "buffers": attrgetter("buffers"),
}


def memory(
    model: Transformer,
    plan: Plan,
    *,
    batch: int,
    T: int,
    machine: Machine | None = None,
    loop: bool | None = None,
) -> Memory:
    """What one chip holds at the fullest moment of a step of `batch` sequences of T tokens.

    `loop`: of a compiled program, whether its layers are a loop (on a TPU slice: True, unless it is said) or
    written out; None of one that is not compiled, which gathers a layer ahead and has a layer's gradients
    together before it scatters them. Where nothing is done again, a loop keeps what is kept of "all", and
    layers that are written out what fused kernels keep.
    """
    return held(shape(work(model, T, plan.remat, plan.activations, True), plan, batch), machine, loop)


def held(s: Shape, machine: Machine | None = None, loop: bool | None = None) -> Memory:
    """`memory` of a shape."""
    found = logits, _, layer = moments(s, compiled(machine) if loop is None else loop)
    most = max(found, key=lambda moment: moment.total)
    other = layer.recomputed_layer if most.moment == AT_LOGITS else logits.logits
    return replace(most, chip=machine.chip if machine else None, other=0.0 if s.plan.pp > 1 else other)


def compiled(machine: Machine | None) -> bool | None:
    """Whether a program for that machine is a loop over its layers; None where it is not compiled."""
    return True if isinstance(machine, Slice) else None


def states(params: float, plan: Plan) -> Memory:
    """The state of `params` parameters alone: with K = 12 bytes for the optimizer, the ZeRO paper's table.

    (2 + 2 + K) P; ZeRO-1 2 P + 2 P + K P / N, ZeRO-2 2 P + (2 + K) P / N, ZeRO-3 (2 + 2 + K) P / N, of P / tp
    / pp parameters over N = fsdp · cp chips. Source: Rajbhandari et al., arXiv 1910.02054, figure 1.
    """
    return _state(params / (plan.tp * plan.pp), plan, plan.fsdp * plan.cp)


def _state(params: float, plan: Plan, ways: int) -> Memory:
    """Weights, gradients, optimizer's state of one chip's parameters, shared by `ways` chips."""
    master = plan.master.bytes if plan.master else 0.0
    gradients = params * plan.gradients.bytes / (ways if plan.zero >= 2 else 1)
    return Memory(
        weights=params * plan.weights.bytes / (ways if plan.zero >= 3 else 1),
        gradients=gradients,
        all_gradients=gradients,
        optimizer=params * (2 * plan.moments.bytes + master) / (ways if plan.zero >= 1 else 1),
    )


def moments(s: Shape, loop: bool | None) -> tuple[Memory, Memory, Memory]:
    """All that a chip holds: at the logits, at the unembedding's gradient, in the last layer to be done."""
    plan, w = s.plan, s.work
    copies = 2 if plan.schedule == "dualpipe" and plan.pp > 1 else 1  # two stages on each chip
    dense, expert = _state(s.dense, plan, s.shared), _state(s.expert, plan, s.expert_shared)
    layers = _state(_in_layers(s), plan, s.shared)
    gradients = copies * (dense.gradients + expert.gradients)
    # sums over microbatches are there from the start, and a loop has each one's own beside them
    summed = gradients if s.m > 1 else 0.0
    own = copies * (layers.gradients + expert.gradients) if s.m == 1 or loop else 0.0
    own *= min(plan.weights.bytes / plan.gradients.bytes, 1) if s.m > 1 else 1
    # a loop's shards are rounded before it begins, all layers' together, and gathered rounded
    rounded = s.moved * (layers.weights + expert.weights) / plan.weights.bytes
    rounded = rounded if loop and plan.weights.bytes > s.moved else 0.0
    z, vocabulary = s.t * w.model.V / plan.tp, unembedding_bytes(s)
    kept = z * min(plan.activations.bytes, plan.bytes_of_logit)  # the product in 16 bits, then its gradient
    # no kernel is fused across the end of a loop, so all that the backward pass reads is written
    remat = plan.remat if loop is None or plan.remat not in KEEPING else KEEPING[loop]
    stored = s.t * s.of_token(work(w.model, w.T, remat, plan.activations, True).stored)
    layer_at_work, again = _gathered(s, 2 if loop is None else 1), s.t * (s.of_token(w.working) + across(s))
    # written out, the last layer waits as it is for the backward pass, and is done again before it is needed
    waits = loop is False
    logits = Memory(
        weights=copies * (dense.weights + expert.weights),
        gradients=summed,
        optimizer=dense.optimizer + expert.optimizer,
        activations=stored * s.last,
        logits=z * plan.bytes_of_logit,
        recomputed_layer=again if waits else 0.0,
        gathered_weights=rounded
        + (vocabulary if plan.zero >= 3 and s.shared > 1 else 0.0)
        + (layer_at_work if waits else 0.0),
        moment=AT_LOGITS,
        all_gradients=gradients,
    )
    # its gradient, not scattered yet; a loss in chunks scatters each chunk's
    whole = vocabulary if plan.bytes_of_logit >= plan.activations.bytes else 0.0
    unembedding = replace(logits, logits=kept, buffers=whole)
    layer = replace(
        logits,
        gradients=summed + own,
        activations=stored * s.share * live(plan.schedule, plan.pp, s.m, plan.chunks),
        recomputed_layer=again,
        # the product of the unembedding's gradient waits for the end, with its operand, unless it is less
        logits=min(kept, vocabulary) if plan.pp == 1 else 0.0,
        gathered_weights=rounded + layer_at_work,
        buffers=_buffers(s, loop),
        moment=IN_LAYER,
    )
    return logits, unembedding, layer


def unembedding_bytes(s: Shape) -> float:
    """The whole of the vocabulary's matrix, or of its gradient."""
    return s.moved * max(s.work.embedding, s.work.head) / s.plan.tp


def across(s: Shape) -> float:
    """Bytes for each token: a sequence's keys and values with their gradients, where they are gathered."""
    plan, w = s.plan, s.work
    if plan.context != "gather" or plan.cp == 1:
        return 0.0
    each = plan.activations.bytes * w.kv / w.model.softmax_layers / min(plan.tp, w.model.K)
    return 2 * plan.cp * each


def _in_layers(s: Shape) -> float:
    """Dense parameters of a stage's layers on a chip, before they are shared."""
    return s.share * (s.work.split / s.plan.tp + s.work.copied)


def _gathered(s: Shape, at_once: int) -> float:
    """FSDP: the layer at work, and the one that is gathered ahead."""
    dense = _in_layers(s) if s.shared > 1 else 0.0
    expert = s.expert if s.expert_shared > 1 else 0.0
    return s.moved * at_once * (dense + expert) / s.layers if s.plan.zero >= 3 else 0.0


def _buffers(s: Shape, loop: bool | None) -> float:
    """A layer's gradients before they are summed; the whole input, output and a gradient of a product."""
    plan = s.plan
    whole = 3 * plan.activations.bytes * s.t * s.work.model.D if s.wide > 1 else 0.0
    if plan.zero < 2 or s.shared * plan.dp * plan.dcn == 1:
        return whole
    return whole + s.moved * ((_in_layers(s) + s.expert) / s.layers if loop is None else 2 * _largest(s))


def _largest(s: Shape) -> float:
    """The elements of the largest matrix of a layer, those of all experts of a chip together."""
    dense = [w for w in products(s.work.model) if w.part != "experts"]
    experts = s.expert / s.layers / (3 if s.work.model.gated else 2)
    return max(experts, *(w.size / s.plan.tp for w in dense))


def live(schedule: str, p: int, m: int, v: int) -> float:
    """The most microbatches whose activations a stage holds: all with GPipe, at most p with 1F1B.

    Interleaved, p + (p - 1)/v of them; DualPipe p + 1, of its two stages.
    """
    if p == 1:
        return 1
    return min(m, {"gpipe": m, "interleaved": p + (p - 1) / v, "dualpipe": p + 1}.get(schedule, p))
