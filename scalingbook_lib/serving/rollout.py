"""The time to generate a batch of responses until the longest one ends (an RL rollout).

As responses end, the batch shrinks but its steps hardly get shorter, so a few long responses dominate.
Chapter: RL post-training systems.

>>> from scalingbook_lib.serving import Affine
>>> print(rollout(Affine(), [100, 200, 800], P=10))
3 responses, 1,100 tokens in 8.09 s: 136 tokens/s, 1 left at half time
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
    """Responses that start together and run until the longest one ends."""

    run: ServingRun
    tokens: int

    @property
    def seconds(self) -> float:
        """The time in seconds at which the last response ends."""
        return max(self.end_times_s)

    @property
    def end_times_s(self) -> list[float]:
        """The end of each response in seconds, in ascending order."""
        return sorted(served.end_s for served in self.run.requests)

    @property
    def tokens_per_s(self) -> float:
        """The output tokens per second, averaged over the whole rollout."""
        return self.tokens / self.seconds

    def alive(self, at_s: float) -> int:
        """The number of responses that have not ended by `at_s`."""
        return sum(end > at_s for end in self.end_times_s)

    def __str__(self) -> str:
        return (
            f"{len(self.end_times_s):,} responses, {count(self.tokens)} tokens in {si(self.seconds, 's')}: "
            f"{si(self.tokens_per_s, 'tokens/s')}, {self.alive(self.seconds / 2)} left at half time"
        )


def rollout(costs: Costs, lengths: Sequence[int], *, P: int, slots: int | None = None) -> Rollout:
    """A `Rollout` of responses of these lengths to prompts of P tokens; with few `slots` responses queue."""
    requests = [Request(0.0, P, length) for length in lengths]
    return Rollout(simulate(requests, costs, Continuous(slots or len(requests))), sum(lengths))


def sample_lengths(
    answers: int, mean: float, sigma: float, *, max_tokens: int = 2**20, seed: int = 0
) -> list[int]:
    """Lognormal lengths in tokens of `answers` responses; a `sigma` of 0 makes them equal."""
    draw, rng = lognormal(mean, sigma, max_tokens), Random(seed)
    return [draw(rng) for _ in range(answers)]


def mean_context(lengths: Sequence[int], P: int) -> float:
    """The mean tokens cached in an always-full slot, P + E[G²] / 2E[G]: long responses stay longer."""
    # a response of G tokens occupies a slot for G steps, with P + G/2 tokens on average
    return P + sum(length**2 for length in lengths) / (2 * sum(lengths))


@dataclass(frozen=True, slots=True)
class RefilledEngine(Result):
    """An engine whose free slots are refilled at once, in its steady state."""

    slots: int
    decoding: float  # of the slots, on average; the others wait for tools, and keep their KV cache
    step_s: float  # one decode step
    tokens_per_s: float

    def __str__(self) -> str:
        return (
            f"{self.decoding:,.3g} of {self.slots:,} slots decode, {si(self.step_s, 's')} per step: "
            f"{si(self.tokens_per_s, 'tokens/s')}"
        )


def refilled(
    costs: Costs, lengths: Sequence[int], *, P: int, slots: int, environment_s: float = 0.0
) -> RefilledEngine:
    """Decoding slots B = slots · t_decode / (t_decode + t_env), by Little's law, and their tokens per second.

    A response of G tokens decodes for t_decode = G · step(B) + B · prefill, and waits for its environment,
    such as tools or tests, for t_env = `environment_s` in total.
    """
    if not environment_s >= 0:
        raise ValueError(f"{environment_s=}: write the seconds that a response waits for tools, 0 or more")
    context, G = mean_context(lengths, P), sum(lengths) / len(lengths)
    prefill_s = costs.step_s(0, 0, P) * len(lengths) / sum(lengths)  # per output token

    def rate(B: float) -> float:
        # seconds per token: a slot's share of a step, plus its share of the prefills
        return 1 / (costs.step_s(B, B * context) / B + prefill_s)

    B: float = slots
    if environment_s:
        low, high = 0.0, float(slots)
        for _ in range(60):  # 60 halvings leave less than a float can tell apart
            B = (low + high) / 2
            decode_s = G * B / rate(B)  # of one response
            low, high = (B, high) if slots * decode_s / (decode_s + environment_s) > B else (low, B)
    return RefilledEngine(slots, B, costs.step_s(B, B * context), rate(B))


def refilled_tokens_per_s(
    costs: Costs, lengths: Sequence[int], *, P: int, slots: int, environment_s: float = 0.0
) -> float:
    """The output tokens per second if slots are refilled at once; see `refilled`."""
    return refilled(costs, lengths, P=P, slots=slots, environment_s=environment_s).tokens_per_s
