"""How are weights shared among the data ranks, and which ways leave room for activations?

Chapter: Training LLaMA 3.
"""

from bisect import bisect_right
from math import inf
from typing import NamedTuple

from scalingbook_lib.collectives import Collective
from scalingbook_lib.planner.fast.links import Mesh
from scalingbook_lib.planner.fast.sums import Moved
from scalingbook_lib.planner.spread import Share
from scalingbook_lib.steps.placement import FREE

type Picks = list[tuple[int, int]]  # kinds of ZeRO and of rematerialization, by their place in those tried

FIRST: Picks = [(0, 0)]  # the least of each


class States(NamedTuple):
    """What the weights and their optimizer hold, per kind of ZeRO; or why there is no kind."""

    zeros: tuple[int, ...]
    nbytes: list[float]
    why: str
    least: float
    most: float

    @classmethod
    def of(cls, zeros: tuple[int, ...], nbytes: list[float], why: str) -> "States":
        """With the least and the most, which are infinite where there is none."""
        return cls(zeros, nbytes, why, min(nbytes, default=inf), max(nbytes, default=inf))


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

    __slots__ = ("_ascending", "_every", "_size", "for_all", "for_any", "held")

    def __init__(self, held: list[float], size: float, every: bool) -> None:
        self.held, self._size, self._every, self._ascending = held, size, every, sorted(held)
        self.for_any = size - self._ascending[0]  # to states of so many bytes and less
        self.for_all = size - self._ascending[-1]

    @property
    def least(self) -> float:
        """Of any rematerialization."""
        return self._ascending[0]

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
