"""How much more than the mean does the busiest chip of an expert-parallel group receive?

All chips of the group wait for the busiest. Two causes add up: tokens prefer some experts (skew), and even
without a preference the counts of few tokens vary. The loads of experts follow Zipf's law: the i-th most
popular of E experts receives a share proportional to i^-skew. Redundant copies of popular experts (EPLB,
DeepSeek's expert-parallel load balancer) remove the skew, not the variation. Chapter: Inference.

>>> [round(busiest_over_mean(256, 32, skew=0.6, redundant=copies), 1) for copies in (0, 32)]
[2.4, 1.0]
"""

from functools import lru_cache
from heapq import heapify, heapreplace
from math import log, sqrt
from random import Random

TRAINING_SKEW = 0.0125
"""The busiest of 64 experts is 4% above the mean, as with DeepSeek's balancing by a bias (MaxVio 0.04; Wang
et al., arXiv 2408.15664). With an auxiliary loss alone they report 52% to 72%: a skew of 0.13 to 0.17."""
SERVING_SKEW = 0.4
"""At 32 chips the busiest has 1.6 times the mean. SGLang's prefill of DeepSeek-V3 on 32 chips became 1.49
times as fast with EPLB. Simulators assume 0.6 (aiconfigurator, large groups) or 0.8 (TensorRT-LLM's
bench_moe)."""
_PLACEMENTS = 32  # random placements of the experts that are averaged


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
        raise ValueError(f"{experts} + {redundant} experts do not divide over {chips} chips")
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
    room, loads = [len(slots) // chips] * chips, [0.0] * chips
    for load in sorted(slots, reverse=True):
        chip = min((k for k in range(chips) if room[k]), key=loads.__getitem__)
        loads[chip] += load
        room[chip] -= 1
    return loads


def variation(chips: int, copies: float) -> float:
    """The busiest of `chips` over the mean where each receives `copies` of tokens, by chance alone.

    The largest of Z values that vary by 1/√m is about 1 + √(2 ln Z / m), and never more than all of them.
    """
    if chips <= 1 or copies <= 0:
        return 1.0
    return min(1 + sqrt(2 * log(chips) / copies), float(chips))
