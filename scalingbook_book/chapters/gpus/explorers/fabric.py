"""Explorer of the bandwidth of each level of a cluster, and the bottleneck of a collective."""

import math
from collections.abc import Callable
from dataclasses import replace

from scalingbook_book.chapters.gpus.explorers.tree import tree
from scalingbook_book.reader.explorers.parts import (
    SWITCHED,
    Bars,
    Cell,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Grid,
    Points,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
    join_counts,
)
from scalingbook_lib import collectives
from scalingbook_lib.machines import Cluster, ClusterError, Level, chips
from scalingbook_lib.units import si

_OPS = {
    "AllGather": collectives.all_gather,
    "ReduceScatter": collectives.reduce_scatter,
    "AllReduce": collectives.all_reduce,
    "AllToAll": collectives.all_to_all,
}
_SUMS = ("none", "in NVSwitch", "in all switches")
_WANTED = tuple(2**e for e in range(3, 15))


def _fabric(
    *, op: str, nbytes: float, chip: str, n: int, domain: str, oversubscription: float, ports: str, sums: str
) -> View:
    def built(wanted: int) -> Cluster:
        return _cluster(chip, wanted, domain=domain, over=oversubscription, ports=int(ports), sums=sums)

    cluster = built(n)
    alone = [
        _transfer(op, nbytes, _only(cluster.levels, i), sums).bandwidth_s for i in range(len(cluster.levels))
    ]
    took = _transfer(op, nbytes, cluster.levels, sums)
    others = [_or_none(built, wanted) for wanted in _WANTED]
    switches = cluster.leaves, cluster.spines, cluster.cores
    return View(
        _verdict(op, nbytes, cluster, alone, took),
        (
            tree(cluster, cluster.levels[alone.index(max(alone))].name),
            _levels(cluster, alone),
            _bars(cluster, alone),
            _growth(op, nbytes, cluster, now=took.total_s, others=others, sums=sums),
        ),
        (
            Readout("GPUs", cluster.chips),
            Readout("time", took.total_s, "s"),
            Readout("latency of hops", took.latency_s, "s"),
            Readout("GPUs per domain", cluster.domain),
            Readout("bandwidth out of a domain", cluster.node_bytes_per_s, "B/s"),
            Readout("bisection bandwidth", cluster.bisection_bytes_per_s, "B/s"),
            Readout("leaf, spine, core switches", cluster.leaves, "", join_counts(switches)),
            Readout("switches on the longest path", cluster.diameter_hops),
        ),
        columns=2,
    )


def _cluster(chip: str, wanted: int, *, domain: str, over: float, ports: int, sums: str) -> Cluster:
    """The smallest cluster of at least so many chips in 1, 2, 4 ... full domains."""
    on = chips.find(chip)
    size = (on.domain_chips or 1) if domain == "as built" else int(domain)
    if on.full_mesh and size != on.domain_chips:
        raise ClusterError(
            f"{on.name} has no switch: its {on.links} links connect {on.domain_chips} chips pairwise, so "
            "the domain cannot have another size; choose the domain as built, or another chip"
        )
    nic = on.dcn_bytes_per_s  # known even for one domain, which would not ask for it
    domains = 2 ** math.ceil(math.log2(max(wanted / size, 1)))
    return Cluster(
        chip=on,
        chips=domains * size,
        domain=size,
        oversubscription=over,
        nic_bytes_per_s=nic,
        ports=ports,
        in_switch=sums != _SUMS[0],
        network_reduces=sums == _SUMS[2],
    )


def _or_none(built: Callable[[int], Cluster], wanted: int) -> Cluster | None:
    try:
        return built(wanted)
    except ClusterError:
        return None  # more chips than three tiers of such switches join


# Times


def _transfer(op: str, nbytes: float, levels: tuple[Level, ...], sums: str) -> collectives.Transfer:
    if op == "AllReduce":
        in_switch = sums != _SUMS[0] and any(level.reduces for level in levels if level.size > 1)
        return collectives.all_reduce(nbytes, *levels, in_switch=in_switch)
    return _OPS[op](nbytes, *levels)


