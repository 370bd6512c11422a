"""Checkpoint intervals, goodput and hot spares of a run that fails at random.

`rules.goodput` has Young's first-order rule; here are the exact formula for random failures, multi-tier
checkpointing, and spares. Chapter: Fault tolerance and goodput.

>>> print(exact(60, 3600, 600))
a checkpoint every 618 s: goodput 70.1%
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, expm1, log1p, sqrt
from random import Random

from scalingbook_lib.rules import Goodput
from scalingbook_lib.units import Result, percent, si


def exact(save_s: float, between_s: float, restart_s: float, every_s: float | None = None) -> Goodput:
    """every / (M e^(R/M) (e^((every + save)/M) - 1)), the best where e^((every + save)/M) (1 - every/M) = 1.

    Failures are random, every M on average, and may occur while saving and restarting. Source: Daly, 2006.
    """
    if not (save_s > 0 and between_s > 0 and restart_s >= 0):
        raise ValueError(f"{save_s=}, {between_s=}, {restart_s=}: write positive seconds")
    # d/d(every) of the share is 0 there; the restart drops out
    best = _best(save_s / between_s) * between_s
    every = best if every_s is None else every_s
    # seconds per saved interval, on average; source: daly2006higher
    lasts = between_s * exp(restart_s / between_s) * expm1((every + save_s) / between_s)
    return Goodput(every, best, every / lasts)


def restart_bound(between_s: float, restart_s: float) -> float:
    """Goodput e^(-R/M) if only restarts cost time; restarts can fail too."""
    return exp(-restart_s / between_s)


def _best(save: float) -> float:
    """The best interval in units of the MTBF: the root between 0 and 1, by bisection."""
    # 60 halvings leave less than a float can tell apart
    low, high = 0.0, 1 - 2**-53
    for _ in range(60):
        middle = (low + high) / 2
        # the logarithm of e^(x + save) (1 - x) = 1, with x = every/M
        low, high = (middle, high) if middle + save > -log1p(-middle) else (low, middle)
    return low


def simulated(known: Goodput, save_s: float, between_s: float, restart_s: float, seed: int = 0) -> float:
    """Goodput of 20,000 saved intervals, with failures drawn at random."""
    chance, now, intervals = Random(seed), 0.0, 20_000  # enough for three digits
    for _ in range(intervals):
        todo = known.every_s + save_s
        # a failure loses all work since the last save, and may interrupt the restart too
        while (stop := chance.expovariate(1 / between_s)) < todo:
            now += stop
            while (again := chance.expovariate(1 / between_s)) < restart_s:
                now += again
            now += restart_s
        now += todo
    return intervals * known.every_s / now


@dataclass(frozen=True, slots=True)
class CheckpointTier(Result):
    """A tier of checkpoints: seconds to save and to restart, and the share of failures that it serves."""

    name: str
    save_s: float
    restart_s: float
    serves: float = 1.0

    def every_s(self, between_s: float) -> float:
        """Young's interval in seconds, for the failures that this tier serves."""
        # such failures occur every M / serves (young1974first)
        return sqrt(2 * self.save_s * between_s / self.serves)

    def lost(self, between_s: float) -> float:
        """The share of the time that is lost: saving, repeated work, restarts."""
        every = self.every_s(between_s)
        # a failure loses half an interval on average, and the restart
        return self.save_s / every + self.serves * (every / 2 + self.restart_s) / between_s

    def __str__(self) -> str:
        return f"{self.name}: save {si(self.save_s, 's')}, restart {si(self.restart_s, 's')}"


def multi_tier(tiers: Iterable[CheckpointTier], between_s: float) -> float:
    """Goodput with several tiers of checkpoints: 1 - the sum of what each loses."""
    return max(1 - sum(tier.lost(between_s) for tier in tiers), 0.0)


@dataclass(frozen=True, slots=True)
class Spares(Result):
    """Machines out on average, and the spares that are enough for a share `enough` of the time."""

    out: float
    spares: int
    enough: float

    def __str__(self) -> str:
        return (
            f"{self.out:.3g} machines out on average; {self.spares} spares are enough for "
            f"{percent(self.enough)} of the time"
        )


def spares(stops_per_day: float, repair_days: float, enough: float = 0.99) -> Spares:
    """Quantile of the Poisson distribution of machines in repair; its mean is failures per day x days."""
    mean, k = stops_per_day * repair_days, 0
    # e^-mean is a float above 0 up to 745
    if not (0 < mean < 700 and 0 < enough < 1):
        raise ValueError(f"{mean:g} out on average, enough={enough}: write 0 to 700, and a share below 1")
    term = total = exp(-mean)  # P(0); P(k) = P(k - 1) mean / k
    while total < enough:
        k += 1
        term *= mean / k
        total += term
    return Spares(mean, k, enough)


def elastic(replicas: int, pause_s: float, repair_s: float, between_s: float) -> float:
    """Goodput if the other replicas continue after a failure: 1 - (pause + repair / replicas) / M."""
    # all replicas pause; then one of q is missing until it is repaired
    return max(1 - (pause_s + repair_s / replicas) / between_s, 0.0)
