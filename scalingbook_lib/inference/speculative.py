"""The speedup of speculative decoding: a small model drafts tokens, and the large one verifies them.

Each drafted token is assumed to be accepted with the same probability, independently of the others. Source:
Leviathan et al., arXiv 2211.17192, theorem 3.8 and section 3.1. Chapter: Inference.
"""

from collections.abc import Callable
from dataclasses import dataclass

from scalingbook_lib.units import Result, count, percent

type Ratio = float | Callable[[int], float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Speculation(Result):
    """`draft` tokens are drafted, each accepted with probability `acceptance`; times are in decode steps."""

    acceptance: float
    draft: int
    cost: float  # of one drafted token
    verify: float  # of one step that checks draft + 1 tokens

    @property
    def tokens(self) -> float:
        """Average number per verification: (1 - p^(K+1)) / (1 - p), with the large model's own token."""
        # Token i + 1 needs the i before it: 1 + p + ... + p^K. The last one is the large model's own.
        p, K = self.acceptance, self.draft
        return K + 1.0 if p == 1 else (1 - p ** (K + 1)) / (1 - p)

    @property
    def steps(self) -> float:
        """The time of a round in decode steps: K drafts and one verification."""
        return self.verify + self.cost * self.draft

    @property
    def speed_up(self) -> float:
        """The mean number of tokens in the time of one plain decode step."""
        # both in plain decode steps: of these, each gives one token
        return self.tokens / self.steps

    def __str__(self) -> str:
        return (
            f"{count(self.draft)} drafted tokens, {percent(self.acceptance)} accepted: {self.tokens:.3g} "
            f"tokens for {self.steps:.3g} steps, {self.speed_up:.3g} times as fast"
        )


def speculative(acceptance: float, draft: int, *, cost: float, verify: Ratio = 1.0) -> Speculation:
    """Return the speedup E / (v + c K), for a cost c per drafted token and a verification v in decode steps.

    As long as the step is memory-bound, v is 1; `verify` may be a function of the number of verified tokens.
    """
    if not 0 <= acceptance <= 1 or draft < 0 or cost < 0:
        raise ValueError(
            f"acceptance={acceptance}, draft={draft}, cost={cost}: write a chance from 0 to 1, and no "
            "negative numbers"
        )
    if callable(verify):
        verify = verify(draft + 1)
    elif not draft:
        verify = 1.0  # nothing to check: a plain step
    return Speculation(acceptance=acceptance, draft=draft, cost=cost, verify=verify)


def best_draft(acceptance: float, *, cost: float, verify: Ratio = 1.0, most: int = 32) -> Speculation:
    """Return the number of drafted tokens, 0 to `most`, with the largest speedup; the smallest if tied."""
    # a longer guess is worth less with each token, and costs as much
    found = (speculative(acceptance, K, cost=cost, verify=verify) for K in range(most + 1))
    return max(found, key=lambda one: one.speed_up)
