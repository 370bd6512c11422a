"""The links on which each mesh axis of a plan or layout lies, and the time per byte on them.

From the inside out: tp, cp, the part of fsdp that holds different experts, the rest of fsdp, pp, dp; pods are
outermost. On a cluster each axis takes the next levels of switches or a factor of one. On a torus each axis
is a product of whole torus axes if `Slice.mesh` finds one; otherwise torus axes are split: the inner factor
is a line without wraparound, and an outer factor shares its links with its neighbors. Chapters: Training;
Inference.
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
NAMES = ("Y", "C", "Z", "X", "P", "R")  # tp, cp, expert and other data-parallel ranks, stages, replicas


@dataclass(frozen=True, slots=True)
class LinkShares:
    """The fraction of its documented rate that each kind of link attains, as efficiency tables list it."""

    torus: float = 1.0  # between neighbors of a torus
    domain: float = 1.0  # NVLink, or a full mesh
    network: float = 1.0  # of a cluster
    dcn: float = 1.0  # the data-center network between pods
    exchange: float = 1.0  # the exposed fraction of the token dispatch and combine time


PEAK = LinkShares()
LINKS = ("torus", "domain", "network", "dcn")
_PROBE = 2.0**30  # times are linear in the bytes (a power of two divides them exactly)


@dataclass(frozen=True, slots=True)
class Rate:
    """A collective on some links: seconds per byte of its array, seconds of its hops, the busiest link."""

    s_per_byte: float
    hops_s: float
    link: str

    def seconds(self, nbytes: float) -> float:
        """The time in seconds for an array of that size; 0 for an empty array."""
        return nbytes * self.s_per_byte + self.hops_s if nbytes else 0.0


FREE = Rate(0.0, 0.0, "")


@dataclass(frozen=True, slots=True)
class Placement:
    """The networks of every mesh axis, by its letter."""

    networks: dict[str, Networks]

    def over(self, letters: Iterable[str]) -> Networks:
        """The networks of several mesh axes together, with neighbors on one level joined."""
        return merge_levels(n for letter in letters for n in self.networks[letter])


@lru_cache(maxsize=1 << 16)
def place(machine: Machine, sizes: tuple[int, ...]) -> Placement:
    """The placement of a mesh with sizes (tp, cp, experts, fsdp, pp, dp) on all chips of a machine.

    Raises an error if the product of the sizes is not the number of chips.
    """
    if prod(sizes) != machine.chips:
        raise (SliceError if isinstance(machine, Slice) else ClusterError)(
            f"the plan's {' · '.join(map(str, sizes))} chips are not the {machine.chips:,} of {machine.name};"
            " let tp · cp · fsdp · pp · dp equal that number"
        )
    if isinstance(machine, Cluster):
        inside = accumulate(sizes, lambda a, b: a * b, initial=1)
        return Placement({n: _levels(machine, at, s) for n, at, s in zip(NAMES, inside, sizes, strict=False)})
    named = {n: s for n, s in zip(NAMES, sizes, strict=True) if s > 1}
    try:
        # whole torus axes close into rings; if they are possible, no axis is split
        mesh = machine.mesh(**named or {"Y": 1})
        return Placement({n: mesh.axes(n) if n in named else () for n in NAMES})
    except SliceError:
        return _split(machine, sizes)


def groups(machine: Machine, inside: int, n: int) -> Networks:
    """The networks that connect n groups of `inside` neighbors: each chip with its counterparts."""
    # the mesh is built for them: the groups are its second axis, and replicas are outermost
    return place(machine, (inside, n, 1, 1, 1, machine.chips // (inside * n))).over("C")


@lru_cache(maxsize=1 << 12)
def _levels(cluster: Cluster, inside: int, size: int) -> Networks:
    """The networks that connect `size` groups of `inside` neighbors.

    Groups that do not fit the tiers of the network see it as one tier, at the rate of the slowest. Raises a
    ClusterError if a domain would be split.
    """
    if size == 1:
        return ()
    named = {"I": inside, "A": size, "O": cluster.chips // (inside * size)}
    try:
        return cluster.mesh(**named).axes("A")
    except ClusterError:
        pass
    try:
        return _one_tier(cluster).mesh(**named).axes("A")
    except ClusterError as misfit:
        raise ClusterError(
            f"a collective over {size} x {inside} neighboring chips would divide domains of {cluster.domain} "
            f"({cluster.levels[0].name}) unequally; let the degrees and their products divide "
            f"{cluster.domain}, or be multiples of it"
        ) from misfit


def _one_tier(cluster: Cluster) -> Cluster:
    """The cluster with all domains under one tier of switches, so that only the domains' NICs limit them."""
    # the part of a NIC's rate that is left above the leaves
    rate = cluster.nic_bytes_per_s / cluster.oversubscription if cluster.nic_bytes_per_s else None
    ports = 2 * max(cluster.nodes, cluster.domain)
    return replace(cluster, nic_bytes_per_s=rate, oversubscription=1.0, ports=max(ports, cluster.ports))


