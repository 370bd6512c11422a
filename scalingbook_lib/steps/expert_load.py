"""How much more than the mean does the busiest chip of an expert-parallel group receive?

All chips of the group wait for the busiest. Two causes add up: tokens prefer some experts (skew), and even
without a preference the counts of few tokens vary. The loads of experts follow Zipf's law: the i-th most
popular of E experts receives a share proportional to i^-skew. Redundant copies of popular experts (EPLB,
DeepSeek's expert-parallel load balancer) remove the skew, not the variation. `balance` computes the loads of
all chips and nodes from any histogram, and `busiest_torus_link` what uneven chips do to the links of a torus.
Chapters: Inference; Mixture of experts.

>>> [round(busiest_over_mean(256, 32, skew=0.6, redundant=copies), 1) for copies in (0, 32)]
[2.4, 1.0]
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from heapq import heapify, heapreplace
from itertools import product
from math import isfinite, log, prod, sqrt
from operator import add
from random import Random

from scalingbook_lib.units import Result, percent

TRAINING_SKEW = 0.0125
"""The busiest of 64 experts is 4% above the mean, as with DeepSeek's balancing by a bias (MaxVio 0.04; Wang
et al., arXiv 2408.15664). With an auxiliary loss alone they report 52% to 72%: a skew of 0.13 to 0.17."""
SERVING_SKEW = 0.4
"""At 32 chips the busiest has 1.6 times the mean. SGLang's prefill of DeepSeek-V3 on 32 chips became 1.49
times as fast with EPLB. Simulators assume 0.6 (aiconfigurator, large groups) or 0.8 (TensorRT-LLM's
bench_moe)."""
_PLACEMENTS = 32  # random placements of the experts that are averaged
MOST_EXPERTS = 4096


def zipf_loads(experts: int, skew: float) -> list[float]:
    """The load of each expert over the mean, in descending order."""
    weights = [i**-skew for i in range(1, experts + 1)]
    mean = sum(weights) / experts
    return [weight / mean for weight in weights]


@lru_cache(maxsize=4096)
def busiest_over_mean(experts: int, chips: int, *, skew: float, redundant: int = 0) -> float:
    """The load of the busiest of `chips` over their mean, for very many tokens.

    Without redundant experts, experts lie on chips in an arbitrary order: the mean of random placements. With
    `redundant` copies, they are replicated and packed as EPLB does. Raises a ValueError for slots that do not
    divide over the chips, and for a negative skew.
    """
    if skew < 0 or redundant < 0 or chips < 1:
        raise ValueError(
            f"skew={skew}, redundant={redundant}, chips={chips}: "
            "write no negative numbers and at least 1 chip"
        )
    if (experts + redundant) % chips:
        raise ValueError(f"{experts} + {redundant} experts are not divisible by {chips} chips")
    if chips == 1:
        return 1.0
    loads, each = zipf_loads(experts, skew), (experts + redundant) // chips
    mean = experts / chips
    if redundant:
        return max(packed(replicated(loads, redundant), chips)) / mean
    if not skew:
        return 1.0
    shuffled, total = Random(0), 0.0
    for _ in range(_PLACEMENTS):
        shuffled.shuffle(loads)
        total += max(sum(loads[k : k + each]) for k in range(0, experts, each))
    return total / _PLACEMENTS / mean


def replicated(loads: list[float], redundant: int) -> list[float]:
    """The loads of all slots: each further copy goes to the expert whose copies have most to do."""
    heap = [(-load, load, 1) for load in loads]  # of one copy, of the expert, and its copies
    heapify(heap)
    for _ in range(redundant):
        _, load, copies = heap[0]
        heapreplace(heap, (-load / (copies + 1), load, copies + 1))
    return [load / copies for _, load, copies in heap for _ in range(copies)]


def packed(slots: list[float], chips: int) -> list[float]:
    """The load of each chip: the heaviest slot first, each on the least loaded chip that has room."""
    return [reduce(add, held, 0.0) for held in placed(slots, chips)]


def placed(slots: list[float], chips: int) -> list[list[float]]:
    """The slots of each chip: the heaviest slot first, each on the least loaded chip that has room."""
    held: list[list[float]] = [[] for _ in range(chips)]
    loads, room = [0.0] * chips, len(slots) // chips
    for load in sorted(slots, reverse=True):
        chip = min((k for k in range(chips) if len(held[k]) < room), key=loads.__getitem__)
        held[chip].append(load)
        loads[chip] += load
    return held


def variation(chips: int, copies: float) -> float:
    """The busiest of `chips` over the mean where each receives `copies` of tokens, by chance alone.

    The largest of Z values that vary by 1/√m is about 1 + √(2 ln Z / m), and never more than all of them.
    """
    if chips <= 1 or copies <= 0:
        return 1.0
    return min(1 + sqrt(2 * log(chips) / copies), float(chips))


@dataclass(frozen=True, kw_only=True, slots=True)
class Balance(Result):
    """The load of every chip and node of an expert-parallel group, each over its mean (1 is an even load).

    A chip's load is the copies of tokens that its experts process. A node's traffic is what enters it over
    the network: `copies` if each copy is sent by itself, `tokens` if a token crosses into a node only once
    (deduplicated dispatch).
    """

    experts: int
    redundant: int
    hottest_expert: float  # its load over the mean of all experts
    chips: tuple[float, ...]
    copies: tuple[float, ...]
    tokens: tuple[float, ...]

    @property
    def busiest_chip(self) -> float:
        """The load of the busiest chip over the mean: the factor by which the experts' matmuls slow down."""
        return max(self.chips)

    @property
    def busiest_node_copies(self) -> float:
        """The traffic into the busiest node over the mean, if every copy is sent by itself."""
        return max(self.copies)

    @property
    def busiest_node_tokens(self) -> float:
        """The traffic into the busiest node over the mean, if a token crosses into a node once."""
        return max(self.tokens)

    @property
    def balancedness(self) -> float:
        """Mean over maximum, as serving engines log it: the share of the time in which chips compute."""
        return 1 / self.busiest_chip

    def __str__(self) -> str:
        return (
            f"{self.experts} experts and {self.redundant} redundant on {len(self.chips)} chips: the busiest "
            f"has {self.busiest_chip:.3g} times the mean (balancedness {percent(self.balancedness)}); into "
            f"the busiest node {self.busiest_node_copies:.3g} times the copies, "
            f"{self.busiest_node_tokens:.3g} times the tokens"
        )


