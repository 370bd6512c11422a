"""The reasons for which a search rejected plans: how often, and the closest miss of each.

Chapter: Training Llama 3.
"""

from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from scalingbook_lib.training import Plan
from scalingbook_lib.units import Result

_CAUSES = {"stages": "the number of pipeline stages", "schedule": "the pipeline schedule"}  # of kinds


@dataclass(frozen=True, slots=True)
class Rejected(Result):
    """One kind of reason: how many combinations of degrees it ruled out, and the closest miss."""

    kind: str
    count: int
    why: str
    plan: Plan | None = None

    def __str__(self) -> str:
        return f"{self.count:,} because of {_CAUSES.get(self.kind, self.kind)} (closest: {self.why})"


class Infeasible(NamedTuple):
    """Why a combination of degrees has no possible plan, and its distance from one in bytes or chips."""

    kind: str
    distance: float
    why: str


@dataclass(slots=True)
class RejectionStats:
    """The counts of a running search; `rejected` has the results."""

    _counts: dict[str, int] = field(default_factory=dict)
    _distance: dict[str, float] = field(default_factory=dict)
    _closest: dict[str, tuple[str, Plan | None]] = field(default_factory=dict)

    def count(self, kind: str, n: int, distance: float) -> bool:
        """Count n rejections, and return whether this is the closest miss of its kind so far."""
        self._counts[kind] = self._counts.get(kind, 0) + n
        return distance < self._distance.get(kind, inf)

    def closest(self, kind: str, why: str, plan: Plan | None, distance: float) -> None:
        """Keep this miss, unless another of its kind is as close."""
        if distance < self._distance.get(kind, inf):
            self._distance[kind], self._closest[kind] = distance, (why, plan)

    def refuse(self, kind: str, n: int, why: str, plan: Plan | None = None) -> None:
        """Count n rejections at the same distance; the first is kept."""
        if self.count(kind, n, 0.0):
            self.closest(kind, why, plan, 0.0)

    @property
    def total(self) -> int:
        """The number of all rejections."""
        return sum(self._counts.values())  # of spreads, not plans

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """Every kind of rejection, the most frequent first."""
        found = [Rejected(k, n, *self._closest[k]) for k, n in self._counts.items() if n]
        return tuple(sorted(found, key=lambda one: (-one.count, one.kind)))
