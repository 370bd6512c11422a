"""How are weights and experts shared among the chips of a stage, and which ways leave room for activations?

On a torus an exchange of tokens depends on the whole mesh, and plans with experts are judged `one_by_one`.
Chapter: Training LLaMA 3.
"""

from functools import cache
from math import inf
from typing import NamedTuple

from scalingbook_lib.collectives import Collective
from scalingbook_lib.planner.fast.links import MeshRates
from scalingbook_lib.planner.fast.sums import Moved
from scalingbook_lib.planner.fast.unit import ExpertShare, Stage, Triple, Unit
from scalingbook_lib.planner.space import Space
from scalingbook_lib.planner.spread import Sharing, Spread
from scalingbook_lib.steps.placement import FREE
from scalingbook_lib.training.feasible import reasons
from scalingbook_lib.training.shape import TrainingShape

type Picks = list[tuple[int, int]]  # kinds of ZeRO and of rematerialization, by their place in those tried

FIRST: Picks = [(0, 0)]  # the least of each


def fullest(states: Triple, held: Triple) -> float:
    """What both hold at the moment when that is most."""
    most, unembedding, layer = states[0] + held[0], states[1] + held[1], states[2] + held[2]
    most = unembedding if unembedding > most else most  # max() takes twice as long
    return layer if layer > most else most


class States(NamedTuple):
    """What the weights and their optimizer hold, per kind of ZeRO; or why there is no kind."""

    zeros: tuple[int, ...]
    nbytes: list[Triple]
    tops: list[float]  # of each kind, at the moment when that is most
    most: float  # of any kind
    why: str


class RankSplit:
    """One way to share the data ranks and the experts, with all that does not depend on the microbatch."""

    __slots__ = ("hop", "line", "mesh", "most", "moved", "nbytes", "sharing", "tops", "why", "zeros")

    def __init__(self, sharing: Sharing, states: States) -> None:
        self.sharing = sharing
        self.zeros, self.nbytes, self.tops, self.most, self.why = states
        self.mesh: MeshRates | None = None
        self.line: tuple[object, ...] = ()  # passes of splits with the same line take the same time
        self.hop = FREE  # from stage to stage
        self.moved: list[Moved | None] = [None] * len(self.zeros)

    def lay(self, mesh: MeshRates, pp: int) -> None:
        """On these links."""
        self.mesh, self.line = mesh, (mesh.Y, mesh.C, self.sharing.ep, self.sharing.expert_tp)
        if pp > 1:
            self.hop = mesh.P[Collective.PERMUTE]


class RankSplits:
    """The splits of one search."""

    def __init__(self, space: Space, unit: Unit) -> None:
        self.space, self.unit = space, unit
        self._even, self.states = cache(self._divide), cache(self._states)

    def of(self, s: Spread, summed: bool) -> list[RankSplit]:
        """Every way of fsdp and dp, and of the experts over a stage; or one that says why there is none."""
        found = []
        for fsdp in self.space.splits(s.rest):
            stage = s.tp, s.pp, s.chunks, fsdp * s.cp, summed
            shared = [
                RankSplit(one, self.states(*stage, ep=one.ep, expert_tp=one.expert_tp))
                for one in self._sharings(s, fsdp)
            ]
            found += shared or [
                RankSplit(Sharing(fsdp, s.rest // fsdp), States((), [], [], inf, self._none(s, fsdp)))
            ]
        return found

    def _sharings(self, s: Spread, fsdp: int) -> list[Sharing]:
        if not self.space.model.experts:
            return [Sharing(fsdp, s.rest // fsdp)]
        return [one for one in self.space.shares(s, fsdp) if self._even(s.tp, one.ep, one.expert_tp)]

    def _divide(self, tp: int, ep: int, expert_tp: int | None) -> bool:
        """Whether experts and their widths do, whatever the rest of the plan."""
        plan = self.space.plan(tp=tp, ep=ep, expert_tp=expert_tp, fsdp=self.space.machine.chips // tp, zero=0)
        return not reasons(self.space.model, plan, self.space.T, self.space.machine)

    def _none(self, s: Spread, fsdp: int) -> str:
        return (
            f"no ep of {', '.join(map(str, self.space.expert_ways))} and expert_tp divide the "
            f"{s.tp * s.cp * fsdp:,} chips of a stage's copy"
        )

    def _states(
        self, tp: int, pp: int, chunks: int, shared: int, summed: bool, *, ep: int, expert_tp: int | None
    ) -> States:
        zeros, why = self.space.zeros(shared)
        if expert_tp == 1 and tp > 1:  # experts are shared where all else is not
            zeros, why = self.space.tried["zero"], ""
        experts = self.experts(tp, self.unit.shape(tp, pp, chunks), shared, ep=ep, expert_tp=expert_tp)
        # one of several chips scatters gradients, whether others share its weights or copy them
        copied = shared > 1 or self.space.machine.chips * self.space.pods > tp * pp
        stage = Stage(tp, pp, chunks, summed, copied)
        nbytes = [self.unit.states(stage, shared, experts, zero) for zero in zeros]
        tops = list(map(max, nbytes))
        return States(zeros, nbytes, tops, max(tops, default=inf), why)

    def experts(
        self, tp: int, shape: TrainingShape, shared: int, *, ep: int, expert_tp: int | None
    ) -> ExpertShare:
        """A chip's experts, where `shared` chips hold the same dense weights; without any, no parameters."""
        split = (expert_tp or tp) * ep  # chips that the experts of a layer are split over
        params = shape.expert * tp / split  # the shape has tp chips for each expert, and ep = 1
        return ExpertShare(params, split, tp * shared // split)


class Room:
    """What a group of spreads keeps of activations, per rematerialization, in a memory of that size.

    States of `for_all` bytes fit whatever is rematerialized, those of more than `for_any` do not, at whatever
    moment: the moments are counted one by one only for what is between, few of all plans.
    """

    __slots__ = ("_every", "_size", "for_all", "for_any", "held")

    def __init__(self, held: list[Triple], size: float, every: bool) -> None:
        self.held, self._size, self._every = held, size, every
        self.for_all = -inf if every else size - max(map(max, held))  # -inf: each is looked at
        self.for_any = size - min(map(min, held))

    def far(self, split: RankSplit) -> float:
        """What the smallest plan of a split holds; without its states, where no kind of ZeRO can be."""
        return min(fullest(one, held) for one in split.nbytes or [(0.0, 0.0, 0.0)] for held in self.held)

    def picks(self, split: RankSplit) -> tuple[Picks, int]:
        """Which plans of a split fit and are to be judged; how many more fit, and cannot be faster.

        That is: some other that fits has no more of ZeRO and of rematerialization.
        """
        least = kinds = len(self.held)
        found, fit, for_all, for_any = [], 0, self.for_all, self.for_any
        for z, top in enumerate(split.tops):
            if top > for_any:
                continue
            fits = range(kinds) if top <= for_all else self._beside(split.nbytes[z])
            fit += len(fits)
            if self._every:
                found += [(z, r) for r in fits]
            elif fits and fits[0] < least:
                least = fits[0]
                found.append((z, least))
        return found, fit - len(found)

    def _beside(self, states: Triple) -> list[int]:
        """The rematerializations that leave room for these states at every moment."""
        (a, b, c), size = states, self._size
        return [
            r for r, (x, y, w) in enumerate(self.held) if a + x <= size and b + y <= size and c + w <= size
        ]
