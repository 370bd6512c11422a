"""Where are sums made, over which levels, and what does a measurement say? The exercises on collectives."""

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
    """Alpha, and seconds a byte, through two sizes of a measured gather over eight H100."""
    (run,) = (r for r in measured.RUNS if (r.chip, r.n, r.collective) == (chips.H100, 8, "all-gather"))
    took = dict(zip(run.sizes, run.microseconds, strict=True))
    small, large = 64 * MiB, 512 * MiB
    slope = (took[large] - took[small]) / 1e6 / (large - small)
    return took[small] / 1e6 - slope * small, slope


SUMS = (
    Check(
        key="gpus.sums-in-switch",
        title="Who gains from sums in the switch?",
        answer=_sharded_over_data,
        difficulty=2,
        hints=(
            "With sums in the switch every GPU sends the array once and receives the sum once: M/W.",
            "What do gathers gain from a switch that sums? And a ReduceScatter, whose result stays split?",
            "FSDP: gather for the forward pass, gather for the backward pass, scatter the gradients.",
        ),
        mistakes=(
            Mistake(
                lambda: _sharded_over_data(in_switch=False),
                "That is with the sum made by the GPUs themselves, in two passes.",
            ),
            Mistake(lambda: 3, "Each GPU has an eighth of the array already."),
            Mistake(
                lambda: _sharded_over_data(passes=2),
                "That keeps the gathered weights until the backward pass. Here they are gathered twice.",
            ),
            Mistake(lambda: 1, "Only the AllReduce becomes faster: the switch has nothing to save a gather."),
        ),
        right="Right. Without sums in the switch it would be one and a half.",
    ),
    Check(
        key="gpus.four-node-allreduce",
        title="A sum over four nodes",
        answer=_summed_s,
        unit="s",
        difficulty=2,
        chips=32,
        hints=(
            "Scatter in the node, sum over the nodes what each GPU then has, gather in the node.",
            "Over the network: twice (1 - 1/4) of an eighth of the array through each card.",
            "NVLink works at the same time on another part. Which of the two takes longer?",
        ),
        mistakes=(
            Mistake(
                lambda: 2 * 31 / 32 * 4 * GiB / 50e9,
                "That is one ring that enters and leaves a node through a single card. Eight can share it.",
            ),
            Mistake(
                4 / 3,
                "A quarter of the array is in the node already, whichever the node.",
                slip="fraction-left-out",
            ),
            Mistake(
                0.5, "That is one pass, a gather or a scatter. A sum for everybody is two.", slip="one-pass"
            ),
            Mistake(
                lambda: _summed_s(overlap=False),
                "That waits for NVLink before it starts the network.",
                slip="sum-for-max",
            ),
            Mistake(
                lambda: 2 * 7 / 8 * 4 * GiB / 900e9,
                "That is the part of NVLink. The network takes longer.",
                slip="wrong-stage",
            ),
        ),
        right="Right: the network decides, and NVLink rests half of the time.",
    ),
    Check(
        key="gpus.rate-into-node",
        title="How much passes into a node",
        answer=lambda: 1 / collectives.all_gather(1, *Cluster.of(chips.H100, 1024).levels).bandwidth_s,
        unit="B/s",
        rel_tol=0.003,
        difficulty=2,
        hints=(
            "Look at one node. Which part of the array does it not have, at the start?",
            "All of that comes in through its eight cards, however many tiers of switches are above.",
        ),
        mistakes=(
            Mistake(
                lambda: 32 / 31 * 400e9,
                "That is for 32 nodes. What comes from the other units comes through the same cards.",
                slip="wrong-count",
            ),
            Mistake(lambda: 4 / 3 * 400e9, "That counts four units, and forgets that each has 32 nodes."),
            Mistake(
                lambda: 400e9, "Nearly: the node has a part of the array already.", slip="fraction-left-out"
            ),
            Mistake(lambda: 8 / 7 * 450e9, "That is the limit of NVLink. The network is slower."),
        ),
        right="Right: what counts is the number of all nodes, at any depth of the tree.",
    ),
    Check(
        key="gpus.two-axes-gather",
        title="Another axis inside",
        answer=_outer_s,
        unit="s",
        difficulty=2,
        hints=(
            "Y takes 64 neighboring GPUs, eight nodes. How many GPUs are then along X?",
            "Each GPU gathers only its 1/64 of the columns, through its own card.",
            "Of that it lacks (1 - 1/4).",
        ),
        mistakes=(
            Mistake(
                4 / 3,
                "A quarter is there already. At Y = 256 nothing would be left to gather, in no time.",
            ),
            Mistake(
                lambda: _outer_s(8),
                "That is Y = 8, a node. Beyond a node, the cards of more nodes share the work.",
            ),
            Mistake(1 / 9, "That is at the rate of NVLink. The four GPUs along X are in different nodes."),
            Mistake(64, "That gathers all columns. Y still cuts F."),
        ),
        right="Right.",
    ),
    Check(
        key="gpus.latency-bandwidth-fit",
        title="Two points, one line",
        answer=lambda: _line()[0] / _line()[1],
        unit="B",
        difficulty=2,
        hints=(
            "The slope is the difference of the times over the difference of the sizes.",
            "Alpha is what is left at size zero.",
            "Half of the speed is reached where alpha is as long as the bytes.",
        ),
        mistakes=(
            Mistake(
                lambda: 10.14e-6 / _line()[1],
                "That takes the smallest message for alpha. This line has a larger one, at size zero.",
            ),
            Mistake(
                lambda: _line()[0] * 450e9,
                "That is with 450 GB/s. The slope of the line says what was reached.",
                slip="wrong-rate",
            ),
            Mistake(
                7 / 8,
                "That is the bus bandwidth. The size counts the whole array, and so must the rate.",
                slip="fraction-added",
            ),
        ),
        right="Right. Below that, an array waits for the start more than for its bytes.",
    ),
)