def _only(levels: tuple[Level, ...], i: int) -> tuple[Level, ...]:
    """The same cluster, in which no level but one takes any time for the bytes."""
    free = [replace(level, bytes_per_s=math.inf) for level in levels]
    return (*free[:i], levels[i], *free[i + 1 :])


# Pictures


def _levels(cluster: Cluster, alone: list[float]) -> Grid:
    binding = alone.index(max(alone))
    rows, reach = [], 1
    for i, level in enumerate(cluster.levels):
        color = 1 if i == binding else None
        below, reach = reach, reach * level.size
        cells = (
            f"{level.size:,} × {below:,}" if below > 1 else f"{level.size:,}",
            _switches(cluster, level.name),
            str(replace(cluster, chips=reach).diameter_hops),
            si(level.bytes_per_s, "B/s"),
            si(below * level.bytes_per_s, "B/s"),
        )
        rows.append([Cell(text, color, level=0.5) for text in cells])
    heads = ("size", "switch", "hops", "per GPU", "group")
    return Grid(
        "Bandwidth of each level, per GPU and per group", [v.name for v in cluster.levels], heads, rows
    )


def _switches(cluster: Cluster, name: str) -> str:
    counts = {"leaf": cluster.leaves, "spine": cluster.spines, "core": cluster.cores, "mesh": 0}
    return f"{counts[name]:,}" if name in counts else "NVSwitch"


def _bars(cluster: Cluster, alone: list[float]) -> Bars:
    binding = alone.index(max(alone))
    names = [level.name for level in cluster.levels]
    return Bars(
        Scale("time of each level, overlapped", "s"),
        names,
        (
            Series("overlapped", [0 if i == binding else s for i, s in enumerate(alone)], 0),
            Series("bottleneck", [s if i == binding else 0 for i, s in enumerate(alone)], 1),
        ),
        stacked=True,
    )


def _growth(
    op: str, nbytes: float, cluster: Cluster, *, now: float, others: list[Cluster | None], sums: str
) -> Chart:
    found = {c.chips: _transfer(op, nbytes, c.levels, sums).total_s for c in others if c}
    return Chart(
        Scale("GPUs", "", "pow2"),
        Scale(f"{op} of {si(nbytes, 'B')}", "s"),
        (
            Curve("", list(found), list(found.values()), 0),
            RefLine("one domain", cluster.domain),
            Points("", [cluster.chips], [now], [si(now, "s")], 1),
        ),
        "The same array on more GPUs",
    )


def _verdict(op: str, nbytes: float, cluster: Cluster, alone: list[float], took: collectives.Transfer) -> str:
    article = "A" if op == "ReduceScatter" else "An"
    on = cluster.chip.counted(cluster.chips)
    said = f"{article} {op} of {si(nbytes, 'B')} on {on} takes {si(took.total_s, 's')}"
    if took.bound == "latency":
        said += ", most of it latency"
    if len(alone) == 1:
        return f"{said}, within one domain."
    first, second = sorted(range(len(alone)), key=lambda i: -alone[i])[:2]
    names = [level.name for level in cluster.levels]
    return (
        f"{said}. The bottleneck is the {names[first]} level, which takes {si(alone[first], 's')} by "
        f"itself. It overlaps with {names[second]}, which would take {si(alone[second], 's')} by itself."
    )


FABRIC = Explorer(
    key="gpus.fabric",
    title="A collective on a cluster of GPUs",
    question="Which level of the network is the bottleneck of a collective?",
    controls={
        "op": Choice("collective", tuple(_OPS), "AllReduce"),
        "nbytes": Slider("array size M", 1e5, 1e11, 1e9, "log", "B"),
        "chip": Chips("chip", SWITCHED, "H100"),
        "n": Slider("GPUs (rounded up to whole domains)", 8, 16384, 1024, "pow2"),
        "domain": Choice("GPUs per domain", ("as built", "4", "8", "16", "32", "72", "144")),
        "oversubscription": Slider("oversubscription", 1.0, 8.0, 1.0, "pow2"),
        "ports": Choice("ports per switch", ("32", "64", "128"), "64"),
        "sums": Choice("in-network reduction", _SUMS),
    },
    view=_fabric,
)
