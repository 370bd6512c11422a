"""Draw a cluster: some of its domains and switches, with the busiest level in color."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from scalingbook_book.reader.explorers.parts import Link, Network, Node, layouts
from scalingbook_lib.machines.clusters import Cluster

_DOMAINS, _LEAVES, _SPINES, _CORES = 8, 6, 4, 2  # drawn at most
_QUIET, _BUSY = 0, 1


@dataclass(frozen=True, slots=True)
class _Tier:
    """One row of the drawing: a letter, how many are drawn of how many, in how many units."""

    name: str
    drawn: int
    all: int
    units: int = 1

    def spots(self, y: float) -> list[tuple[float, float]]:
        """Spread over the width, unit by unit."""
        return [((i + 0.5) / self.drawn, y) for i in range(self.drawn)]

    def unit(self, i: int) -> int:
        """The unit of the i-th that is drawn."""
        return i * self.units // self.drawn


def tree(cluster: Cluster, busiest: str) -> Network:
    """Domains below, switches above; every line is drawn once, however many cables it has."""
    if cluster.nodes == 1:
        return _domain(cluster, busiest)
    tiers = _tiers(cluster)
    rows = [tier.spots(i / (len(tiers) - 1)) for i, tier in enumerate(tiers)]
    firsts = [sum(tier.drawn for tier in tiers[:i]) for i in range(len(tiers))]
    inside = [_BUSY if busiest == cluster.levels[0].name else _QUIET] * min(cluster.domain, 72)
    nodes = [
        Node("", x, y, inside, f"a domain of {cluster.chip.counted(cluster.domain)}")
        if tier.name == "domain"
        else Node(tier.name[0].upper(), x, y, note=f"one of {tier.all:,} {tier.name} switches")
        for tier, row in zip(tiers, rows, strict=True)
        for x, y in row
    ]
    links = [
        Link(firsts[i + 1] + b, firsts[i] + a, color=_BUSY if _joins(lower.name, busiest) else None)
        for i, (upper, lower) in enumerate(pairwise(tiers))
        for a in range(upper.drawn)
        for b in range(lower.drawn)
        if upper.units == 1 or upper.unit(a) == lower.unit(b)
    ]
    return Network(nodes, links, _title(tiers), aspect=0.16 * len(tiers))


def _tiers(cluster: Cluster) -> list[_Tier]:
    units = 2 if cluster.nodes > cluster.unit else 1
    found = (
        _Tier("core", min(cluster.cores, _CORES), cluster.cores),
        _Tier("spine", min(cluster.spines, _SPINES), cluster.spines),
        _Tier("leaf", min(cluster.leaves, _LEAVES), cluster.leaves, units),
        _Tier("domain", min(cluster.nodes, _DOMAINS), cluster.nodes, units),
    )
    return [tier for tier in found if tier.drawn]


def _joins(lower: str, busiest: str) -> bool:
    """Whether the links above these boxes are those of the busiest level."""
    return {"domain": "leaf", "leaf": "spine", "spine": "core"}[lower] == busiest


def _title(tiers: Sequence[_Tier]) -> str:
    """How many there are of each: short, for a phone; the letters are those in the boxes."""
    few = "A few of " if any(tier.drawn < tier.all for tier in tiers) else ""
    return few + ", ".join(
        f"{t.all:,} {'domains' if t.name == 'domain' else t.name[0].upper()}" for t in reversed(tiers)
    )


def _domain(cluster: Cluster, busiest: str) -> Network:
    """One domain: a switch above its chips, or a link for each pair."""
    color = _BUSY if busiest == cluster.levels[0].name else _QUIET
    drawn = min(cluster.domain, _DOMAINS)
    of = f"{drawn} of " * (drawn < cluster.domain) + cluster.chip.counted(cluster.domain)
    if cluster.chip.full_mesh:
        spots = layouts.ring(drawn)
        chips = [Node("", x, y, [color], cluster.chip.name) for x, y in spots]
        pairs = [Link(a, b) for a in range(drawn) for b in range(a)]
        return Network(chips, pairs, f"One domain: {of}, a link for each pair")
    row = [((i + 0.5) / drawn, 1.0) for i in range(drawn)]
    chips = [Node("", x, y, [color], cluster.chip.name) for x, y in row]
    switch = Node("NV", 0.5, 0.0, note="the NVSwitches of the domain")
    links = [Link(i, drawn) for i in range(drawn)]
    return Network([*chips, switch], links, f"One domain: {of}", aspect=0.36)
