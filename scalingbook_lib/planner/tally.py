"""What was refused, how often, and how near did the nearest come?

Chapter: Training LLaMA 3.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from scalingbook_lib.training import Plan
from scalingbook_lib.units import Result


@dataclass(frozen=True, slots=True)
class Rejected(Result):
    """One kind of reason: how many spreads it ruled out, and the one that came nearest."""

    kind: str
    count: int
    why: str
    plan: Plan | None = None

    def __str__(self) -> str:
        return f"{self.count:,} for {self.kind}, the nearest: {self.why}"


class Miss(NamedTuple):
    """Why a spread has no legal plan, and how far it is from one: bytes, or chips."""

    kind: str
    far: float
    why: str


def nearer(one: Miss | None, other: Miss | None) -> Miss | None:
    """The miss that came nearer: by memory at all, then by less of it."""
    if one is None or other is None:
        return one or other
    # what misses by memory alone has passed all other rules
    return min(one, other, key=lambda miss: (miss.kind != "memory", miss.far))


@dataclass(slots=True)
class Tally:
    """Counts while a search runs; `rejected` are the results."""

    _counts: dict[str, int] = field(default_factory=dict)
    _far: dict[str, float] = field(default_factory=dict)
    _found: dict[str, tuple[str, Plan | None]] = field(default_factory=dict)

    def counts(self, kind: str, count: int, far: float) -> bool:
        """Count; whether it is the nearest so far, which is then to be told."""
        self._counts[kind] = self._counts.get(kind, 0) + count
        return far < self._far.get(kind, float("inf"))

    def nearest(self, kind: str, why: str, plan: Plan | None, far: float) -> None:
        """The nearest of its kind so far."""
        self._far[kind], self._found[kind] = far, (why, plan)

    def refuse(self, kind: str, count: int, why: str, plan: Plan | None = None) -> None:
        """Count; the first is the nearest."""
        if self.counts(kind, count, 0.0):
            self.nearest(kind, why, plan, 0.0)

    @property
    def total(self) -> int:
        """All that was refused."""
        return sum(self._counts.values())  # of spreads, not plans

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """Every kind, the most frequent first."""
        found = [Rejected(k, n, *self._found[k]) for k, n in self._counts.items() if n]
        return tuple(sorted(found, key=lambda one: (-one.count, one.kind)))
