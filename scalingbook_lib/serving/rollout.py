"""How long does a batch of answers take until the last one has ended?

As answers end, the batch shrinks and a step hardly gets shorter: the tail. Played on the server's simulator.
Chapter: After pretraining.

>>> from scalingbook_lib.serving import Affine
>>> print(rollout(Affine(), [100, 200, 800], P=10))
3 answers, 1,100 tokens in 8.09 s: 136 tokens/s, half of the time with 1 alive
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from scalingbook_lib.serving.costs import Costs
from scalingbook_lib.serving.policies import Continuous
from scalingbook_lib.serving.requests import Request, lognormal
from scalingbook_lib.serving.run import ServingRun
from scalingbook_lib.serving.simulate import simulate
from scalingbook_lib.units import Result, count, si


@dataclass(frozen=True, slots=True)
class Rollout(Result):
    """Answers that were begun together, to the end of the longest."""

    run: ServingRun
    tokens: int

    @property
    def seconds(self) -> float:
        """Until the last one has ended."""
        return max(self.ends)

    @property
    def ends(self) -> list[float]:
        """When each answer ended, the first first."""
        return sorted(served.end_s for served in self.run.requests)

    @property
    def tokens_per_s(self) -> float:
        """In the mean over all the time."""
        return self.tokens / self.seconds

    def alive(self, at_s: float) -> int:
        """Answers that have not ended by then."""
        return sum(end > at_s for end in self.ends)

    def __str__(self) -> str:
        return (
            f"{len(self.ends):,} answers, {count(self.tokens)} tokens in {si(self.seconds, 's')}: "
            f"{si(self.tokens_per_s, 'tokens/s')}, half of the time with {self.alive(self.seconds / 2)} alive"
        )


def rollout(costs: Costs, lengths: Sequence[int], *, P: int, slots: int | None = None) -> Rollout:
    """Answers of these lengths to prompts of P tokens; with fewer slots than answers, others follow."""
    requests = [Request(0.0, P, length) for length in lengths]
    return Rollout(simulate(requests, costs, Continuous(slots or len(requests))), sum(lengths))


def drawn(answers: int, mean: float, spread: float, *, most: int = 2**20, seed: int = 0) -> list[int]:
    """Lengths of so many answers, lognormal; a spread of 0 makes all equal."""
    draw, chance = lognormal(mean, spread, most), Random(seed)
    return [draw(chance) for _ in range(answers)]


def mean_context(lengths: Sequence[int], P: int) -> float:
    """Tokens in the cache of a full slot at any time: P + E[G²] / 2E[G], as long answers stay for longer."""
    # an answer of G tokens has a slot for G steps, with P + G/2 tokens in the mean
    return P + sum(length**2 for length in lengths) / (2 * sum(lengths))


def refilled(costs: Costs, lengths: Sequence[int], *, P: int, slots: int) -> float:
    """Tokens/s of a server whose slots are never empty: a step for all, and a prompt for every answer."""
    step_s = costs.step_s(slots, slots * mean_context(lengths, P))
    # seconds a token: a slot's part of a step, and of a prompt for each answer
    return 1 / (step_s / slots + costs.step_s(0, 0, P) * len(lengths) / sum(lengths))
