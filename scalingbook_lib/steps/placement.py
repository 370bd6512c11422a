"""On which links does each mesh axis of a plan or a layout lie, and what does a byte cost there?

From the inside out: tp, cp, the part of fsdp that holds different experts, the rest of fsdp, pp, dp; pods
outermost. On a cluster each takes the next levels of switches or a factor of one. On a torus each is a
product of whole axes where `Slice.mesh` finds one; else axes are split: the inner factor is a line without
wraparound, an outer one has links that its neighbors share. Chapters: Training, Inference.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from math import gcd, prod

from scalingbook_lib import collectives
from scalingbook_lib.machines import Axis, Chip, Machine, Slice, SliceError
from scalingbook_lib.machines.clusters import NETWORK_HOP_S, Cluster, ClusterError, Level
from scalingbook_lib.machines.clusters.level import merge_levels
from scalingbook_lib.steps.limits import each_level
from scalingbook_lib.steps.limits.expert import exchange_over

type Networks = tuple[collectives.Network, ...]
NAMES = ("Y", "C", "Z", "X", "P", "R")  # tp, cp, experts' and other data ranks, stages, copies


@dataclass(frozen=True, slots=True)
class LinkShares:
    """What share of its documented rate each kind of link reaches: what every table of efficiencies has."""

    torus: float = 1.0  # between neighbors of a torus
    domain: float = 1.0  # NVLink, or a full mesh
    network: float = 1.0  # of a cluster
    dcn: float = 1.0  # the data-center network between pods
    exchange: float = 1.0  # of the time of tokens to experts and back: what no other microbatch hides


PEAK = LinkShares()
LINKS = ("torus", "domain", "network", "dcn")
_PROBE = 2.0**30  # times are linear in the bytes (a power of two divides them exactly)


@dataclass(frozen=True, slots=True)
class Rate:
    """A collective on some links: seconds for a byte of its array, seconds for its hops, the busiest link."""

    s_per_byte: float
    hops_s: float
    link: str

    def seconds(self, nbytes: float) -> float:
        """The time for an array of that size; nothing for none."""
        return nbytes * self.s_per_byte + self.hops_s if nbytes else 0.0


FREE = Rate(0.0, 0.0, "")


@dataclass(frozen=True, slots=True)
class Placement:
    """The networks of every mesh axis, by letter."""

    networks: dict[str, Networks]

    def over(self, letters: Iterable[str]) -> Networks:
        """The networks of several mesh axes together, neighbors on one level joined."""
        return merge_levels(n for letter in letters for n in self.networks[letter])


@lru_cache(maxsize=1 << 16)
def place(machine: Machine, sizes: tuple[int, ...]) -> Placement:
    """The mesh of these sizes (tp, cp, experts, fsdp, pp, dp) on a machine; all its chips are used."""
    if prod(sizes) != machine.chips:
        raise (SliceError if isinstance(machine, Slice) else ClusterError)(
            f"{' · '.join(map(str, sizes))} chips of a plan are not the {machine.chips:,} of {machine.name}; "
            "let tp · cp · fsdp · pp · dp be that number"
        )
    if isinstance(machine, Cluster):
        inside = accumulate(sizes, lambda a, b: a * b, initial=1)
        return Placement({n: _levels(machine, at, s) for n, at, s in zip(NAMES, inside, sizes, strict=False)})
    named = {n: s for n, s in zip(NAMES, sizes, strict=True) if s > 1}
    try:
        # whole torus axes close into rings; where they can, nothing is split
        mesh = machine.mesh(**named or {"Y": 1})
        return Placement({n: mesh.axes(n) if n in named else () for n in NAMES})
    except SliceError:
        return _split(machine, sizes)


def groups(machine: Machine, inside: int, n: int) -> Networks:
    """What joins n groups of `inside` neighbors: a chip with those at its place in the others."""
    # the mesh is made for them, with the groups as its second axis and copies of all of it outside
    return place(machine, (inside, n, 1, 1, 1, machine.chips // (inside * n))).over("C")


@lru_cache(maxsize=1 << 12)
def _levels(cluster: Cluster, inside: int, size: int) -> Networks:
    """What joins `size` groups of `inside` neighbors; a ClusterError where a domain would be cut.

    Groups that do not fit the tiers of the network see it as one tier, at the rate of the slowest.
    """
    if size == 1:
        return ()
    named = {"I": inside, "A": size, "O": cluster.chips // (inside * size)}
    try:
        return cluster.mesh(**named).axes("A")
    except ClusterError:
        return _one_tier(cluster).mesh(**named).axes("A")


def _one_tier(cluster: Cluster) -> Cluster:
    """Every domain under switches with ports for all: only the domains' own cards limit them."""
    # what is left of a card's rate above the leaves
    rate = cluster.nic_bytes_per_s / cluster.oversubscription if cluster.nic_bytes_per_s else None
    ports = 2 * max(cluster.nodes, cluster.domain)
    return replace(cluster, nic_bytes_per_s=rate, oversubscription=1.0, ports=max(ports, cluster.ports))


