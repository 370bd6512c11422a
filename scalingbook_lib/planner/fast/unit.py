"""What does `training` say of one token, one parameter, one layer? Asked once, for all plans that share it.

Chapter: Training LLaMA 3.
"""

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, NamedTuple

from scalingbook_lib.planner.fast.links import MeshLinks
from scalingbook_lib.planner.spread import Sharing
from scalingbook_lib.training import Plan, TrainingCase
from scalingbook_lib.training.buffers import vocabulary
from scalingbook_lib.training.links import TrainingCollective, unpriced
from scalingbook_lib.training.memory import compiled, moments
from scalingbook_lib.training.shape import TrainingShape, shape
from scalingbook_lib.training.times import Layers, layers, seconds
from scalingbook_lib.training.traffic import context, rows

type Rows = tuple[TrainingCollective, ...]
type Triple = tuple[float, float, float]  # bytes at each of the moments


@dataclass(slots=True)
class TokenBytes:
    """Bytes for each token of a microbatch on a chip: activations, and what each moment has beside them."""

    stored: float  # of all layers
    logits: float
    waiting: float  # of what is stored, at the unembedding's gradient
    unembedding: float
    layer: float  # but the less of these two:
    logits_gradient: float
    vocabulary: float  # bytes of the unembedding's, whatever the tokens


class Stage(NamedTuple):
    """A stage whose gradients are summed over microbatches, and of which there are copies, or not."""

    tp: int
    pp: int
    chunks: int
    summed: bool
    copied: bool


class ExpertShare(NamedTuple):
    """Expert parameters of a chip before sharing, the chips inside those that hold the same, how many do."""

    params: float
    inside: int
    ways: int


NO_EXPERTS = ExpertShare(0.0, 1, 1)


