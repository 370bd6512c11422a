"""One strategy for a sharded matmul with its time by term, and all strategies side by side."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scalingbook_lib.collectives import NOTHING, Transfer
from scalingbook_lib.collectives.resharding import ReshardingStep
from scalingbook_lib.notation import Product
from scalingbook_lib.roofline import CopyPipeline, pipeline
from scalingbook_lib.units import Result, si

CASES = {
    1: "case 1, the contracting dimension is not sharded: multiply the local blocks",
    2: "case 2, one operand is sharded along the contracting dimension: gather it, or slice the other",
    3: "case 3, both are sharded along the contracting dimension: local products are partial sums",
    4: "case 4, one mesh axis shards an outer dimension of each operand: gather one of them",
}


@dataclass(frozen=True, slots=True)
class Strategy(Result):
    """One strategy for a sharded matmul: moves, a local matmul, more moves, and the time by term."""

    before: tuple[ReshardingStep, ...]
    local: Product  # the arrays as they are multiplied, and the result with its partial sums
    after: tuple[ReshardingStep, ...]
    flops: float  # per chip
    math_s: float
    hbm_bytes: float  # per chip: both local operands read, the local result written
    hbm_s: float

    @property
    def steps(self) -> tuple[ReshardingStep, ...]:
        """Every move, before and after the matmul."""
        return self.before + self.after

    @property
    def name(self) -> str:
        """The moves in words, as in 'gather B over X'."""
        return ", ".join(move.description for move in self.steps) or "nothing to move"

    @property
    def transfer(self) -> Transfer:
        """All moves as one transfer, one after the other."""
        # moves are serialized, because each needs the result of the previous one
        return sum((move.transfer for move in self.steps), NOTHING)

    @property
    def comms_s(self) -> float:
        """The time of all moves in seconds, one after the other, hops included."""
        return self.transfer.total_s

    @property
    def nbytes(self) -> float:
        """The bytes of all moves together, as the formulas count them."""
        return sum(move.nbytes for move in self.steps)

    @property
    def chip_s(self) -> float:
        """The time of the local matmul in seconds: the longer of math and HBM traffic."""
        return max(self.math_s, self.hbm_s)  # the roofline of the local matmul

    @property
    def lower_s(self) -> float:
        """The time in seconds if matmul and moves overlap fully."""
        return max(self.chip_s, self.comms_s)

    @property
    def upper_s(self) -> float:
        """The time in seconds if nothing overlaps: move, then multiply, then move."""
        return self.chip_s + self.comms_s

    @property
    def bound(self) -> str:
        """The longest term: 'network', 'memory' or 'compute'."""
        terms = {"compute": self.math_s, "memory": self.hbm_s, "network": self.comms_s}
        return max(terms, key=lambda term: terms[term])

    def overlapped(self, chunks: int) -> CopyPipeline:
        """A collective matmul in `chunks` chunks: max + min / n, with communication hidden behind math."""
        # wang2023overlap: one chunk of the shorter term stays exposed
        return pipeline({"network": self.comms_s / chunks, "chip": self.chip_s / chunks}, chunks)

    def __str__(self) -> str:
        terms = f"math {_s(self.math_s)}, HBM {_s(self.hbm_s)}, network {_s(self.comms_s)}"
        return f"{self.name}: {_s(self.lower_s)} with full overlap, {self.bound}-bound ({terms})"


@dataclass(frozen=True, slots=True)
class RejectedStrategy(Result):
    """A strategy that does not work here, and the reason."""

    local: Product
    why: str

    def __str__(self) -> str:
        return f"{self.local.canonical()}: {self.why}"


@dataclass(frozen=True, slots=True)
class Solution(Result):
    """Every strategy for one sharded matmul, the fastest first, and those that do not work here."""

    product: Product
    cases: Mapping[str, int]  # by mesh axis
    strategies: tuple[Strategy, ...]
    rejected: tuple[RejectedStrategy, ...]

    @property
    def case(self) -> int:
        """The case of the matmul, from 1 to 4; an axis that conflicts decides."""
        found = set(self.cases.values())
        # a conflict of two outer dimensions, then an axis to gather, then a partial sum to reduce
        return next((case for case in (4, 2, 3) if case in found), 1)

    @property
    def best(self) -> Strategy:
        """The fastest strategy, by `lower_s` and then by `upper_s`."""
        return self.strategies[0]

    @property
    def margin(self) -> float:
        """The time of the second-best strategy over that of the best, both overlapped.

        It is inf if there is only one strategy.
        """
        return self.strategies[1].lower_s / self.best.lower_s if len(self.strategies) > 1 else math.inf

    def why(self, strategy: Strategy) -> str:
        """A comparison of the strategy with the best one, and its bottleneck, as text."""
        if strategy is self.best:
            return f"fastest, {strategy.bound}-bound"
        times = strategy.lower_s / self.best.lower_s
        if times > 1.001:  # closer is a tie: equal sums may differ by rounding
            return f"{times:.3g} times as long, {strategy.bound}-bound"
        more = strategy.upper_s / self.best.upper_s
        return f"equally long with full overlap, {more:.3g} times as long without overlap"

    def named(self, name: str) -> Strategy:
        """The strategy of that name, as in 'gather B over X'.

        Raises a ValueError that lists all strategies if there is none of that name.
        """
        for strategy in self.strategies:
            if strategy.name == name:
                return strategy
        known = "; ".join(strategy.name for strategy in self.strategies)
        raise ValueError(f"no strategy is called {name!r}; there are: {known}")

    def __str__(self) -> str:
        text = f"{self.product} is {CASES[self.case]}. Fastest: {self.best}"
        if len(self.strategies) == 1:
            return text
        return f"{text}. Next: {self.strategies[1].name}: {self.why(self.strategies[1])}"


def _s(seconds: float) -> str:
    return si(float(seconds), "s")
