"""The difference between the times of two plans, term by term.

Chapter: Training Llama 3.
"""

from dataclasses import dataclass

from scalingbook_lib.training import TrainingStep
from scalingbook_lib.units import Result, percent, si

_SHOWN = (
    "tp",
    "cp",
    "pp",
    "fsdp",
    "dp",
    "ep",
    "expert_tp",
    "zero",
    "schedule",
    "chunks",
    "microbatch",
    "remat",
)


@dataclass(frozen=True, slots=True)
class Comparison(Result):
    """Two steps of one model and batch, and how much more (or less) time the second spends on each term."""

    first: TrainingStep
    second: TrainingStep

    @property
    def terms(self) -> dict[str, float]:
        """The extra seconds of the second step by term, the largest first; their sum is `lost_s`."""
        one, other = self.first.terms, self.second.terms
        # a term that one step lacks is 0 there
        found = {name: other.get(name, 0.0) - one.get(name, 0.0) for name in {**one, **other}}
        # by size, then by name: the order never hangs on rounding
        return dict(sorted(found.items(), key=lambda item: (-abs(item[1]), item[0])))

    @property
    def lost_s(self) -> float:
        """The extra time of the second step in seconds."""
        return self.second.total_s - self.first.total_s  # the sum of the terms' differences

    @property
    def changed(self) -> dict[str, tuple[object, object]]:
        """The fields in which the plans differ."""
        one, other = self.first.plan, self.second.plan
        pairs = {name: (getattr(one, name), getattr(other, name)) for name in _SHOWN}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def __str__(self) -> str:
        how = ", ".join(f"{name}={new} instead of {old}" for name, (old, new) in self.changed.items())
        least = 1e-4 * self.first.total_s  # smaller differences are not worth a word
        shown = {name: s for name, s in self.terms.items() if abs(s) > least}
        parts = [f"{name} {'+' if s > 0 else '−'}{si(abs(s), 's')}" for name, s in shown.items()]
        longer = "longer" if self.lost_s >= 0 else "shorter"
        if abs(self.lost_s) <= least and not parts:
            return f"{how or 'the same plan'}: no difference in time"
        return (
            f"{how or 'the same plan'}: {si(abs(self.lost_s), 's')} {longer} "
            f"({percent(abs(self.lost_s) / self.first.total_s)}): {', '.join(parts)}"
        )