class Unit:
    """One model, machine and T, and constants of a plan; `remat` is any, for what does not depend on it.

    Kept is what a search asks for again and again: without `shape`, `layers`, `hop_bytes` and
    `weights` it takes 1.1 to 1.2 times as long, each.
    """

    def __init__(
        self, case: TrainingCase, *, pods: int, constant: tuple[tuple[str, Any], ...], remat: str
    ) -> None:
        self.case, self.constant, self.remat = case, dict(constant), remat
        self.links = MeshLinks(case.machine, pods, case.efficiency)
        self.shape, self.layers, self.moved = cache(self._shape), cache(self._layers), cache(self._moved)
        self.weights, self.context = cache(self._weights), cache(self._context)
        self.hop_bytes, self.sharing = cache(self._hop_bytes), cache(self._sharing)
        self.state, self.line, self.held = cache(self._state), cache(self._line), cache(self._held)
        self.loop = compiled(case.machine)
        self.gathers = self.constant.get("context") == "gather"
        self.even = self.constant.get("zigzag", True)  # chips have as much of a causal mask each

    def given(self, **ways: Any) -> TrainingShape:
        """A plan's shape with one microbatch, of one token."""
        plan = Plan(**{**self.constant, "remat": self.remat, **ways})
        return replace(shape(self.case.work(plan), plan, plan.ranks * plan.microbatch), t=1.0)

    def _shape(self, tp: int, pp: int, chunks: int) -> TrainingShape:
        """The layers and parameters of the longest stage; they do not depend on the schedule's name."""
        how = {"schedule": "interleaved", "chunks": chunks} if chunks > 1 else {}
        return self.given(tp=tp, pp=pp, **how)

    def token(self, tp: int, remat: str, ep: int, expert_tp: int | None, *, cp: int = 1) -> TrainingShape:
        """All layers and one token."""
        return self.given(tp=tp, cp=cp, remat=remat, zero=0, ep=ep, expert_tp=expert_tp, fsdp=ep)

    def _layers(self, tp: int, cp: int, remat: str, sharing: Sharing, t: float) -> Layers:
        """All layers and t tokens."""
        s = self.token(tp, remat, sharing.ep, sharing.expert_tp, cp=cp)
        return layers(replace(s, t=t), self.case.machine.chip, self.case.efficiency)

    def _moved(self, tp: int, remat: str, ep: int, expert_tp: int | None, staged: bool) -> Rows:
        """What tensor ways, experts and stages send; without stages, the vocabulary's too."""
        s = self.token(tp, remat, ep, expert_tp)
        return tuple(rows(replace(s, plan=replace(s.plan, pp=2)) if staged else s, unpriced))

    def _hop_bytes(self, tp: int) -> float:
        """To the next stage, for a token and one chunk, the same both ways."""
        return next(row.nbytes for row in self.moved(tp, self.remat, 1, None, True) if row.axes == "P")

    def _context(self, tp: int, cp: int, remat: str) -> Rows:
        """What a sequence split over cp chips sends, for a token on each of them and all layers."""
        return tuple(context(self.given(tp=tp, cp=cp, remat=remat, zero=0), unpriced))

    def _held(
        self, tp: int, cp: int, remats: tuple[str, ...], staged: bool, microbatch: int
    ) -> list[TokenBytes]:
        """Of each rematerialization; `microbatch` is 1, or any of several sequences."""
        return [self._token_bytes(tp, cp, remat, staged, microbatch) for remat in remats]

    def _token_bytes(self, tp: int, cp: int, remat: str, staged: bool, microbatch: int) -> TokenBytes:
        """Without the weights, gathered or not."""
        s = self.given(tp=tp, cp=cp, remat=remat, zero=0, microbatch=microbatch)
        none = replace(s.work, split=0, copied=0, by_kv_head=0, embedding=0, head=0)
        logits, unembedding, layer = moments(replace(s, work=none, dense=0.0, expert=0.0), self.loop)
        stored = logits.activations
        # of one token the gradient is less than the vocabulary's
        logits_gradient = 0.0 if staged or self.loop is None else moments(s, self.loop)[2].logits
        return TokenBytes(
            stored=stored,
            logits=logits.total - stored,
            waiting=unembedding.activations,
            unembedding=unembedding.total - unembedding.activations,
            layer=layer.total - stored,
            logits_gradient=logits_gradient,
            vocabulary=vocabulary(s),
        )

    def states(self, stage: Stage, shared: int, experts: ExpertShare, zero: int) -> Triple:
        """What no token has a part in, of dense weights that so many chips share."""
        if experts.params or shared == 1:
            return self.state(stage, shared, experts, zero)
        (a, b, c), (x, y, w) = self.line(stage, zero)
        return a + x / shared, b + y / shared, c + w / shared

    def _line(self, stage: Stage, zero: int) -> tuple[Triple, Triple]:
        """a and b of each moment's a + b / shared, without experts, for 2 chips and more: two tell all."""
        (a, b, c), (x, y, w) = (self.state(stage, n, NO_EXPERTS, zero) for n in (2, 4))
        # from a + b/2 and a + b/4: a = 2 (a + b/4) - (a + b/2), b = 4 (a + b/2 - a - b/4)
        return (2 * x - a, 2 * y - b, 2 * w - c), (4 * (a - x), 4 * (b - y), 4 * (c - w))

    def _state(self, stage: Stage, shared: int, experts: ExpertShare, zero: int) -> Triple:
        shape = self.shape(stage.tp, stage.pp, stage.chunks)
        plan = self.sharing(shape.plan, zero, stage.copied)
        held = {
            "m": 1 + stage.summed,
            "shared": shared,
            "expert": experts.params,
            "expert_shared": experts.ways,
        }
        logits, unembedding, layer = moments(replace(shape, plan=plan, t=0.0, **held), self.loop)
        return logits.total, unembedding.total, layer.total

    def _sharing(self, plan: Plan, zero: int, copied: bool) -> Plan:
        return replace(plan, zero=zero, dp=1 + copied)

    def _weights(self, zero: int) -> Rows:
        """The rows of one parameter in one layer, as if the sums over copies and pods were of all of it."""
        s = self.given(fsdp=2, dp=2, dcn=2, zero=zero)
        # over the two chips that share, and the two copies of a pod
        parted = {"X": 1, "K": 2, "R": 2, "S": 4}
        one = s.stages._replace(layers=1)
        found = rows(replace(s, dense=1.0, kv=1.0, kv_copies=2, stages=one, expert=0.0), unpriced)
        return tuple(replace(r, nbytes=r.nbytes * parted[r.axes]) for r in found if r.axes in parted)

    def update_s(self) -> float:
        """Seconds of the optimizer for each parameter."""
        s = replace(self.given(zero=0), dense=1.0, expert=0.0)
        return seconds(s, (), self.case.machine.chip, self.case.efficiency).optimizer_s


unit = lru_cache(maxsize=16)(
    Unit
)  # the same again for the next search, which takes 1.5 times as long without
