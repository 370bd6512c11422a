"""How often does a run stop, how often should it be saved, and what share of the time is left?

`rules.goodput` has Young's first order; here are the exact law for stops that come by chance, a ladder of
places to save to, and spares. Chapter: Fault tolerance and goodput.

>>> print(exact(60, 3600, 600))
a checkpoint every 618 s (best 618 s): 70.1% counts
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, expm1, log1p, sqrt
from random import Random

from scalingbook_lib.rules import Goodput
from scalingbook_lib.units import Result, percent, si


def exact(save_s: float, between_s: float, restart_s: float, every_s: float | None = None) -> Goodput:
    """every / (M e^(R/M) (e^((every + save)/M) - 1)), the best where e^((every + save)/M) (1 - every/M) = 1.

    Stops by chance, every M in the mean, while saving and restarting too. Source: Daly, 2006.
    """
    if not (save_s > 0 and between_s > 0 and restart_s >= 0):
        raise ValueError(f"{save_s=}, {between_s=}, {restart_s=}: write positive seconds")
    # d/d(every) of the share is 0 there; the restart drops out
    best = _best(save_s / between_s) * between_s
    every = best if every_s is None else every_s
    # Of a saved interval in the mean. Source: daly2006higher.
    lasts = between_s * exp(restart_s / between_s) * expm1((every + save_s) / between_s)
    return Goodput(every, best, every / lasts)


def restarts_leave(between_s: float, restart_s: float) -> float:
    """e^(-R/M): the share that counts if only restarts are lost, which stops can strike, too."""
    return exp(-restart_s / between_s)


def _best(save: float) -> float:
    """The root between 0 and 1, by halves; all in units of the time between stops."""
    # 60 halvings leave less than a float can tell apart
    low, high = 0.0, 1 - 2**-53
    for _ in range(60):
        middle = (low + high) / 2
        # the logarithm of e^(x + save) (1 - x) = 1, with x = every/M
        low, high = (middle, high) if middle + save > -log1p(-middle) else (low, middle)
    return low


def played(known: Goodput, save_s: float, between_s: float, restart_s: float, seed: int = 0) -> float:
    """The share that counts of 20,000 saved intervals, with stops drawn by chance."""
    chance, now, intervals = Random(seed), 0.0, 20_000  # enough for three digits
    for _ in range(intervals):
        todo = known.every_s + save_s
        # A stop loses all since the last save, and may strike the restart, too.
        while (stop := chance.expovariate(1 / between_s)) < todo:
            now += stop
            while (again := chance.expovariate(1 / between_s)) < restart_s:
                now += again
            now += restart_s
        now += todo
    return intervals * known.every_s / now


@dataclass(frozen=True, slots=True)
class Tier(Result):
    """A place to save to: what a save and a restart cost, and which share of the stops it must serve."""

    name: str
    save_s: float
    restart_s: float
    serves: float = 1.0

    def every_s(self, between_s: float) -> float:
        """Young's interval for the stops that come here."""
        # Stops of this kind come every M / serves (young1974first).
        return sqrt(2 * self.save_s * between_s / self.serves)

    def lost(self, between_s: float) -> float:
        """The share of the time: saving, work done again, restarts."""
        every = self.every_s(between_s)
        # a stop loses half an interval in the mean, and the restart
        return self.save_s / every + self.serves * (every / 2 + self.restart_s) / between_s

    def __str__(self) -> str:
        return f"{self.name}: saved in {si(self.save_s, 's')}, back in {si(self.restart_s, 's')}"


def ladder(tiers: Iterable[Tier], between_s: float) -> float:
    """The share that counts with several places to save to: 1 - sum of what each loses."""
    return max(1 - sum(tier.lost(between_s) for tier in tiers), 0.0)


@dataclass(frozen=True, slots=True)
class Spares(Result):
    """So many machines out on average, and so many spares that are enough for that share of the time."""

    out: float
    spares: int
    enough: float

    def __str__(self) -> str:
        return (
            f"{self.out:.3g} out on average, {self.spares} spares suffice {percent(self.enough)} of the time"
        )


def spares(stops_per_day: float, repair_days: float, enough: float = 0.99) -> Spares:
    """Machines in repair are Poisson with the mean stops a day x days of repair: its quantile."""
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
    """What counts where a stop takes out one of the replicas and the rest go on: 1 - (p + R/q) / M."""
    # All wait for the pause; then one of q replicas is away until it is repaired.
    return max(1 - (pause_s + repair_s / replicas) / between_s, 0.0)
