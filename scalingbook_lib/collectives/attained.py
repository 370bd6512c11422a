"""How long does a collective really take? A launch, its steps, its bytes, and what small arrays pay besides.

    t = launch + step · steps + x/e + d · x/(x + h)

x is the time of the bytes at documented rates (`collectives`), of which large arrays reach the share e. NCCL
changes from low-latency protocols to full bandwidth as arrays grow; what that costs comes to d, half of it
where x = h. A ring takes (N - 1) steps, twice as many for a sum that all receive; a direct exchange takes
one. The figures of a fabric are fitted in `evidence.fabrics`. Chapter: GPUs.
"""

from dataclasses import dataclass
from math import sqrt

from scalingbook_lib.collectives.networks import FORMULAS, all_reduce
from scalingbook_lib.collectives.rings import chips
from scalingbook_lib.collectives.transfer import Collective
from scalingbook_lib.machines.clusters import Level
from scalingbook_lib.units import Told, percent, si

SUMS_FROM = 5  # chips from which NCCL lets the switch sum; with fewer, a ring does


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve(Told):
    """What one way of moving bytes attains: e of the rate, and d later, half of it at h."""

    share: float  # e
    late_s: float  # d
    half_s: float  # h

    def seconds(self, ideal_s: float, share: float = 1.0, passes: int = 1) -> float:
        """x/e + d · x/(x + h), where e is `share` of this curve's; two passes come to √2 times d."""
        return ideal_s / (self.share * share) + self.late_s * sqrt(passes) * ideal_s / (ideal_s + self.half_s)

    def __str__(self) -> str:
        late = f"{si(self.late_s, 's')} late, half of it at {si(self.half_s, 's')}"
        return f"{percent(self.share)} of the rate, {late}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fabric(Told):
    """The collectives of one generation of links: `seconds("all-reduce", nbytes, *cluster.levels)`.

    `pair` is the share of e that two chips alone reach, which use fewer channels. Where no switch joins them,
    more chips share the way through the host: the rate is divided by (N / 2) ** `crowding`.
    """

    name: str
    launch_s: float
    step_s: float
    ring: Curve
    in_switch: Curve
    exchange: Curve
    pair: float = 1.0
    crowding: float = 0.0
    network_s: float = 0.0  # more where the collective leaves its domain

    def seconds(self, what: str, nbytes: float, *levels: Level, ring: bool = False) -> float:
        """The time of an array of `nbytes`, counted as `collectives` counts it; with `ring`, no switch sums.

        A ValueError where `what` names no collective.
        """
        kind = Collective.named(what)
        n, passes = chips(*levels), 2 if kind is Collective.ALL_REDUCE else 1
        if n == 1:
            return 0.0
        summed = passes == 2 and not ring and n >= SUMS_FROM and any(level.reduces for level in levels)
        ideal = all_reduce(nbytes, *levels, in_switch=True) if summed else FORMULAS[kind](nbytes, *levels)
        direct = kind in (Collective.ALL_TO_ALL, Collective.PERMUTE)
        curve = self.in_switch if summed else self.exchange if direct else self.ring
        share = (self.pair if n == 2 else 1.0) / (n / 2) ** self.crowding
        waited_s = self.launch_s + self.step_s * (1 if direct else passes * (levels[0].size - 1))
        return waited_s + self.network_s * (len(levels) > 1) + curve.seconds(ideal.bandwidth_s, share, passes)

    def __str__(self) -> str:
        return (
            f"{self.name}: {si(self.launch_s, 's')} and {si(self.step_s, 's')} a step; rings {self.ring}; "
            f"in the switch {self.in_switch}; exchanges {self.exchange}"
        )
