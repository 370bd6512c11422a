"""What does the routing of a mixture of experts send, and who finds no room?

Each token travels to its experts and back.

A router prefers some experts: `chances` says how often each is visited; `turned_away` what one expert with
a capacity drops on average, `draw` who visits whom in one drawn step, and `Buckets` what an AllToAll in
buckets of one size sends and drops. Chapters: Transformers, GPUs, JAX.
"""

import math
from bisect import bisect
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from random import Random
from statistics import NormalDist

from scalingbook_lib.models.transformer import Transformer
from scalingbook_lib.units import BF16, DType, Result, count, percent, require_min, si


@dataclass(frozen=True, slots=True)
class Routing(Result):
    """What one mixture-of-experts layer does with B tokens on n chips that share its experts."""

    B: int
    tokens_per_expert: float
    bytes_one_way: float
    chips: int

    def __str__(self) -> str:
        return (
            f"{count(self.B)} tokens: {self.tokens_per_expert:.4g} for each expert, "
            f"{si(self.bytes_one_way, 'B')} over {self.chips} chips in each AllToAll"
        )


def routing(B: int, E: int, k: int, D: int, *, chips: int = 1, dtype: DType = BF16) -> Routing:
    """B tokens (of all chips together), each sent as D elements to k of E experts that n chips share."""
    _check(E, k)
    require_min(1, B=B, D=D, chips=chips)
    return Routing(B, B * k / E, B * k * D * dtype.bytes, chips)  # k visits of each token, over E experts


def visited(E: int, k: int, B: float) -> float:
    """The share of E experts that some of B tokens visits, in the mean: 1 - (1 - k/E)^B, routing uniform."""
    _check(E, k)
    return 1 - (1 - k / E) ** B  # a token misses an expert with the chance 1 - k/E


def params_read(model: Transformer, B: float) -> float:
    """The parameters that a step of B tokens reads: all but the experts that no token visits, in the mean."""
    x = model.experts
    idle = model.by_part.get("experts", 0) * (1 - visited(x.E, x.k, B)) if x else 0.0
    return model.params - idle


def all_to_all_bytes(B: int, k: int, D: int, dtype: DType = BF16) -> float:
    """The array of one AllToAll, over the whole axis: B tokens, a copy for each of k experts."""
    require_min(1, B=B, k=k, D=D)
    return B * k * D * dtype.bytes


def _check(E: int, k: int) -> None:
    if not 1 <= k <= E:
        raise ValueError(f"a token visits k = {k} of E = {E} experts; write 1 ≤ k ≤ E")


_NORMAL = NormalDist()

type Loads = tuple[tuple[int, ...], ...]  # visits by sending and receiving device


@lru_cache(maxsize=128)
def chances(E: int, k: int, skew: float) -> tuple[float, ...]:
    """The chance that a token visits each expert: proportional to rank^-skew, at most 1, k in all."""
    weights = [(rank + 1) ** -skew for rank in range(E)]  # Zipf's law
    certain = 0  # experts that every token visits
    while True:
        scale = (k - certain) / math.fsum(weights[certain:]) if certain < k else 0.0
        if certain == k or scale * weights[certain] <= 1:
            return tuple([1.0] * certain + [scale * w for w in weights[certain:]])
        certain += 1


def turned_away(B: int, chance: float, capacity: float) -> float:
    """The tokens of B for which an expert with this capacity has no room, in the mean.

    Visits are binomial; by their normal approximation the mean excess over c is σφ(z) - (c - μ)(1 - Φ(z)).
    """
    mean, spread = B * chance, math.sqrt(B * chance * (1 - chance))  # of a binomial: B p and √(B p (1 - p))
    if spread == 0:
        return max(mean - capacity, 0.0)
    z = (capacity - mean) / spread  # deviations from the mean to the end of the room
    return max(spread * _NORMAL.pdf(z) - (capacity - mean) * (1 - _NORMAL.cdf(z)), 0.0)


def capacity(factor: float, S: int, k: int, n: int) -> int:
    """⌈f · S k / n⌉: what one device would send to each if all were visited alike, times a factor."""
    return math.ceil(factor * S * k / n - 1e-9)  # 1.25 · 32 is 40, and not a rounding error more


@lru_cache(maxsize=64)
def draw(E: int, k: int, skew: float, *, n: int, S: int, seed: int) -> Loads:
    """Visits drawn by chance: every token to k different experts, an expert of rank r as r^-skew, or surely.

    Experts lie on the devices in the order of their rank. One random number a token chooses all k of its
    experts: those where a ladder of steps 1 apart, started there, meets the summed chances in mixed order.
    """
    chance, random = chances(E, k, skew), Random(f"{E} {k} {skew} {n} {seed}")
    return tuple(_sent(chance, k, n, S, random) for _ in range(n))


def _sent(chance: tuple[float, ...], k: int, n: int, S: int, random: Random) -> tuple[int, ...]:
    """The visits that one device's S tokens pay to each device."""
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
    """Visits between n devices of S tokens each, k a token, and buckets of `capacity` for each pair."""

    loads: Loads
    S: int
    k: int
    capacity: int

    @property
    def n(self) -> int:
        """How many devices."""
        return len(self.loads)

    @property
    def kept(self) -> Loads:
        """The visits that find room."""
        return tuple(tuple(min(load, self.capacity) for load in row) for row in self.loads)

    @property
    def dropped(self) -> float:
        """The share of all n · S · k visits that find none."""
        return 1 - sum(map(sum, self.kept)) / (self.n * self.S * self.k)

    @property
    def empty(self) -> float:
        """The share of all places that are sent with nothing in them."""
        return 1 - sum(map(sum, self.kept)) / (self.n * self.n * self.capacity)

    @property
    def arriving(self) -> tuple[int, ...]:
        """Visits that come to each device."""
        return tuple(map(sum, zip(*self.loads, strict=True)))

    def padded_bytes(self, token_bytes: float) -> float:
        """What a device hands to the AllToAll: n buckets of tokens, full or not."""
        return self.n * self.capacity * token_bytes

    def ragged_bytes(self, token_bytes: float) -> float:
        """What it would hand to one that sends each visit and no more: its S · k visits."""
        return self.S * self.k * token_bytes

    def __str__(self) -> str:
        return f"{self.n} devices, room for {self.capacity} a pair: {percent(self.dropped)} dropped"
