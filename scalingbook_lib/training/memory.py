"""What does each chip hold in one training step, part by part, and does it fit?

Two moments are full: at the logits, and in a layer of the backward pass that is done again. They are never
together, so the larger one is counted. In a pipeline the first stage has most microbatches in its layer, and
the last one the logits. What a runtime keeps for itself (CUDA's context, fragments) is not counted.
Chapter: Training.
"""

from dataclasses import dataclass

from scalingbook_lib.machines import Machine
from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.training.plan import Plan
from scalingbook_lib.training.shape import Shape, shape
from scalingbook_lib.training.work import work
from scalingbook_lib.units import Told, binary, percent, si

PARTS = (
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "recomputed layer",
    "logits",
    "gathered weights",
    "buffers",
)
LAYER, LOGITS = "recomputed layer", "logits"  # one of the two, at the moment that bears its name


@dataclass(frozen=True, slots=True)
class Memory(Told):
    """Bytes on one chip at the fullest moment, by part: see `PARTS`.

    `chip` is None where only the sum is asked for. `other` is what the other moment has in place of the
    logits, or of the recomputed layer (0 with stages, where it may be another chip's).
    """

    parts: tuple[float, ...]
    chip: Chip | None = None
    other: float = 0.0

    def __getitem__(self, part: str) -> float:
        """The bytes of one part."""
        if part not in PARTS:
            raise KeyError(f"no part {part!r}; there are {', '.join(PARTS)}")
        return self.parts[PARTS.index(part)]

    @property
    def terms(self) -> dict[str, float]:
        """Every part that has any, by name."""
        return {name: n for name, n in zip(PARTS, self.parts, strict=True) if n}

    @property
    def total(self) -> float:
        """All parts."""
        return sum(self.parts)

    @property
    def state(self) -> float:
        """What stays between steps: weights, gradients and the optimizer's state."""
        return sum(self.parts[:3])

    @property
    def moment(self) -> str:
        """When it is the most: "at the logits", or "in a layer"."""
        return "at the logits" if self[LOGITS] else "in a layer"

    @property
    def fits(self) -> bool:
        """Whether the chip's HBM holds it."""
        return self.chip is None or self.total <= self.chip.hbm_bytes

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {si(n, 'B')}" for name, n in self.terms.items())
        if self.other:
            instead = f"in a layer done again {si(self.other, 'B')} in their place"
            if not self[LOGITS]:
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

    `loop`: as a compiled loop over the layers has it, which gathers no layer ahead, and scatters the
    gradients of each matrix while those of the next are made.
    """
    return held(shape(work(model, T, plan.remat, plan.activations, True), plan, batch), machine, loop)


def held(s: Shape, machine: Machine | None = None, loop: bool = False) -> Memory:
    """`memory` of a shape."""
    found, (working, logits) = parts(s, loop), moments(s)
    other = working if found[PARTS.index(LOGITS)] else logits
    return Memory(found, machine.chip if machine else None, other if s.plan.pp == 1 else 0.0)


def states(params: float, plan: Plan) -> Memory:
    """The state of `params` parameters alone: with K = 12 bytes for the optimizer, the ZeRO paper's table.

    (2 + 2 + K) P; ZeRO-1 2 P + 2 P + K P / N, ZeRO-2 2 P + (2 + K) P / N, ZeRO-3 (2 + 2 + K) P / N, of P / tp
    / pp parameters over N = fsdp · cp chips. Source: Rajbhandari et al., arXiv 1910.02054, figure 1.
    """
    return Memory((*_states(params / (plan.tp * plan.pp), plan, plan.fsdp * plan.cp), *(0.0,) * 5))


def _states(params: float, plan: Plan, ways: int) -> tuple[float, float, float]:
    """Weights, gradients, optimizer's state of one chip's parameters, shared by `ways` chips."""
    z = plan.zero
    master = plan.master.bytes if plan.master else 0.0
    return (
        params * plan.weights.bytes / (ways if z >= 3 else 1),
        params * plan.gradients.bytes / (ways if z >= 2 else 1),
        params * (2 * plan.moments.bytes + master) / (ways if z >= 1 else 1),
    )


def parts(s: Shape, loop: bool = False) -> tuple[float, ...]:
    """The bytes of every part, in the order of `PARTS`: the numbers alone, for a search."""
    copies = 2 if s.plan.schedule == "dualpipe" and s.plan.pp > 1 else 1  # two stages on each chip
    weights, gradients, optimizer = _states(s.dense, s.plan, s.shared)
    if s.expert:
        more = _states(s.expert, s.plan, s.expert_shared)
        weights, gradients, optimizer = weights + more[0], gradients + more[1], optimizer + more[2]
    return (
        copies * weights, copies * gradients, optimizer, *_fullest(s), _gathered(s, 1 if loop else 2),
        _buffers(s, loop),
    )  # fmt: skip


def moments(s: Shape) -> tuple[float, float]:
    """What is there beside the kept activations: in a layer that is done again, and at the logits."""
    w, Y = s.work, s.plan.tp
    working = s.t * (w.working_wide / s.wide + w.working_split / Y + across(s))
    return working, s.t * w.model.V / Y * s.plan.logit_bytes


def across(s: Shape) -> float:
    """Bytes for each token: a sequence's keys and values with their gradients, where they are gathered."""
    plan, w = s.plan, s.work
    if plan.context != "gather" or plan.cp == 1:
        return 0.0
    each = plan.activations.bytes * w.kv / w.model.softmax_layers / min(plan.tp, w.model.K)
    return 2 * plan.cp * each


