"""Times of collectives on a hierarchy of switches.

Levels come innermost first (`clusters.Level`). A chip sends to all others of a level directly; traffic across
an outer level is split over all chips below it, so that each carries its own part (rails). Levels with the
same `port` share the wires out of a chip, which carry the traffic of all of them: the total number of domains
counts, at any depth of the tree, and not the degree of one switch. With `overlap` the levels work at once on
different parts and the slowest determines the time; without it, they are serialized.

Only + - * / are used; tests/core/switch_simulator.py routes every message and arrives at the same fractions.
Chapter: GPUs.
"""

import itertools
from dataclasses import dataclass, replace
from operator import mul

from scalingbook_lib.collectives.transfer import NOTHING, Collective, Transfer
from scalingbook_lib.machines.clusters import Level
from scalingbook_lib.units import require_min


@dataclass(frozen=True, slots=True)
class _Edge:
    """Where traffic enters a level: the chips below it, and all chips that its port reaches."""

    level: Level
    below: int
    reach: int

    @property
    def bytes_per_s(self) -> float:
        """The bandwidth of all chips below, in bytes/s."""
        return self.below * self.level.bytes_per_s  # each chip below brings another part, over its own rail


type _Port = list[_Edge]

NETWORK_PORT = "network"  # of the levels of a scale-out network (`machines.clusters`)


def all_gather(nbytes: float, *levels: Level, overlap: bool = True) -> Transfer:
    """[I_X] → [I]: outermost level first, every chip fetches its part over a level, then shares it below."""
    ports = _ports(nbytes, levels)
    times = [_gather_time_s(nbytes, port, overlap) for port in ports]
    textbook_s = max((_reduction_time_s(nbytes, port) for port in ports), default=0)
    latency_s = sum(edge.level.hop_s for port in ports for edge in port)
    return Transfer(Collective.ALL_GATHER, _combined(times, overlap), latency_s, textbook_s)


def all_reduce(nbytes: float, *levels: Level, in_switch: bool = False, overlap: bool = True) -> Transfer:
    """[I]{U_X} → [I]: a reduce-scatter, then an all-gather; with `in_switch`, in-network reduction.

    Of N chips at switches that reduce, each owns a part. The switch fetches that part from all N, the owner
    included, and gives it the sum, which the owner sends once for the switch to copy to all N. So each link
    carries (1 + 1/N)M either way, instead of 2(1 - 1/N)M: no less up to three chips, where the chips reduce.
    The switches of a network aggregate in a tree, in which M goes up once and down once. Below the outermost
    port both halves have to be in flight at once, hence `overlap`. ValueError where no switch can reduce.
    """
    ports = _ports(nbytes, levels)
    if in_switch and ports and not any(map(_can_reduce, ports)):
        names = ", ".join(level.name for level in levels)
        raise ValueError(f"no switch of these levels sums ({names}); write in_switch=False")
    times, textbook_s, latency_s = [], 0, 0
    for port in ports:
        apart_s, summed_s = 2 * _gather_time_s(nbytes, port, overlap), in_switch_s(nbytes, port)
        asked = in_switch and _can_reduce(port) and (overlap or port is ports[-1])
        once = asked and summed_s < apart_s
        times.append(summed_s if once else apart_s)
        textbook_s = max(textbook_s, (1 if once else 2) * _reduction_time_s(nbytes, port))
        hops = [edge.level.hop_s for edge in port]
        tree = once and _aggregates(port) and port is ports[-1]
        latency_s += max(hops) if tree else 2 * sum(hops)
    return Transfer(Collective.ALL_REDUCE, _combined(times, overlap), latency_s, textbook_s)


def all_to_all(nbytes: float, *levels: Level, overlap: bool = True) -> Transfer:
    """[I_X, J] → [I, J_X]: every chip sends a different 1/N of its shard to every other.

    It goes first to the chip of its own domain on the receiver's rail, then over the network.
    """
    ports = _ports(nbytes, levels)
    n = ports[-1][-1].reach if ports else 1
    # what one chip has for receivers beyond the chips below, over its own wires
    times = [
        max(nbytes / n * (at.reach - at.below) / (at.reach * at.level.bytes_per_s) for at in port)
        for port in ports
    ]
    textbook_s = max((nbytes / n / edge.level.bytes_per_s for port in ports for edge in port), default=0)
    latency_s = sum(max(edge.level.hop_s for edge in port) for port in ports)
    return Transfer(Collective.ALL_TO_ALL, _combined(times, overlap), latency_s, textbook_s)


def permute(nbytes: float, level: Level, shift: int = 1) -> Transfer:
    """Every chip sends its shard to one other, over its whole port or over the one link to that peer."""
    if not _ports(nbytes, (level,)) or not shift % level.size:
        return replace(NOTHING, name=Collective.PERMUTE)
    # in a full mesh one link leads to the peer, through switches all do
    bandwidth_s = nbytes / (level.peer_bytes_per_s or level.bytes_per_s)
    return Transfer(Collective.PERMUTE, bandwidth_s, level.hop_s, bandwidth_s)


def _gather_time_s(nbytes: float, port: _Port, overlap: bool) -> float:
    """Seconds of an all-gather through one port."""
    if overlap:  # all that the chips below lack of what their port brings
        return max(nbytes * (edge.reach - edge.below) / (edge.reach * edge.bytes_per_s) for edge in port)
    # what each level alone brings, the outer ones done before
    return sum(nbytes * (edge.level.size - 1) / (edge.level.size * edge.bytes_per_s) for edge in port)


def in_switch_s(nbytes: float, port: _Port) -> float:
    """Seconds of an all-reduce in the switches of a port, by what a link carries in each direction."""
    # source: NVIDIA, "The NVLink-Network Switch", Hot Chips 34 (2022): N + 1 sends and receives for 2N
    own = 0 if _aggregates(port) else nbytes / port[-1].reach
    return _reduction_time_s(nbytes + own, port)


def _aggregates(port: _Port) -> bool:
    """Whether its switches aggregate in a tree and multicast the sum by themselves, as InfiniBand's do."""
    return port[0].level.port == NETWORK_PORT


def _reduction_time_s(nbytes: float, port: _Port) -> float:
    """Seconds to send everything once up to the switch, or once down from it."""
    return max(nbytes / edge.bytes_per_s for edge in port)


def _can_reduce(port: _Port) -> bool:
    """Whether all switches behind this port can reduce."""
    return all(edge.level.reduces for edge in port)


def _combined(times: list[float], overlap: bool) -> float:
    return (max if overlap else sum)(times) if times else 0


def _ports(nbytes: float, levels: tuple[Level, ...]) -> list[_Port]:
    """The levels grouped by port, innermost first, each with the chips below it.

    ValueError for negative bytes.
    """
    require_min(0, nbytes=nbytes)
    real = [level for level in levels if level.size > 1]
    below = itertools.accumulate((level.size for level in real), mul, initial=1)
    ports = []
    for _, group in itertools.groupby(zip(real, below, strict=False), key=lambda one: one[0].port):
        found = list(group)
        last, inside = found[-1]
        ports.append([_Edge(level, chips, inside * last.size) for level, chips in found])
    return ports
