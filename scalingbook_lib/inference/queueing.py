"""How many requests are under way, and what does it cost to wait for the longest?

Chapter: Inference.
"""

from collections.abc import Sequence


def little(rate_per_s: float, seconds: float) -> float:
    """Requests in flight: arrivals per second times the seconds that each one stays. Source: Little, 1961.

    For decoding, this gives the batch size: requests/s · output tokens · step time.
    """
    if rate_per_s < 0 or seconds < 0:
        raise ValueError(f"{rate_per_s} requests/s for {seconds} s: write no negative numbers")
    return rate_per_s * seconds  # holds whatever the distributions (little1961proof)


def static_waste(lengths: Sequence[float]) -> float:
    """The idle share of a static batch, in which all wait for the longest output: 1 - mean/max."""
    if not lengths or min(lengths) < 0 or max(lengths) <= 0:
        raise ValueError(f"{list(lengths)[:5]}: write the output lengths of a batch, at least one above 0")
    # slots times the longest are paid for, tokens are used
    return 1 - sum(lengths) / (len(lengths) * max(lengths))
