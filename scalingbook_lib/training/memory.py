"""What does each chip hold in one training step, part by part, and does it fit?

Of a pipeline's stages the first is counted, which holds most microbatches, or the last, with the logits.
What a runtime keeps for itself
(CUDA's context, fragments) is not. Chapter: Training.
"""

from dataclasses import dataclass

from scalingbook_lib.hardware import Chip
from scalingbook_lib.limits import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.told import Told
from scalingbook_lib.training.plan import Plan
from scalingbook_lib.training.shape import Shape, shape
from scalingbook_lib.training.work import work
from scalingbook_lib.units import binary, percent, si

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


@dataclass(frozen=True, slots=True)
class Memory(Told):
    """Bytes on one chip, by part: see `PARTS`. `chip` is None where only the sum is asked for."""

    parts: tuple[float, ...]
    chip: Chip | None = None

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
    def fits(self) -> bool:
        """Whether the chip's HBM holds it."""
        return self.chip is None or self.total <= self.chip.hbm_bytes

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {si(n, 'B')}" for name, n in self.terms.items())
        if self.chip is None:
            return f"{si(self.total, 'B')} on each chip: {parts}"
        verb = "fits" if self.fits else "does not fit"
        room = f"{binary(self.chip.hbm_bytes)} of {self.chip.name}"
        share = percent(self.total / self.chip.hbm_bytes)
        return f"{si(self.total, 'B')} {verb} in {room} ({share}): {parts}"


def memory(model: Transformer, plan: Plan, *, batch: int, T: int, machine: Machine | None = None) -> Memory:
    """What one chip holds at the fullest moment of a step of `batch` sequences of T tokens."""
    found = shape(work(model, T, plan.remat, plan.activations, True), plan, batch)
    return Memory(parts(found), machine.chip if machine else None)


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


def parts(s: Shape) -> tuple[float, ...]:
    """The bytes of every part, in the order of `PARTS`: the numbers alone, for a search."""
    plan, w, m = s.plan, s.work, s.work.model
    copies = 2 if plan.schedule == "dualpipe" and plan.pp > 1 else 1  # two stages on each chip
    weights, gradients, optimizer = _states(s.dense, plan, s.shared)
    if s.expert:
        more = _states(s.expert, plan, s.expert_shared)
        weights, gradients, optimizer = weights + more[0], gradients + more[1], optimizer + more[2]
    kept = s.t * s.share * (w.kept_wide / s.wide + w.kept_split / plan.tp)
    working = s.t * (w.working_wide / s.wide + w.working_split / plan.tp)
    held = kept * live(plan, s.M)
    logits = s.t * m.V / plan.tp * plan.logit_bytes
    if plan.pp > 1:  # the last stage has the logits, and the activations of one microbatch
        ends = kept * s.last / s.share
        held, logits = (ends, logits) if ends + logits > held else (held, 0.0)
    return (
        copies * weights, copies * gradients, optimizer, held, working, logits,
        _gathered(s), _buffers(s),
    )  # fmt: skip


def _gathered(s: Shape) -> float:
    """FSDP: the layer at work and the one that is gathered ahead, or the vocabulary's matrix, if larger."""
    if s.plan.zero < 3:
        return 0.0
    outer = max(s.work.embedding, s.work.head) / s.plan.tp if s.shared > 1 else 0.0
    layers = (s.share * (s.work.split / s.plan.tp + s.work.copied) if s.shared > 1 else 0.0) + (
        s.expert if s.expert_shared > 1 else 0.0
    )
    return s.moved * max(2 * layers / s.layers, outer)


def _buffers(s: Shape) -> float:
    """A layer's gradients before they are scattered; the whole input, output and a gradient of a product."""
    plan = s.plan
    gradients = plan.gradients.bytes * (s.dense + s.expert) / s.layers
    whole = 3 * plan.activations.bytes * s.t * s.work.model.D if s.wide > 1 else 0.0
    return whole + (gradients if plan.zero >= 2 and s.shared > 1 else 0.0)


def live(plan: Plan, M: int) -> float:
    """The most microbatches whose activations a stage holds: all with GPipe, at most P with 1F1B.

    Interleaved, P + (P - 1)/v of them; DualPipe P + 1, of its two stages.
    """
    P = plan.pp
    if P == 1:
        return 1
    most = {"gpipe": M, "interleaved": P + (P - 1) / plan.chunks, "dualpipe": P + 1}.get(plan.schedule, P)
    return min(M, most)
