"""Checks of the exercises on reductions: where sums are computed, over which levels, and measured times."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import collectives
from scalingbook_lib.evidence import measured
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.units import GiB, MiB

_NODE = Cluster.of(chips.H100, 8).levels
_FOUR = Cluster.of(chips.B200, 32).levels
_WEIGHTS = 2 * 8192 * 32_768


def _sharded_over_data(in_switch: bool = True, passes: int = 3) -> float:
    """Gathers and a scatter of FSDP, over the one sum of plain data parallelism."""
    scattered = collectives.reduce_scatter(1, *_NODE).bandwidth_s  # a gather takes as long
    return passes * scattered / collectives.all_reduce(1, *_NODE, in_switch=in_switch).bandwidth_s


def _summed_s(overlap: bool = True) -> float:
    return collectives.all_reduce(4 * GiB, *_FOUR, overlap=overlap).bandwidth_s


def _outer_s(Y: int = 64) -> float:
    mesh = Cluster.of(chips.H100, 256).mesh(Y=Y, X=256 // Y)
    return collectives.all_gather(_WEIGHTS / Y, *mesh.axes("X")).bandwidth_s


def _line() -> tuple[float, float]:
    """Alpha, and seconds a byte, through two sizes of a measured gather over eight H100s."""
    (run,) = (r for r in measured.RUNS if (r.chip, r.n, r.collective) == (chips.H100, 8, "all-gather"))
    took = dict(zip(run.sizes, run.microseconds, strict=True))
    small, large = 64 * MiB, 512 * MiB
    slope = (took[large] - took[small]) / 1e6 / (large - small)
    return took[small] / 1e6 - slope * small, slope


SUMS = (
    Check(
        key="gpus.sums-in-switch",
        title="Who benefits from in-network reduction?",
        answer=_sharded_over_data,
        difficulty=2,
        hints=(
            "With in-network reduction, every GPU sends the array and its part of the sum: 9/8 of M.",
            "Does an AllGather gain from a switch that adds? Does a "
            "ReduceScatter, whose result stays sharded?",
            "FSDP performs two AllGathers of the weights and one ReduceScatter of the gradients.",
        ),
        mistakes=(
            Mistake(
                lambda: _sharded_over_data(in_switch=False),
                "This is the ratio without in-network reduction, where an AllReduce takes two passes.",
            ),
            Mistake(lambda: 3, "Each GPU already has an eighth of the array."),
            Mistake(
                lambda: _sharded_over_data(passes=2),
                "This keeps the gathered weights until the backward pass. Here they are gathered twice.",
            ),
            Mistake(
                lambda: 1,
                "Only the AllReduce becomes faster. In-network reduction does not help an AllGather.",
            ),
        ),
        right="Right. Without in-network reduction, the ratio would be 1.5.",
    ),
    Check(
        key="gpus.four-node-allreduce",
        title="AllReduce over four nodes",
        answer=_summed_s,
        unit="s",
        difficulty=2,
        chips=32,
        hints=(
            "Reduce-scatter within each node, all-reduce each GPU's shard "
            "between the nodes, then gather within each node.",
            "Each NIC carries twice (1 - 1/4) of an eighth of the array.",
            "NVLink works on another part at the same time. Which of the two takes longer?",
        ),
        mistakes=(
            Mistake(
                lambda: 2 * 31 / 32 * 4 * GiB / 50e9,
                "This is one ring that leaves each node through a single "
                "NIC. All eight NICs can share the work.",
            ),
            Mistake(
                4 / 3,
                "Each node already has a quarter of the array.",
                slip="fraction-left-out",
            ),
            Mistake(
                0.5,
                "This is one pass, an AllGather or ReduceScatter. An AllReduce takes two.",
                slip="one-pass",
            ),
            Mistake(
                lambda: _summed_s(overlap=False),
                "This waits for NVLink before the network starts, but the two stages overlap.",
                slip="sum-for-max",
            ),
            Mistake(
                lambda: 2 * 7 / 8 * 4 * GiB / 900e9,
                "This is the NVLink stage. The network takes longer.",
                slip="wrong-stage",
            ),
        ),
        right="Right: the network is the bottleneck, and NVLink is idle half of the time.",
    ),
    Check(
        key="gpus.rate-into-node",
        title="AllGather bandwidth into a node",
        answer=lambda: 1 / collectives.all_gather(1, *Cluster.of(chips.H100, 1024).levels).bandwidth_s,
        unit="B/s",
        rel_tol=0.003,
        difficulty=2,
        hints=(
            "Look at a single node. What fraction of the array does it lack at the start?",
            "All of that comes in through its eight NICs, however many tiers of switches are above them.",
        ),
        mistakes=(
            Mistake(
                lambda: 32 / 31 * 400e9,
                "This is the result for 32 nodes. Data from other units arrives through the same NICs.",
                slip="wrong-count",
            ),
            Mistake(lambda: 4 / 3 * 400e9, "This counts the four units, but each of them has 32 nodes."),
            Mistake(
                lambda: 400e9, "Nearly: the node already has part of the array.", slip="fraction-left-out"
            ),
            Mistake(lambda: 8 / 7 * 450e9, "This is the limit of NVLink. The network is slower."),
        ),
        right="Right: only the total number of nodes counts, however many levels the tree has.",
    ),
    Check(
        key="gpus.two-axes-gather",
        title="AllGather with an inner axis",
        answer=_outer_s,
        unit="s",
        difficulty=2,
        hints=(
            "Y consists of 64 neighboring GPUs, eight nodes. How many GPUs are then along X?",
            "Each GPU gathers only its 1/64 of the columns, through its own NIC.",
            "It lacks (1 - 1/4) of that.",
        ),
        mistakes=(
            Mistake(
                4 / 3,
                "Each GPU already has a quarter. (At Y = 256, nothing would be left to gather.)",
            ),
            Mistake(
                lambda: _outer_s(8),
                "This is the time for Y = 8, one node. Beyond a node, "
                "the NICs of several nodes share the work.",
            ),
            Mistake(1 / 9, "This is the time over NVLink, but the four GPUs along X are in different nodes."),
            Mistake(64, "This gathers all columns, but F stays sharded over Y."),
        ),
        right="Right: the NICs of eight nodes share the work.",
    ),
    Check(
        key="gpus.latency-bandwidth-fit",
        title="Fitting a line to two points",
        answer=lambda: _line()[0] / _line()[1],
        unit="B",
        difficulty=2,
        hints=(
            "The slope is the difference of the times divided by the difference of the sizes.",
            "The fixed cost is the time of the line at size zero.",
            "At the size asked for, the fixed cost takes as long as the bytes.",
        ),
        mistakes=(
            Mistake(
                lambda: 10.14e-6 / _line()[1],
                "This uses the time of the smallest message as the fixed "
                "cost. The fixed cost of this line is larger.",
            ),
            Mistake(
                lambda: _line()[0] * 450e9,
                "This uses 450 GB/s. The slope of the line tells which bandwidth was reached.",
                slip="wrong-rate",
            ),
            Mistake(
                7 / 8,
                "This uses the bus bandwidth. The size counts the whole "
                "array, so use the algorithm bandwidth.",
                slip="fraction-added",
            ),
        ),
        right="Right. Below this size, the fixed cost takes longer than the bytes.",
    ),
)