def _fullest(s: Shape) -> tuple[float, float, float]:
    """Activations, a layer done again, logits: of the first stage in a layer, or the last at the logits."""
    w, (working, logits) = s.work, moments(s)
    kept = s.t * (w.kept_wide / s.wide + w.kept_split / s.plan.tp)
    first, last = kept * s.share * live(s.plan, s.M), kept * s.last
    return (last, 0.0, logits) if last + logits > first + working else (first, working, 0.0)


def _gathered(s: Shape, at_once: int) -> float:
    """FSDP: the layer at work and the one that is gathered ahead, or the vocabulary's matrix, if larger."""
    if s.plan.zero < 3:
        return 0.0
    outer = max(s.work.embedding, s.work.head) / s.plan.tp if s.shared > 1 else 0.0
    layers = (s.share * (s.work.split / s.plan.tp + s.work.copied) if s.shared > 1 else 0.0) + (
        s.expert if s.expert_shared > 1 else 0.0
    )
    return s.moved * max(at_once * layers / s.layers, outer)


def _buffers(s: Shape, loop: bool) -> float:
    """A layer's gradients before they are scattered; the whole input, output and a gradient of a product."""
    plan = s.plan
    whole = 3 * plan.activations.bytes * s.t * s.work.model.D if s.wide > 1 else 0.0
    if plan.zero < 2 or s.shared == 1:
        return whole
    return whole + plan.gradients.bytes * (2 * _largest(s) if loop else (s.dense + s.expert) / s.layers)


def _largest(s: Shape) -> float:
    """The elements of the largest matrix of a layer, those of all experts of a chip together."""
    weights = [w for w in s.work.model.weights() if w.matmul and w.part != "unembedding"]
    experts = s.expert / s.layers / (3 if s.work.model.gated else 2)
    return max(experts, *(w.size / s.plan.tp for w in weights if w.part != "experts"))


def live(plan: Plan, M: int) -> float:
    """The most microbatches whose activations a stage holds: all with GPipe, at most P with 1F1B.

    Interleaved, P + (P - 1)/v of them; DualPipe P + 1, of its two stages.
    """
    P = plan.pp
    if P == 1:
        return 1
    most = {"gpipe": M, "interleaved": P + (P - 1) / plan.chunks, "dualpipe": P + 1}.get(plan.schedule, P)
    return min(M, most)