def balance(
    loads: Sequence[float],
    chips: int,
    *,
    redundant: int = 0,
    rebalanced: bool = True,
    k: int = 1,
    chips_per_node: int = 1,
) -> Balance:
    """The loads of chips and nodes for a histogram: the tokens routed to each expert, in the model's order.

    `rebalanced` places experts as EPLB does: `redundant` slots go to the experts whose replicas have most to
    do, and the heaviest slot goes to the least loaded chip that has room. Otherwise, experts stay in order,
    an equal number on each chip. A token activates k experts, independently of each other, and picks one of
    an expert's replicas at random. Raises a ValueError for a histogram that cannot be, and for slots that do
    not divide over the chips, or chips over the nodes. Source of the placement: deepseek-ai/EPLB.
    """
    checked = _checked(loads, k)
    if redundant < 0 or chips < 1 or chips_per_node < 1:
        raise ValueError(
            f"redundant={redundant}, chips={chips}, chips_per_node={chips_per_node}: write no negative "
            "number of replicas, and at least 1 chip in a node"
        )
    if redundant and not rebalanced:
        raise ValueError(f"redundant={redundant} with rebalanced=False: replicas have to be placed")
    if (len(checked) + redundant) % chips:
        raise ValueError(f"{len(checked)} + {redundant} experts are not divisible by {chips} chips")
    if chips % chips_per_node:
        raise ValueError(f"{chips} chips do not divide into nodes of {chips_per_node}")
    total, each = sum(checked), (len(checked) + redundant) // chips
    held = (
        placed(replicated(checked, redundant), chips)
        if rebalanced
        else [checked[i : i + each] for i in range(0, len(checked), each)]
    )
    nodes = [held[i : i + chips_per_node] for i in range(0, chips, chips_per_node)]
    # the probability that a token activates a slot
    chance = [[min(1.0, k * load / total) for one in node for load in one] for node in nodes]
    return Balance(
        experts=len(checked),
        redundant=redundant,
        hottest_expert=max(checked) * len(checked) / total,
        chips=_over_mean([sum(one) for one in held]),
        copies=_over_mean([sum(map(sum, node)) for node in nodes]),
        tokens=_over_mean([1 - prod(1 - p for p in node) for node in chance]),
    )


