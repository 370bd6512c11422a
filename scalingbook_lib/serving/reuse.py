"""Where does the hit rate of an LRU prefix cache fall when the sessions outgrow the pool?

The characteristic-time approximation: a session that is idle is evicted at the same age T, whichever it is,
and T follows from the size of the pool. Sources: Che, Tung and Wang 2002 (doi 10.1109/JSAC.2002.801752) for
random requests; Martina, Garetto and Leonardi 2014 (arXiv 1307.6702) for any distribution of the gaps.
Chapter: Inference.

>>> lru_reuse(0.8, [1.0]).hit_rate, lru_reuse(1.01, [1.0]).hit_rate
(0.0, 1.0)
>>> round(lru_reuse(0.8, erlang_gaps(1)).hit_rate, 2), round(lru_reuse(0.8, erlang_gaps(4)).hit_rate, 2)
(0.8, 0.56)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scalingbook_lib.units import Result, percent, si


@dataclass(frozen=True, kw_only=True, slots=True)
class Reuse(Result):
    """The fraction of the sessions' tokens that fits, and the fraction of returning sessions found."""

    fits: float
    eviction_age_s: float  # an idle session of this age is evicted; inf if none is
    hit_rate: float

    def __str__(self) -> str:
        return (
            f"{percent(self.fits)} of the working set fits: sessions are evicted after "
            f"{si(self.eviction_age_s, 's')} without use, and {percent(self.hit_rate)} are found"
        )


def lru_reuse(fits: float, gaps_s: Sequence[float], *, running: float = 0.0, discarded: float = 0.0) -> Reuse:
    """The hit rate of equal sessions whose idle times are distributed as the sample `gaps_s`.

    `fits` is the pool over the working set. The age T of eviction fills the pool: with x = T and the mean
    gap G, running + (1 - running) · (mean of min(gap, x) + discarded · x) / G = fits. The hit rate is the
    fraction of gaps up to T. A fraction `running` of all sessions is in use at any time, which keeps their
    blocks in the cache. A turn leaves `discarded` times the tokens of a session behind that are never
    used again, such as 1/turns for sessions that end. Raises a ValueError for numbers out of range.
    """
    if not (fits > 0 and 0 <= running < 1 and discarded >= 0):
        raise ValueError(
            f"{fits=}, {running=}, {discarded=}: write a positive number, a fraction below 1, and 0 or more"
        )
    if not gaps_s or min(gaps_s) < 0 or not max(gaps_s) > 0:
        raise ValueError("write at least one gap in seconds; gaps are not negative, and not all are 0")
    ordered = sorted(gaps_s)
    # the idle share of the pool, as a sum over the sample
    target = (fits - running) / (1 - running) * sum(ordered)
    if target <= 0:
        return Reuse(fits=fits, eviction_age_s=0.0, hit_rate=0.0)
    below, left = 0.0, len(ordered)
    for gap in ordered:
        # the sum of min(gap, x) + discarded · x is linear in x between two gaps of the sample
        slope = left + discarded * len(ordered)
        if below + slope * gap > target:
            age_s = (target - below) / slope
            return Reuse(fits=fits, eviction_age_s=age_s, hit_rate=1 - left / len(ordered))
        below, left = below + gap, left - 1
    return Reuse(fits=fits, eviction_age_s=math.inf, hit_rate=1.0)


def shuffled_reuse(pool: float, before: float, after: float, *, sample: int = 1000) -> float:
    """The fraction of sessions that LRU finds if each returns once per round, in a new random order.

    All sessions together have `before` tokens after the last round and `after` tokens after this one. Between
    two visits of a session, the others use the tokens of those that came later in the last round, and of
    those that come earlier in this one. If u and v are its positions, these have v · after +
    (1 - u)(1 - v) · before tokens, and the session is found if they are at most `pool`. With equal sizes and
    a fraction f that fits, this is f + (1 - f) ln(1 - f).
    """
    if not (pool > 0 and 0 < before <= after and sample >= 1):
        raise ValueError(f"{pool=}, {before=}, {after=}: write positive numbers of tokens, before <= after")
    found = 0.0
    for i in range(sample):
        kept = (1 - (i + 0.5) / sample) * before  # of those that came later, if none has come back yet
        if after > kept:
            found += min(max((pool - kept) / (after - kept), 0.0), 1.0)
        else:
            found += pool >= kept
    return found / sample


MOST_REGULAR = 256  # beyond this shape, e^-x underflows; its gaps vary by 6% and are as good as equal


def erlang_gaps(shape: int, mean_s: float = 1.0, sample: int = 1000) -> tuple[float, ...]:
    """Quantiles of gaps that are sums of `shape` exponential times: random for 1, regular for many."""
    if not (1 <= shape <= MOST_REGULAR and sample >= 1 and mean_s > 0):
        raise ValueError(
            f"{shape=}, {sample=}, {mean_s=}: write a shape from 1 to {MOST_REGULAR}, and positive numbers"
        )
    return tuple(_erlang_quantile(shape, (i + 0.5) / sample) * mean_s / shape for i in range(sample))


def _erlang_quantile(shape: int, probability: float) -> float:
    """The time by which a sum of `shape` exponential times of mean 1 has ended with this probability."""
    low, high = 0.0, shape + 12.0 * math.sqrt(shape)
    for _ in range(45):
        middle = (low + high) / 2
        term = later = math.exp(-middle)  # of fewer than `shape` events of a Poisson process by then
        for i in range(1, shape):
            term *= middle / i
            later += term
        low, high = (middle, high) if 1 - later < probability else (low, middle)
    return (low + high) / 2