def _split(machine: Slice, sizes: tuple[int, ...]) -> Placement:
    """Innermost first: the axis of that size, else the first that it divides, else factors of several."""
    axes = machine.axes
    taken, laid = [1] * len(axes), {}
    for name, size in zip(NAMES, sizes, strict=True):
        room = [axis.size // done for axis, done in zip(axes, taken, strict=True)]
        order = sorted(
            range(len(axes)),
            key=lambda k: (room[k] != size, size % max(room[k], 1) != 0, room[k] % size != 0),
        )
        parts = []
        for k in order:
            # the largest factor that both have: what is left of an axis stays whole
            took = gcd(size, room[k])
            if took > 1:
                parts.append(_factor(axes[k], took, taken[k]))
                taken[k] *= took
                size //= took
        laid[name] = tuple(parts)
    return Placement(laid)


def _factor(axis: Axis, size: int, stride: int) -> Axis:
    """A factor of a torus axis: neighbors `stride` chips apart, so that as many groups share each link.

    Only the outermost factor, with the axis's own wraparound, closes into a ring.
    """
    ring = axis.wrapped and size * stride == axis.size
    # `stride` such factors lie side by side on one axis, and each neighbor is so many hops away
    link, hop_s = axis.link_bytes_per_s / stride, axis.hop_s * stride
    return replace(axis, size=size, wrapped=ring, link_bytes_per_s=link, hop_s=hop_s)


def between_pods(chip: Chip, pods: int) -> Networks:
    """The data-center network as one more level: each chip has its share of its host's cards."""
    if pods == 1:
        return ()
    if not chip.dcn_bytes_per_s:
        raise ValueError(f"nobody says what data-center network {chip.name} has; write dcn=1")
    return (Level("DCN", pods, chip.dcn_bytes_per_s, NETWORK_HOP_S, port="dcn"),)


@lru_cache(maxsize=1 << 14)
def rate(collective: str, networks: Networks, efficiency: LinkShares = PEAK) -> Rate:
    """What a byte of a collective costs on these networks; a permute is one to the neighbor."""
    real = tuple(n for n in networks if n.size > 1)
    if not real:
        return FREE
    kind = collectives.Collective.named(collective)
    cost = _permute if kind is collectives.Collective.PERMUTE else collectives.FORMULAS[kind]
    busy_s, link = _busiest(each_level(cost, _PROBE, *real), real, efficiency)
    # hops do not depend on the bytes, nor on what share of its rate a link reaches
    return Rate(busy_s / _PROBE, cost(_PROBE, *real).latency_s, link)


def _permute(nbytes: float, *networks: collectives.Network) -> collectives.Transfer:
    """One to the next group: the slowest level that they span sets the pace."""
    return max((collectives.permute(nbytes, n) for n in networks), key=lambda one: one.total_s)


@lru_cache(maxsize=1 << 12)
def exchange_rate(
    networks: Networks,
    k: int,
    efficiency: LinkShares = PEAK,
    most_domains: int | None = None,
    busiest: float = 1.0,
) -> Rate:
    """Tokens to their k experts, or back, for each byte of the array: k copies of the tokens of all chips.

    `limits.expert.exchange_over`: a copy is saved where two experts sit behind the same wire. All wait for
    the chip that receives `busiest` times the mean.
    """
    real = tuple(n for n in networks if n.size > 1)
    if not real:
        return FREE
    found = exchange_over(real, _PROBE, k, most_domains=most_domains)
    busy_s, link = _busiest(dict(found.seconds), real, efficiency)
    array = _PROBE * k * collectives.chips(*real)  # bytes of all chips' tokens, copied k times
    return Rate(
        busiest * efficiency.exchange * busy_s / array, collectives.all_to_all(array, *real).latency_s, link
    )


def _busiest(levels: dict[str, float], real: Networks, efficiency: LinkShares) -> tuple[float, str]:
    """The level that takes longest at the share of its rate that it reaches."""
    # documented seconds over the share that is reached
    busy = [(s / _share(name, real, efficiency), name) for name, s in levels.items()]
    return max(busy, key=lambda one: one[0])


def _share(name: str, networks: Networks, efficiency: LinkShares) -> float:
    """The efficiency of a level: by its port, so that all tiers of one network have one figure."""
    port = next((n.port for n in networks if isinstance(n, Level) and n.name == name), "torus")
    return getattr(efficiency, port if port in ("torus", "network", "dcn") else "domain")
