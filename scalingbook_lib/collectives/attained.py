"""Times of collectives on real machines, with a launch, step latencies, an efficiency and a protocol switch.

    t = launch + step · steps + x/e + d · x/(x + h)

x is the time of the bytes at documented rates (`collectives`), and e is the fraction of those rates that
large arrays reach. NCCL changes from low-latency protocols to full-bandwidth ones as arrays grow; this costs
up to d, and half of d at x = h. A ring takes N - 1 steps, twice as many for an all-reduce; a direct exchange
takes one. Between hosts the same form holds, with a latency for each doubling of the hosts. The parameters of
a fabric are fitted in `calibrated.fabrics`. Chapter: GPUs.
"""

from dataclasses import dataclass, replace
from functools import partial
from math import log2, sqrt

from scalingbook_lib.collectives.networks import FORMULAS, all_reduce
from scalingbook_lib.collectives.rings import chips
from scalingbook_lib.collectives.transfer import NOTHING, Collective
from scalingbook_lib.machines.clusters import Level
from scalingbook_lib.units import Result

SUMS_FROM = 5  # chips from which NCCL reduces in the switch; with fewer, it uses a ring


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectiveTerms(Result):
    """The terms of a collective's time in seconds: latency, bytes at an efficiency, protocol switch."""

    alpha_s: float
    ideal_s: float  # x: the bytes at documented rates
    share: float  # e
    late_s: float
    line = "total_s", "alpha_s", "bytes_s", "late_s"

    @property
    def bytes_s(self) -> float:
        """The seconds of the bytes at the attained rate: x/e."""
        return self.ideal_s / self.share

    @property
    def total_s(self) -> float:
        """The time in seconds: the sum of latency, bytes and protocol term."""
        return self.alpha_s + self.bytes_s + self.late_s


@dataclass(frozen=True, kw_only=True, slots=True)
class AttainedRate(Result):
    """The bandwidth curve of one transport: efficiency e, protocol cost d, and the time h at half of d."""

    share: float  # e
    late_s: float  # d
    half_s: float  # h
    line = "share", "late_s", "half_s"

    def attained(
        self, alpha_s: float, ideal_s: float, share: float = 1.0, passes: int = 1
    ) -> CollectiveTerms:
        """The time after `alpha_s` of latency, at `share` of this curve's e; two passes cost √2 times d."""
        late_s = self.late_s * sqrt(passes) * ideal_s / (ideal_s + self.half_s)
        return CollectiveTerms(alpha_s=alpha_s, ideal_s=ideal_s, share=self.share * share, late_s=late_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fabric(Result):
    """The collectives of one generation of links: `seconds("all-reduce", nbytes, *cluster.levels)`.

    `pair` is the fraction of e that two chips alone reach, because they use fewer channels. If no switch
    connects them, more chips share the path through the host: the rate is divided by (n / 2) ** `crowding`.
    Traffic that leaves its domain follows the `network` curve and waits `network_s` for each doubling of the
    hosts.
    """

    name: str
    launch_s: float
    step_s: float
    ring: AttainedRate
    in_switch: AttainedRate
    exchange: AttainedRate
    network: AttainedRate
    pair: float = 1.0
    crowding: float = 0.0
    network_s: float = 0.0
    line = "launch_s", "step_s", "network_s"

    def attained(self, what: str, nbytes: float, *levels: Level, ring: bool = False) -> CollectiveTerms:
        """The terms of the collective on an array of `nbytes`, sized as in `collectives`.

        `ring` forbids in-network reduction. Raises a ValueError if `what` does not name a collective.
        """
        kind = Collective.named(what)
        domain = tuple(level for level in levels if level.port != "network")  # empty if hosts have one chip
        n, passes = chips(*domain), 2 if kind is Collective.ALL_REDUCE else 1
        summed = passes == 2 and not ring and n >= SUMS_FROM and any(level.reduces for level in domain)
        formula = partial(all_reduce, in_switch=True) if summed else FORMULAS[kind]
        ideal = formula(nbytes, *domain) if domain else NOTHING
        direct = kind in (Collective.ALL_TO_ALL, Collective.PERMUTE)
        curve = self.in_switch if summed else self.exchange if direct else self.ring
        # a fraction of e; without switches, chips share the path through the host
        share = (self.pair if n == 2 else 1.0) / (n / 2) ** self.crowding
        # an exchange sends to all peers at once, a ring forwards n - 1 times per pass
        alpha_s = self.launch_s + self.step_s * (1 if direct else passes * (n - 1))
        within = curve.attained(alpha_s, ideal.bandwidth_s, share, passes)
        if len(domain) == len(levels):
            return within
        outer = levels[len(domain) :]
        waited_s = alpha_s + self.network_s * log2(chips(*outer))
        crossed_s = FORMULAS[kind](nbytes / n, *outer).bandwidth_s  # a chip's part, over its own NIC
        if not direct:
            crossed_s *= _detour(kind, n, chips(*outer), ring)
        # both run at once on different parts, so the slower is the bottleneck
        candidates = replace(within, alpha_s=waited_s), self.network.attained(waited_s, crossed_s)
        return max(candidates, key=lambda way: way.total_s)

    def seconds(self, what: str, nbytes: float, *levels: Level, ring: bool = False) -> float:
        """The seconds of that collective; 0 for a single chip."""
        return self.attained(what, nbytes, *levels, ring=ring).total_s if chips(*levels) > 1 else 0.0


def _detour(kind: str, n: int, hosts: int, ring: bool) -> float:
    """NCCL's traffic between hosts of `n` chips, as a multiple of the minimum for the collective.

    Its rings and trees carry the whole array from host to host, (N - 1) / N of it in each pass, although (M -
    1) / M would be enough for M hosts. Two hosts are the root and the leaf of a tree, which is the minimum.
    """
    tree = kind is Collective.ALL_REDUCE and hosts == 2 and not ring
    whole = (n * hosts - 1) / (n * hosts)
    return 1.0 if tree else whole * hosts / (hosts - 1)
