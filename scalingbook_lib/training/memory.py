"""What does each chip hold in one training step, part by part, and does it fit?

Two moments are full: at the logits, and in a layer of the backward pass that is recomputed. They are never
together, so the larger one is counted. In a pipeline the first stage has most microbatches in its layer, and
the last one the logits. What a runtime keeps for itself (CUDA's context, fragments) is not counted.
Chapter: Training.
"""

from dataclasses import dataclass
from operator import attrgetter

from scalingbook_lib.machines import Machine
from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.training.plan import Plan
from scalingbook_lib.training.remat import products
from scalingbook_lib.training.shape import Shape, shape
from scalingbook_lib.training.work import work
from scalingbook_lib.units import Told, binary, percent, si


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory(Told):
    """Bytes on one chip at the fullest moment, by part: `memory["gathered weights"]`.

    Of logits and recomputed layer there is one, its moment's own; `other` is what the other moment has in
    its place (0 with stages, where it may be another chip's). `chip` is None where only the sum is asked for.
    """

    weights: float = 0.0
    gradients: float = 0.0
    optimizer: float = 0.0
    activations: float = 0.0
    recomputed_layer: float = 0.0
    logits: float = 0.0
    gathered_weights: float = 0.0
    buffers: float = 0.0
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
        """What stays between steps: weights, gradients and the optimizer's state."""
        return sum((self.weights, self.gradients, self.optimizer))

    @property
    def moment(self) -> str:
        """When it is the most: "at the logits", or "in a layer"."""
        return "at the logits" if self.logits else "in a layer"

    @property
    def fits(self) -> bool:
        """Whether the chip's HBM holds it."""
        return self.chip is None or self.total <= self.chip.hbm_bytes

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {si(n, 'B')}" for name, n in self.terms.items())
        if self.other:
            instead = f"in a layer done again {si(self.other, 'B')} in their place"
            if not self.logits:
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
    model: Transformer, plan: Plan, *, batch: int, T: int, machine: Machine | None = None, loop: bool = False
) -> Memory:
    """What one chip holds at the fullest moment of a step of `batch` sequences of T tokens.

    `loop`: as a compiled loop over the layers has it, which gathers no layer ahead, and scatters the
    gradients of each matrix while those of the next are made.
    """
    s = shape(work(model, T, plan.remat, plan.activations, True), plan, batch)
    return held(s, machine.chip if machine else None, loop)


def states(params: float, plan: Plan) -> Memory:
    """The state of `params` parameters alone: with K = 12 bytes for the optimizer, the ZeRO paper's table.

    (2 + 2 + K) P; ZeRO-1 2 P + 2 P + K P / N, ZeRO-2 2 P + (2 + K) P / N, ZeRO-3 (2 + 2 + K) P / N, of P / tp
    / pp parameters over N = fsdp · cp chips. Source: Rajbhandari et al., arXiv 1910.02054, figure 1.
    """
    return _state(params / (plan.tp * plan.pp), plan, plan.fsdp * plan.cp)


def _state(params: float, plan: Plan, ways: int) -> Memory:
    """Weights, gradients, optimizer's state of one chip's parameters, shared by `ways` chips."""
    master = plan.master.bytes if plan.master else 0.0
    return Memory(
        weights=params * plan.weights.bytes / (ways if plan.zero >= 3 else 1),
        gradients=params * plan.gradients.bytes / (ways if plan.zero >= 2 else 1),
        optimizer=params * (2 * plan.moments.bytes + master) / (ways if plan.zero >= 1 else 1),
    )


def held(s: Shape, chip: Chip | None = None, loop: bool = False) -> Memory:
    """`memory` of a shape."""
    plan, stored = s.plan, s.t * s.of_token(s.work.stored)
    copies = 2 if plan.schedule == "dualpipe" and plan.pp > 1 else 1  # two stages on each chip
    dense, expert = _state(s.dense, plan, s.shared), _state(s.expert, plan, s.expert_shared)
    # the first stage is fullest while a layer is done again, the last at the logits
    first, last, layer, logits = (
        stored * s.share * live(plan.schedule, plan.pp, s.m, plan.chunks),
        stored * s.last,
        in_layer(s),
        at_logits(s),
    )
    at_end = last + logits > first + layer
    other = layer if at_end else logits
    return Memory(
        weights=copies * (dense.weights + expert.weights),
        gradients=copies * (dense.gradients + expert.gradients),
        optimizer=dense.optimizer + expert.optimizer,
        activations=last if at_end else first,
        recomputed_layer=0.0 if at_end else layer,
        logits=logits if at_end else 0.0,
        gathered_weights=_gathered(s, 1 if loop else 2),
        buffers=buffers(s, loop),
        other=other if plan.pp == 1 else 0.0,
        chip=chip,
    )


def in_layer(s: Shape) -> float:
    """Bytes beside the stored activations while a layer is recomputed."""
    return s.t * (s.of_token(s.work.working) + across(s))


def at_logits(s: Shape) -> float:
    """Bytes beside the stored activations at the logits."""
    return s.t * s.work.model.V / s.plan.tp * s.plan.logit_bytes


def across(s: Shape) -> float:
    """Bytes for each token: a sequence's keys and values with their gradients, where they are gathered."""
    plan, w = s.plan, s.work
    if plan.context != "gather" or plan.cp == 1:
        return 0.0
    each = plan.activations.bytes * w.kv / w.model.softmax_layers / min(plan.tp, w.model.K)
    return 2 * plan.cp * each


def _gathered(s: Shape, at_once: int) -> float:
    """FSDP: the layer at work and the one that is gathered ahead, or the vocabulary's matrix, if larger."""
    if s.plan.zero < 3:
        return 0.0
    w = s.work
    dense = s.share * (w.split / s.plan.tp + w.copied) if s.shared > 1 else 0.0
    outer = max(w.embedding, w.head) / s.plan.tp if s.shared > 1 else 0.0
    expert = s.expert if s.expert_shared > 1 else 0.0
    return s.moved * max(at_once * (dense + expert) / s.layers, outer)


def buffers(s: Shape, loop: bool = False) -> float:
    """A layer's gradients before they are scattered; the whole input, output and a gradient of a product."""
    plan = s.plan
    whole = 3 * plan.activations.bytes * s.t * s.work.model.D if s.wide > 1 else 0.0
    if plan.zero < 2 or s.shared == 1:
        return whole
    return whole + plan.gradients.bytes * (2 * _largest(s) if loop else (s.dense + s.expert) / s.layers)


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
