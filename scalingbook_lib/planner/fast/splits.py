"""How are weights shared among the data ranks, and which ways leave room for activations?

Chapter: Training LLaMA 3.
"""

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from scalingbook_lib.collectives import Collective
from scalingbook_lib.planner.fast.links import Mesh
from scalingbook_lib.planner.fast.sums import Moved
from scalingbook_lib.planner.fast.unit import Triple
from scalingbook_lib.planner.spread import Share
from scalingbook_lib.steps.placement import FREE

type Picks = list[tuple[int, int]]  # kinds of ZeRO and of rematerialization, by their place in those tried

FIRST: Picks = [(0, 0)]  # the least of each


def fullest(states: Triple, held: Triple) -> float:
    """What both hold at the moment when that is most."""
    return max(states[0] + held[0], states[1] + held[1], states[2] + held[2])


def _each(pick: Callable[..., float], triples: list[Triple]) -> Triple:
    """Moment by moment, the least or the most; infinite where there is none."""
    if not triples:
        return inf, inf, inf
    logits, unembedding, layer = (pick(moment) for moment in zip(*triples, strict=True))
    return logits, unembedding, layer


class States(NamedTuple):
    """What the weights and their optimizer hold, per kind of ZeRO; or why there is no kind."""

    zeros: tuple[int, ...]
    nbytes: list[Triple]
    why: str
    least: Triple
    most: Triple

    @classmethod
    def of(cls, zeros: tuple[int, ...], nbytes: list[Triple], why: str) -> "States":
        """With the least and the most of each moment."""
        return cls(zeros, nbytes, why, _each(min, nbytes), _each(max, nbytes))


class Split:
    """One way to share the data ranks and the experts, with all that does not depend on the microbatch."""

    __slots__ = ("hop", "least", "line", "mesh", "most", "moved", "nbytes", "share", "why", "zeros")

    def __init__(self, share: Share, states: States) -> None:
        self.share = share
        self.zeros, self.nbytes, self.why, self.least, self.most = states
        self.mesh: Mesh | None = None
        self.line: tuple[object, ...] = ()  # passes of splits with the same line take the same time
        self.hop = FREE  # from stage to stage
        self.moved: list[Moved | None] = [None] * len(self.zeros)

    def lay(self, mesh: Mesh, pp: int) -> None:
        """On these links."""
        self.mesh, self.line = mesh, (mesh.Y, mesh.C, self.share.ep, self.share.expert_tp)
        if pp > 1:
            self.hop = mesh.P[Collective.PERMUTE]


class Room:
    """What a group of spreads keeps of activations, per rematerialization, in a memory of that size."""

    __slots__ = ("_every", "_least", "_most", "_size", "held")

    def __init__(self, held: list[Triple], size: float, every: bool) -> None:
        self.held, self._size, self._every = held, size, every
        self._least, self._most = _each(min, held), _each(max, held)

    def far(self, split: Split) -> float:
        """What the smallest plan of a split holds; without its states, where no kind of ZeRO can be."""
        states = split.nbytes or [(0.0, 0.0, 0.0)]
        return min(fullest(one, held) for one in states for held in self.held)

    def picks(self, split: Split) -> tuple[Picks, int]:
        """Which plans of a split fit and are to be judged; how many more fit, and cannot be faster.

        That is: some other that fits has no more of ZeRO and of rematerialization.
        """
        if fullest(split.most, self._most) <= self._size and not self._every:
            return FIRST, len(split.nbytes) * len(self.held) - 1
        if fullest(split.least, self._least) > self._size:
            return [], 0
        found, fit, least = [], 0, len(self.held)
        for z, states in enumerate(split.nbytes):
            fits = [fullest(states, held) <= self._size for held in self.held]
            fit += sum(fits)
            for r in range(least):
                if fits[r]:
                    found.append((z, r))
                    if not self._every:
                        least = r
                        break
        return found, fit - len(found)
