"""Requests in flight by Little's law, TTFT against load, and the waste of static batching.

Chapter: Inference.
"""

from collections.abc import Sequence
from math import exp, isclose


def little(rate_per_s: float, seconds: float) -> float:
    """Return the mean number of requests in flight: arrivals per second times seconds per request.

    The batch of a decode step is requests/s · output tokens · step time. Source: Little, 1961.
    """
    if rate_per_s < 0 or seconds < 0:
        raise ValueError(f"{rate_per_s} requests/s for {seconds} s: write no negative numbers")
    return rate_per_s * seconds  # holds for any distributions (little1961proof)


def static_waste(lengths: Sequence[float]) -> float:
    """Return the idle share of the slots of a static batch, 1 - mean/max: all wait for the longest."""
    if not lengths or min(lengths) < 0 or max(lengths) <= 0:
        raise ValueError(f"{list(lengths)[:5]}: write the output lengths of a batch, at least one above 0")
    # the batch occupies slots · longest steps, of which it uses one per token
    return 1 - sum(lengths) / (len(lengths) * max(lengths))


def slots_taken(rate_per_s: float, completions_per_s: Sequence[float]) -> float:
    """Return the probability that a new request finds all slots taken.

    `completions_per_s[n - 1]` are the requests that n busy slots complete per second. In equilibrium,
    requests arrive when n are present as often as they are completed when n + 1 are present (a birth-death
    process, with Poisson arrivals). If completions are proportional to n, this is Erlang's C formula.

    Raises a ValueError if requests arrive at least as fast as all slots complete them.
    """
    most = completions_per_s[-1] if completions_per_s else 0.0
    if not 0 <= rate_per_s < most or min(completions_per_s) <= 0:
        raise ValueError(
            f"{rate_per_s:g} requests/s for a server that completes {most:g} per second: write a rate of at "
            "least 0 and below that, and completions above 0"
        )
    weights = [1.0]  # of n requests in the server, up to a common factor
    for completed in completions_per_s[:-1]:
        weights.append(weights[-1] * rate_per_s / completed)
    busy = rate_per_s / most
    full = weights[-1] * busy / (1 - busy)  # a geometric series: n slots, and any number of waiting requests
    return full / (sum(weights) + full)


def ttft_quantile(
    percentile: float, rate_per_s: float, *, prefill_s: Sequence[float], completions_per_s: Sequence[float]
) -> float:
    """Return a percentile of the TTFT under prefill-prioritized continuous batching, by formulas.

    A request waits for a slot, then for the prefills of others, then for its own, which takes one of the
    equally likely times `prefill_s`. A wait for a slot is needed with the probability `slots_taken` and is
    then exponential, with the mean (1 + c²)/2 divided by the spare requests per second; c² is the squared
    coefficient of variation of the time between completions (Kingman, 1961). The wait for prefills is that of
    one server with Poisson arrivals (Pollaczek and Khinchine). Lengths of outputs are geometric. The rest of
    the decode step in which a request arrives is neglected.

    Raises a ValueError if the percentile is not between 0 and 100 or the server cannot keep up.
    """
    if not 0 < percentile < 100 or not prefill_s or min(prefill_s) <= 0:
        raise ValueError(
            f"percentile {percentile:g} of {len(prefill_s)} prefills: write a percentile above 0 and below "
            "100, and at least one time above 0 s"
        )
    taken = slots_taken(rate_per_s, completions_per_s)
    mean_s = sum(prefill_s) / len(prefill_s)
    square = sum(each * each for each in prefill_s) / len(prefill_s)  # E[T²]
    busy = rate_per_s * mean_s  # rho, the share of the time that is spent on prefills
    prefills_s = square / (2 * mean_s) / (1 - busy)  # the mean wait of the requests that wait for prefills
    # between two completions, a full server runs one prefill and waits for an end that can come at any time
    share = completions_per_s[-1] * mean_s
    variation = share**2 * (square / mean_s**2 - 1) + (1 - share) ** 2
    slots_s = (1 + variation) / 2 / (completions_per_s[-1] - rate_per_s)

    def exceeds(seconds: float) -> float:
        """The probability that the TTFT exceeds this time."""
        found = 0.0
        for own in prefill_s:
            rest = seconds - own
            if rest < 0:
                found += 1.0
                continue
            one, other = exp(-rest / prefills_s), exp(-rest / slots_s)
            both = _exceeds_sum(rest, prefills_s, slots_s)
            found += busy * (1 - taken) * one + taken * (1 - busy) * other + busy * taken * both
        return found / len(prefill_s)

    low, high = 0.0, max(prefill_s)
    while exceeds(high) > 1 - percentile / 100:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if exceeds(middle) > 1 - percentile / 100 else (low, middle)
    return high


def _exceeds_sum(seconds: float, one_s: float, other_s: float) -> float:
    """The probability that the sum of two exponential times with these means exceeds `seconds`."""
    if isclose(one_s, other_s, rel_tol=1e-6):
        return (1 + seconds / one_s) * exp(-seconds / one_s)
    return (other_s * exp(-seconds / other_s) - one_s * exp(-seconds / one_s)) / (other_s - one_s)