def _split(machine: Slice, sizes: tuple[int, ...]) -> Placement:
    """The networks if axes are split, innermost first.

    Each takes the torus axis of that size, else the first torus axis that it divides, else factors of
    several.
    """
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
            # the greatest common factor: the rest of an axis stays whole
            took = gcd(size, room[k])
            if took > 1:
                parts.append(_factor(axes[k], took, taken[k]))
                taken[k] *= took
                size //= took
        laid[name] = tuple(parts)
    return Placement(laid)


def _factor(axis: Axis, size: int, stride: int) -> Axis:
    """A factor of a torus axis with neighbors `stride` chips apart, so that `stride` groups share each link.

    Only the outermost factor, with the axis's own wraparound, closes into a ring.
    """
    ring = axis.wrapped and size * stride == axis.size
    # `stride` such factors lie side by side on one axis, and each neighbor is `stride` hops away
    link, hop_s = axis.link_bytes_per_s / stride, axis.hop_s * stride
    return replace(axis, size=size, wrapped=ring, link_bytes_per_s=link, hop_s=hop_s)


def between_pods(chip: Chip, pods: int) -> Networks:
    """The data-center network as one more level: each chip has its share of its host's NICs.

    Raises a ValueError if the chip has no documented data-center network.
    """
    if pods == 1:
        return ()
    if not chip.dcn_bytes_per_s:
        raise ValueError(f"{chip.name} has no documented data-center network; write dcn=1")
    return (Level("DCN", pods, chip.dcn_bytes_per_s, NETWORK_HOP_S, port="dcn"),)


@lru_cache(maxsize=1 << 14)
def rate(collective: str, networks: Networks, efficiency: LinkShares = PEAK) -> Rate:
    """The cost per byte of a collective on these networks; a permute is a send to the neighbor."""
    real = tuple(n for n in networks if n.size > 1)
    if not real:
        return FREE
    kind = collectives.Collective.named(collective)
    cost = _permute if kind is collectives.Collective.PERMUTE else collectives.FORMULAS[kind]
    busy_s, link = _busiest(each_level(cost, _PROBE, *real), real, efficiency)
    # hops depend neither on the bytes nor on the attained rate of a link
    return Rate(busy_s / _PROBE, cost(_PROBE, *real).latency_s, link)


def _permute(nbytes: float, *networks: collectives.Network) -> collectives.Transfer:
    """A send to the next group: the slowest level in between sets the pace."""
    return max((collectives.permute(nbytes, n) for n in networks), key=lambda one: one.total_s)


@lru_cache(maxsize=1 << 12)
def exchange_rate(
    networks: Networks,
    k: int,
    efficiency: LinkShares = PEAK,
    most_domains: int | None = None,
    busiest: float = 1.0,
) -> Rate:
    """The cost per byte of dispatching tokens to their k experts, or combining.

    The array is k transfers of the tokens of all chips. As in `limits.expert.exchange_over`, a transfer is
    saved if two experts are behind the same wire. All chips wait for the chip
    that receives `busiest` times the mean.
    """
    real = tuple(n for n in networks if n.size > 1)
    if not real:
        return FREE
    found = exchange_over(real, _PROBE, k, most_domains=most_domains)
    busy_s, link = _busiest(dict(found.seconds), real, efficiency)
    array = _PROBE * k * collectives.chips(*real)  # bytes of all chips' tokens, times k
    return Rate(
        busiest * efficiency.exchange * busy_s / array, collectives.all_to_all(array, *real).latency_s, link
    )


def _busiest(levels: dict[str, float], real: Networks, efficiency: LinkShares) -> tuple[float, str]:
    """The slowest level at its attained rate."""
    # documented seconds over the attained fraction
    busy = [(s / _share(name, real, efficiency), name) for name, s in levels.items()]
    return max(busy, key=lambda one: one[0])


def _share(name: str, networks: Networks, efficiency: LinkShares) -> float:
    """The efficiency of a level, by its port, so that all tiers of one network share one number."""
    port = next((n.port for n in networks if isinstance(n, Level) and n.name == name), "torus")
    return getattr(efficiency, port if port in ("torus", "network", "dcn") else "domain")