def _over_mean(values: list[float]) -> tuple[float, ...]:
    mean = sum(values) / len(values)
    return tuple(value / mean for value in values)


def _checked(loads: Sequence[float], k: int) -> list[float]:
    if not 1 <= k <= len(loads) <= MOST_EXPERTS:
        raise ValueError(
            f"{len(loads)} loads and k={k}: write the load of each expert, at least k and at most "
            f"{MOST_EXPERTS:,} of them"
        )
    bad = next((load for load in loads if not isfinite(load) or load < 0), None)
    if bad is not None or not sum(loads):
        raise ValueError(f"a load of {bad}: write tokens per expert, none negative and not all of them 0")
    return [float(load) for load in loads]


def histogram(text: str) -> list[float]:
    """The loads in a pasted text: numbers between commas, spaces or line ends, with or without brackets.

    Raises a ValueError that quotes what is not a number.
    """
    words = [word for word in re.split(r"[\s,;\[\](){}]+", text) if word]
    loads = []
    for word in words:
        try:
            loads.append(float(word))
        except ValueError:
            raise ValueError(
                f"{word[:20]!r} is not a number; paste the tokens of each expert, as in 812, 640, 97"
            ) from None
    return loads


def busiest_torus_link(chip_loads: Sequence[float], shape: Sequence[int], *, wrapped: bool = True) -> float:
    """The bytes over the busiest link of a torus, over those of the busiest link with even loads.

    Every chip sends the same number of tokens, and each chip receives them in proportion to its load.
    Messages travel along the first axis, then the second (dimension order), the shorter way around each ring;
    at half of a ring, half of them goes each way. Chips are numbered with the last axis fastest. Raises a
    ValueError where the shape has another number of chips.
    """
    if prod(shape) != len(chip_loads) or any(n < 1 for n in shape):
        raise ValueError(
            f"a torus of {tuple(shape)} has {prod(shape)} chips, and there are {len(chip_loads)} loads"
        )
    _checked(chip_loads, 1)
    even = [sum(chip_loads) / len(chip_loads)] * len(chip_loads)
    busy, usual = (_most(loads, tuple(shape), wrapped) for loads in (chip_loads, even))
    return busy / usual if usual else 1.0


def _most(loads: Sequence[float], shape: tuple[int, ...], wrapped: bool) -> float:
    """The load of the busiest link, if each chip sends `loads[d]` to chip d."""
    at = dict(zip(product(*map(range, shape)), loads, strict=True))
    most = 0.0
    for axis, n in enumerate(shape):
        senders = prod(shape[:axis])  # whose messages have met in this ring
        sums: dict[tuple[int, ...], list[float]] = {}
        for place, load in at.items():
            sums.setdefault(place[:axis], [0.0] * n)[place[axis]] += load
        most = max([most, *(senders * _ring(weights, wrapped) for weights in sums.values())])
    return most


def _ring(weights: list[float], wrapped: bool) -> float:
    """The load of the busiest link of one ring or line whose chips each send `weights[d]` to chip d."""
    n = len(weights)
    links = {(chip, step): 0.0 for chip in range(n) for step in (1, -1)}
    for source, (target, load) in product(range(n), enumerate(weights)):
        for step, share in _ways(source, target, n, wrapped):
            at = source
            while at != target:
                links[at, step] += share * load
                at = (at + step) % n
    return max(links.values())


def _ways(source: int, target: int, n: int, wrapped: bool) -> tuple[tuple[int, float], ...]:
    """The directions from a chip to another, with the share of the messages that takes each."""
    if not wrapped:
        return ((1 if target > source else -1, 1.0),)
    ahead = (target - source) % n
    if 2 * ahead == n:
        return (1, 0.5), (-1, 0.5)
    return ((1 if 2 * ahead < n else -1, 1.0),)
