"""Requests in flight by Little's law, and the waste of static batching.

Chapter: Inference.
"""

from collections.abc import Sequence


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
