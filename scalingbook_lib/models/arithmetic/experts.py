"""Routing of mixture-of-experts layers: load per expert, dispatch traffic, and dropped tokens.

Each token is dispatched to its experts, and their outputs are combined.

Routers prefer some experts: `routing_probabilities` says how often each is chosen, `dropped_tokens` how many
one expert with a capacity drops on average, `sample_routing` who is routed where in one random step, and
`Buckets` what an AllToAll with equal buckets sends and drops. Chapters: Transformers; GPUs; JAX.
"""

import math
from bisect import bisect
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from random import Random
from statistics import NormalDist

from scalingbook_lib.models.transformer import Transformer
from scalingbook_lib.units import BF16, DType, Result, count, percent, require_min


@dataclass(frozen=True, slots=True)
class Routing(Result):
    """The load and traffic of one mixture-of-experts layer for B tokens on n chips that share its experts."""

    B: int
    tokens_per_expert: float
    dispatch_bytes: float
    chips: int
    line = "tokens_per_expert", "dispatch_bytes"

    @property
    def heading(self) -> str:
        """The tokens, and the chips that share the experts."""
        return f"{count(self.B)} tokens on {self.chips} chips"


def routing(B: int, E: int, k: int, D: int, *, chips: int = 1, dtype: DType = BF16) -> Routing:
    """B tokens (of all chips together), each sent as D elements to k of E experts on `chips` chips."""
    _check(E, k)
    require_min(1, B=B, D=D, chips=chips)
    return Routing(B, B * k / E, B * k * D * dtype.bytes, chips)  # k visits of each token, over E experts


def active_expert_share(E: int, k: int, B: float) -> float:
    """The expected share of E experts that at least one of B tokens
    activates: 1 - (1 - k/E)^B, uniform routing.
    """
    _check(E, k)
    return 1 - (1 - k / E) ** B  # a token misses an expert with the chance 1 - k/E


def params_read(model: Transformer, B: float) -> float:
    """The expected parameters that a step of B tokens reads: all but the experts that no token activates."""
    x = model.experts
    idle = model.by_part.get("experts", 0) * (1 - active_expert_share(x.E, x.k, B)) if x else 0.0
    return model.params - idle


def all_to_all_bytes(B: int, k: int, D: int, dtype: DType = BF16) -> float:
    """The bytes of one AllToAll over the whole axis: B tokens, a copy for each of k experts."""
    require_min(1, B=B, k=k, D=D)
    return B * k * D * dtype.bytes


def _check(E: int, k: int) -> None:
    if not 1 <= k <= E:
        raise ValueError(f"a token visits k = {k} of E = {E} experts; write 1 ≤ k ≤ E")


_NORMAL = NormalDist()

type Loads = tuple[tuple[int, ...], ...]  # visits by sending and receiving device


@lru_cache(maxsize=128)
def routing_probabilities(E: int, k: int, skew: float) -> tuple[float, ...]:
    """The probability that a token activates each expert: proportional to rank^-skew, at most 1, k in sum."""
    weights = [(rank + 1) ** -skew for rank in range(E)]  # Zipf's law
    certain = 0  # experts that every token visits
    while True:
        scale = (k - certain) / math.fsum(weights[certain:]) if certain < k else 0.0
        if certain == k or scale * weights[certain] <= 1:
            return tuple([1.0] * certain + [scale * w for w in weights[certain:]])
        certain += 1


def dropped_tokens(B: int, chance: float, capacity: float) -> float:
    """The expected number of B tokens that an expert of this capacity drops.

    The load is binomial; in its normal approximation the mean excess over c is σφ(z) - (c - μ)(1 - Φ(z)).
    """
    mean, spread = B * chance, math.sqrt(B * chance * (1 - chance))  # of a binomial: B p and √(B p (1 - p))
    if spread == 0:
        return max(mean - capacity, 0.0)
    z = (capacity - mean) / spread  # deviations from the mean to the end of the room
    return max(spread * _NORMAL.pdf(z) - (capacity - mean) * (1 - _NORMAL.cdf(z)), 0.0)


def capacity(factor: float, S: int, k: int, n: int) -> int:
    """⌈f · S k / n⌉: the tokens a device sends to each device under
    uniform routing, times the capacity factor f.
    """
    return math.ceil(factor * S * k / n - 1e-9)  # 1.25 · 32 is 40, and not a rounding error more


@lru_cache(maxsize=64)
def sample_routing(E: int, k: int, skew: float, *, n: int, S: int, seed: int) -> Loads:
    """A random step: each token is routed to k different experts, an
    expert of rank r with probability ∝ r^-skew.

    Returns the tokens from each device to each device; experts lie on the devices in the order of their rank.
    Systematic sampling: one random number per token chooses all k experts, where steps of 1 from it meet the
    cumulative probabilities in shuffled order.
    """
    chance, random = routing_probabilities(E, k, skew), Random(f"{E} {k} {skew} {n} {seed}")
    return tuple(_sent(chance, k, n, S, random) for _ in range(n))


def _sent(chance: tuple[float, ...], k: int, n: int, S: int, random: Random) -> tuple[int, ...]:
    """The tokens that one device routes to each device."""
    E = len(chance)
    order = random.sample(range(E), E)
    summed = list(accumulate(chance[e] for e in order))
    edges = sorted({edge % 1 for edge in summed})
    drawn: dict[int, int] = {}
    for _ in range(S):
        at = bisect(edges, random.random())
        drawn[at] = drawn.get(at, 0) + 1
    found = [0] * n
    for at, tokens in drawn.items():
        # tokens between the same two edges choose alike: the middle stands for all of them
        start = (edges[at - 1] if at else 0.0) / 2 + (edges[at] if at < len(edges) else 1.0) / 2
        for rung in range(k):
            expert = order[min(bisect(summed, start + rung), E - 1)]
            found[expert * n // E] += tokens
    return tuple(found)


@dataclass(frozen=True)
class Buckets(Result):
    """The dispatch of S tokens from each of n devices, k copies
    each, in buckets of `capacity` for each pair.
    """

    loads: Loads
    S: int
    k: int
    capacity: int

    @property
    def n(self) -> int:
        """The number of devices."""
        return len(self.loads)

    @property
    def accepted(self) -> Loads:
        """The tokens that fit their buckets, by sending and receiving device."""
        return tuple(tuple(min(load, self.capacity) for load in row) for row in self.loads)

    @property
    def dropped(self) -> float:
        """The share of all n · S · k routed tokens that are dropped."""
        return 1 - sum(map(sum, self.accepted)) / (self.n * self.S * self.k)

    @property
    def empty(self) -> float:
        """The share of all slots that are sent empty (padding)."""
        return 1 - sum(map(sum, self.accepted)) / (self.n * self.n * self.capacity)

    @property
    def arriving(self) -> tuple[int, ...]:
        """The tokens that are routed to each device."""
        return tuple(map(sum, zip(*self.loads, strict=True)))

    def padded_bytes(self, token_bytes: float) -> float:
        """The bytes that a device passes to the AllToAll: n buckets of tokens, full or not."""
        return self.n * self.capacity * token_bytes

    def ragged_bytes(self, token_bytes: float) -> float:
        """The bytes that a device would pass to a ragged all-to-all: its S · k tokens."""
        return self.S * self.k * token_bytes

    def __str__(self) -> str:
        return f"{self.n} devices, room for {self.capacity} a pair: {percent(self.dropped)} dropped"
