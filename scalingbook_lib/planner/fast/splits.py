"""How are weights and experts shared among the chips of a stage, and which ways leave room for activations?

On a torus an exchange of tokens depends on the whole mesh, and plans with experts are judged `one_by_one`.
Chapter: Training LLaMA 3.
"""

from bisect import bisect_right
from functools import cache
from math import inf
from typing import NamedTuple

from scalingbook_lib.collectives import Collective
from scalingbook_lib.planner.fast.links import MeshRates
from scalingbook_lib.planner.fast.sums import Moved
from scalingbook_lib.planner.fast.unit import Unit
from scalingbook_lib.planner.space import Space
from scalingbook_lib.planner.spread import Sharing, Spread
from scalingbook_lib.steps.placement import FREE
from scalingbook_lib.training.feasible import reasons
from scalingbook_lib.training.shape import Shape

type Picks = list[tuple[int, int]]  # kinds of ZeRO and of rematerialization, by their place in those tried

FIRST: Picks = [(0, 0)]  # the least of each


class ExpertShare(NamedTuple):
    """Expert parameters of a chip before sharing, the chips inside those that hold the same, how many do."""

    params: float
    inside: int
    ways: int


class States(NamedTuple):
    """What the weights and their optimizer hold, per kind of ZeRO; or why there is no kind."""

    zeros: tuple[int, ...]
    nbytes: list[float]
    why: str


class Split:
    """One way to share the data ranks and the experts, with all that does not depend on the microbatch."""

    __slots__ = ("hop", "least", "line", "mesh", "most", "moved", "nbytes", "sharing", "why", "zeros")

    def __init__(self, sharing: Sharing, states: States) -> None:
        self.sharing = sharing
        self.zeros, self.nbytes, self.why = states
        self.least, self.most = min(self.nbytes, default=inf), max(self.nbytes, default=inf)
        self.mesh: MeshRates | None = None
        self.line: tuple[object, ...] = ()  # passes of splits with the same line take the same time
        self.hop = FREE  # from stage to stage
        self.moved: list[Moved | None] = [None] * len(self.zeros)

    def lay(self, mesh: MeshRates, pp: int) -> None:
        """On these links."""
        self.mesh, self.line = mesh, (mesh.Y, mesh.C, self.sharing.ep, self.sharing.expert_tp)
        if pp > 1:
            self.hop = mesh.P[Collective.PERMUTE]


class Splits:
    """The splits of one search."""

    def __init__(self, space: Space, unit: Unit) -> None:
        self.space, self.unit = space, unit
        self._even, self.states = cache(self._divide), cache(self._states)

    def of(self, s: Spread) -> list[Split]:
        """Every way of fsdp and dp, and of the experts over a stage; or one that says why there is none."""
        found = []
        for fsdp in self.space.splits(s.rest):
            shared = [
                Split(one, self.states(s.tp, s.pp, s.chunks, fsdp * s.cp, ep=one.ep, expert_tp=one.expert_tp))
                for one in self._sharings(s, fsdp)
            ]
            found += shared or [Split(Sharing(fsdp, s.rest // fsdp), States((), [], self._none(s, fsdp)))]
        return found

    def _sharings(self, s: Spread, fsdp: int) -> list[Sharing]:
        if not self.space.model.experts:
            return [Sharing(fsdp, s.rest // fsdp)]
        return [one for one in self.space.shares(s, fsdp) if self._even(s.tp, one.ep, one.expert_tp)]

    def _divide(self, tp: int, ep: int, expert_tp: int | None) -> bool:
        """Whether experts and their widths do, whatever the rest of the plan."""
        fsdp = self.space.machine.chips // tp
        plan = self.space.plan(tp=tp, ep=ep, expert_tp=expert_tp, fsdp=fsdp, zero=0)
        return not reasons(self.space.model, plan, self.space.T, self.space.machine)

    def _none(self, s: Spread, fsdp: int) -> str:
        asked = ", ".join(map(str, self.space.expert_ways))
        return f"no ep of {asked} and expert_tp divide the {s.tp * s.cp * fsdp:,} chips of a stage's copy"

    def _states(
        self, tp: int, pp: int, chunks: int, shared: int, *, ep: int, expert_tp: int | None
    ) -> States:
        zeros, why = self.space.zeros(shared)
        if expert_tp == 1 and tp > 1:  # experts are shared where all else is not
            zeros, why = self.space.tried["zero"], ""
        shape = self.unit.shape(tp, pp, chunks)
        experts = self.experts(tp, shape, shared, ep=ep, expert_tp=expert_tp)
        held = [self.unit.state(tp, zero).held(shape, shared, experts.params, experts.ways) for zero in zeros]
        return States(zeros, held, why)

    def experts(self, tp: int, shape: Shape, shared: int, *, ep: int, expert_tp: int | None) -> ExpertShare:
        """A chip's experts, where `shared` chips hold the same dense weights; without any, no parameters."""
        split = (expert_tp or tp) * ep  # chips that the experts of a layer are split over
        params = shape.expert * tp / split  # the shape has tp chips for each expert, and ep = 1
        return ExpertShare(params, split, tp * shared // split)


class Room:
    """What a group of spreads keeps of activations, per rematerialization, in a memory of that size."""

    __slots__ = ("_ascending", "_every", "_size", "for_all", "for_any", "held", "least")

    def __init__(self, held: list[float], size: float, every: bool) -> None:
        self.held, self._size, self._every, self._ascending = held, size, every, sorted(held)
        self.least = self._ascending[0]  # of any rematerialization
        self.for_any = size - self.least  # to states of so many bytes and less
        self.for_all = size - self._ascending[-1]

    def picks(self, split: Split) -> tuple[Picks, int]:
        """Which plans of a split fit and are to be judged; how many more fit, and cannot be faster.

        That is: some other that fits has no more of ZeRO and of rematerialization.
        """
        if split.most <= self.for_all and not self._every:
            return FIRST, len(split.nbytes) * len(self.held) - 1
        return self._frontier(split.nbytes) if split.least <= self.for_any else ([], 0)

    def _frontier(self, states: list[float]) -> tuple[Picks, int]:
        found, fit, least = [], 0, len(self.held)
        for z, state in enumerate(states):
            free = self._size - state
            fit += bisect_right(self._ascending, free)
            for r in range(least):
                if self.held[r] <= free:
                    found.append((z, r))
                    if not self._every:
                        least = r
                        break
        return found, fit - len(found)
