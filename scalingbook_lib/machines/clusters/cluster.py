"""The switches of a GPU cluster, and the bandwidth of each of its levels and of each mesh axis.

Domains of chips (NVSwitch, or a full mesh) are connected by a fat tree of network switches. The first mesh
axis named is the innermost and spans the innermost levels. Chapter: GPUs.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.machines.clusters.level import ClusterError, Level, merge_levels
from scalingbook_lib.machines.machine import ChipGroup, MachineMesh
from scalingbook_lib.units import si
from scalingbook_lib.words import pluralize

PORTS = 64  # ports of one network switch, one NIC of a chip in each, as in the H100 SuperPOD
NETWORK_HOP_S = 3e-6  # assumed, because no vendor documents it: three times the hop within a domain


@dataclass(frozen=True, kw_only=True)
class Cluster(ChipGroup):
    """Chips in domains of `domain` chips under a fat tree, as in `Cluster.of(chips.H100, 1024)`.

    `in_switch`: the domain's switches reduce if the generation can (NVLink 4 and later); `network_reduces`:
    the network's switches do too. `oversubscription`: a leaf switch's downlinks per uplink. Every NIC has its
    own port in a leaf; the n-th NICs of a unit's domains share leaves (rails). Domains that do not fill
    scalable units are divided equally among the fewest units that allow it (`assumed`). Raises a ClusterError
    for a cluster that cannot be built.
    """

    chip: Chip
    chips: int
    domain: int = 0
    in_switch: bool = True
    network_reduces: bool = False
    oversubscription: float = 1.0
    nic_bytes_per_s: float | None = None  # of one chip; None: the chip's own value
    ports: int = PORTS

    @classmethod
    def of(cls, chip: Chip, chips: int, **how: object) -> "Cluster":
        """The cluster of `chips` chips, as in `Cluster.of(chips.H100, 1024, oversubscription=2)`."""
        return cls(chip=chip, chips=chips, **how)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        if self.chip.torus:
            raise ClusterError(f"{self.chip.name} is joined in a torus, not by switches; use a Slice")
        known = self.chip.domain_chips or self.chip.chips_per_host
        if not self.domain and self.chip.joined == "cube mesh" and self.chips > 1:  # one chip needs no link
            raise ClusterError(
                f"{self.chip.name} is joined in a hybrid cube mesh, in which a pair of chips has two "
                "links, one or none, which this model does not cover; write 1 chip, or domain=16 for a "
                "DGX-2, which has switches"
            )
        object.__setattr__(self, "domain", self.domain or known)
        self._refuse()
        if self.nodes > 1 and not self.nic_bytes_per_s:
            if not self.chip.dcn_bytes_per_s:
                raise ClusterError(
                    f"{self.chip.counted(self.chips)} form {self.nodes:,} domains of {self.domain}, and no "
                    f"source documents the network between them; write at most "
                    f"{pluralize(self.domain, 'chip')}, or give nic_bytes_per_s, "
                    "the rate of a chip's NIC (dcn_bytes_per_s of the chip)"
                )
            object.__setattr__(self, "nic_bytes_per_s", self.chip.dcn_bytes_per_s)

    def _refuse(self) -> None:
        if self.chips < 1 or self.domain < 1 or self.oversubscription < 1 or self.ports < 2:
            raise ClusterError(
                "a cluster has at least 1 chip, domains of at least 1, 2 ports per switch and "
                "an oversubscription of at least 1"
            )
        if self.chips > self.domain and self.chips % self.domain:
            near = self.chips // self.domain * self.domain
            raise ClusterError(
                f"{self.chips} chips do not fill domains of {self.domain}: "
                f"write {near} or {near + self.domain}"
            )
        # k-port switches in three tiers: the ports of (k/2)² leaves under each of k pods
        if self.chips > self.ports**3 // 4:
            raise ClusterError(
                f"three tiers of switches with {self.ports} ports connect at most "
                f"{self.ports**3 // 4:,} chips, not {self.chips:,}"
            )

    @property
    def name(self) -> str:
        """The name, as in '1,024 H100'."""
        return f"{self.chips:,} {self.chip.name}"

    @property
    def nodes(self) -> int:
        """The number of scale-up domains (for most chips, hosts)."""
        return math.ceil(self.chips / self.domain)

    @property
    def unit(self) -> int:
        """The domains in a scalable unit, whose NICs of one rail share a leaf: 32, or 8 racks of 72 GPUs."""
        # half of a leaf's ports face down, one to a NIC of each domain of the unit
        return max(self.ports // 2, 1) if self.domain <= self.ports // 2 else 8

    @property
    def unit_domains(self) -> int:
        """The domains in each of the equal units: as many as divide all domains and fit one unit."""
        return max(n for n in range(1, min(self.nodes, self.unit) + 1) if self.nodes % n == 0)

    @property
    def assumed(self) -> str:
        """What is assumed of domains that do not fill their scalable units, as text; "" if they do."""
        each = self.unit_domains
        if each in (self.nodes, self.unit):
            return ""
        units = f"{pluralize(self.nodes // each, 'unit')} of {each}"
        return f"{self.nodes} domains do not fill scalable units of {self.unit}: {units} are assumed"

    @property
    def leaves(self) -> int:
        """The number of leaf switches: half of each one's ports face down, one to each NIC."""
        return math.ceil(self.chips / (self.ports // 2)) if self.nodes > 1 else 0

    @property
    def spines(self) -> int:
        """The number of spine switches; with a third tier, half of their ports face up."""
        if self.leaves <= 1:
            return 0
        up = self.leaves * (self.ports // 2) / self.oversubscription  # uplinks of all leaves
        return math.ceil(up / (self.ports if self.leaves <= self.ports else self.ports // 2))

    @property
    def cores(self) -> int:
        """The number of third-tier switches, needed if there are more leaves than a spine has ports."""
        # half of a spine's ports face up, all of a core's face down
        return math.ceil(self.spines / 2) if self.leaves > self.ports else 0

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The levels that connect the chips, innermost first.

        The product of their sizes is the number of chips.
        """
        inner = self._domain_level(min(self.chips, self.domain))
        return tuple(level for level in (inner, *self._network()) if level.size > 1) or (inner,)

    def _domain_level(self, size: int) -> Level:
        chip, wire = self.chip, self.chip.links * self.chip.link_bytes_per_s
        if chip.full_mesh:  # a link to each of the other chips of the host
            return Level.full_mesh("mesh", size, wire / (self.domain - 1), chip.hop_s)
        if chip.joined in ("PCIe", "ring"):  # nothing reduces on the way
            return Level(chip.joined, size, wire, chip.hop_s)
        sums = self.in_switch and chip.links >= 18  # the third NVSwitch, which came with NVLink 4, reduces
        return Level("NVLink" if chip.vendor == "NVIDIA" else "switches", size, wire, chip.hop_s, sums)

    def _network(self) -> tuple[Level, ...]:
        if self.nodes == 1 or not self.nic_bytes_per_s:
            return ()
        each = self.unit_domains
        units = self.nodes // each
        # k/2 leaves of k/2 ports each share one group of spines
        pod = max(self.ports**2 // 4 // (each * self.domain), 1) if self.cores else units
        spine = math.gcd(units, pod)  # units that share one group of spines
        nic, sums = self.nic_bytes_per_s, self.network_reduces
        above = nic / self.oversubscription
        return (
            Level("leaf", each, nic, NETWORK_HOP_S, sums, "network"),
            Level("spine", spine, above, 2 * NETWORK_HOP_S, sums, "network"),
            Level("core", units // spine, above, 3 * NETWORK_HOP_S, sums, "network"),
        )

    @property
    def node_bytes_per_s(self) -> float:
        """The bandwidth of one domain into the network over all its NICs, in bytes/s, unidirectional."""
        return self.domain * (self.nic_bytes_per_s or 0.0)

    @property
    def host_bytes_per_s(self) -> float | None:
        """The bandwidth between one chip and its host, in bytes/s, unidirectional; None if undocumented."""
        return self.chip.host_bytes_per_s or self.chip.pcie_bytes_per_s

    @property
    def diameter_hops(self) -> int:
        """The switches between the two chips farthest apart: 1 in a domain, then 1, 3 or 5 in the network."""
        if self.nodes == 1:
            return 0 if self.chip.full_mesh or self.chip.joined == "ring" else 1
        return {"leaf": 1, "spine": 3, "core": 5}[self.levels[-1].name]

    @property
    def bisection_bytes_per_s(self) -> float:
        """The bisection bandwidth in one direction, in bytes/s; inf for one chip."""
        top = self.levels[-1]
        if top.peer_bytes_per_s:
            # a link from each chip of one half to each of the other
            return (self.chips // 2) * ((self.chips + 1) // 2) * top.peer_bytes_per_s
        # half of the chips, each with its share
        return self.chips / 2 * top.bytes_per_s if self.chips > 1 else math.inf

    def mesh(self, **sizes: int) -> "ClusterMesh":
        """The cluster with named mesh axes, innermost first.

        `cluster.mesh(X=8, Y=128)` puts X inside the domains.
        """
        return ClusterMesh(self, tuple(sizes.items()))

    def __str__(self) -> str:
        word = "domain" if self.nodes == 1 else "domains"
        tiers = {"leaf": self.leaves, "spine": self.spines, "core": self.cores}
        tree = ", ".join(f"{n:,} {tier}" for tier, n in tiers.items() if n)
        switches = f" under {tree} switches" if tree else ""
        rates = ", then ".join(f"{si(v.bytes_per_s, 'B/s')} ({v.name})" for v in self.levels)
        chips = f"{self.chip.counted(self.chips)} in {self.nodes:,} {word} of {self.domain}"
        return f"{chips}{switches}: each chip sends {rates}"


class ClusterMesh(MachineMesh[Level]):
    """Mesh axes laid over a cluster, the first one innermost: the levels that each axis spans."""

    machine: Cluster
    refused = ClusterError

    def _lay(self) -> dict[str, tuple[Level, ...]]:
        """The levels of each mesh axis, assigned from the inside out.

        An axis takes whole levels or a factor of one.
        """
        sizes = [size for _, size in self.named]
        if not sizes or min(sizes) < 1 or math.prod(sizes) != self.machine.chips:
            raise ClusterError(
                f"a mesh of {self._wanted()} does not use the {self.machine.chips:,} chips of this cluster: "
                "the product of the axes must equal the number of chips, as in mesh(X=8, Y=128) for 1,024"
            )
        left, laid = [(level, level.size) for level in self.machine.levels], {}
        for name, size in self.named:
            parts = []
            while size > 1:
                level, room = left.pop(0)
                took = math.gcd(size, room)
                if took < min(size, room):
                    raise ClusterError(
                        f"a mesh of {self._wanted()} does not fit {self.machine.name}: {name} would span a "
                        f"part of a group of {room} ({level.name}); from the inside, levels have "
                        f"{', '.join(f'{v.size} ({v.name})' for v in self.machine.levels)}"
                    )
                parts.append(level.part(took))
                size //= took
                if room > took:
                    left.insert(0, (level, room // took))
            laid[name] = tuple(parts)
        return laid

    def axes(self, names: str) -> tuple[Level, ...]:
        """The levels under these mesh axes, innermost first: the arguments of a collective."""
        known = self._known(names)
        return merge_levels(level for name in self.sizes if name in known for level in self._laid[name])

    def bytes_per_s(self, names: str) -> float:
        """The array bytes/s that a hierarchical all-gather over these mesh axes approaches.

        Chips below a level fetch different parts, so a level's bandwidth counts once for each of them.
        """
        rates, below = [], 1
        for level in self.axes(names):
            rates.append(below * level.bytes_per_s)
            below *= level.size
        return min(rates, default=math.inf)
