"""Checks of further exercises on collectives: the slowest axis, and the output of a benchmark."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import collectives
from scalingbook_lib.machines import Axis, chips
from scalingbook_lib.units import GB, MiB

_RING = chips.V4.axis(4)  # one axis of a v4 cube: a ring of four
_GRADIENTS = 16 * GB  # bf16 gradients of 8 billion parameters
_BIG = chips.Slice.of(chips.V5P, "8x8x8").axes
_DCN = Axis(2, False, chips.V5P.dcn_bytes_per_s, 0.0)  # type: ignore[arg-type]


def _jointly() -> float:
    """Two AllReduces, one axis after the other, over one AllReduce over both."""
    one, both = collectives.all_reduce(1, _RING), collectives.all_reduce(1, _RING, _RING)
    return 2 * one.bandwidth_s / both.bandwidth_s


def _gather_to_exchange(both_ways: bool = True) -> float:
    ring = chips.V5E.axis(16)
    gather, exchange = (
        collective(1, ring, bidirectional=both_ways)
        for collective in (collectives.all_gather, collectives.all_to_all)
    )
    return gather.bandwidth_s / exchange.bandwidth_s


def _exchanged_s(shape: str) -> float:
    """Every chip of 256 v5p holds 32 MiB."""
    return collectives.all_to_all(256 * 32 * MiB, *chips.Slice.of(chips.V5P, shape).axes).bandwidth_s


AXES = (
    Check(
        key="sharding.end-of-line",
        title="A lower bound at the end of a line",
        answer=lambda: collectives.bytes_received("all-gather", 80e6, 8),
        unit="B",
        rel_tol=1e-3,
        difficulty=2,
        hints=(
            (
                "Chip 0 has one neighbor. What does it lack, and over which link does all of "
                "that have to arrive?"
            ),
            "It lacks seven shards of 10 MB.",
        ),
        mistakes=(
            Mistake(lambda: 80e6, "Chip 0 already holds an eighth of that."),
            Mistake(
                lambda: 35e6,
                "That is the load of each link on a ring, where half of the bytes arrive from either side.",
            ),
            Mistake(
                lambda: 10e6, "That is one shard. The shards of all other chips cross this link as well."
            ),
        ),
        right=(
            "Right: all of it crosses one link. On a ring two links share it, so a line takes twice as long."
        ),
    ),
    Check(
        key="sharding.joint-allreduce",
        title="AllReduce over two axes: jointly or one at a time",
        answer=_jointly,
        difficulty=2,
        hints=(
            "One after the other, each AllReduce takes 2 · (3/4) · M/W, with the whole M.",
            "The joint AllReduce moves 2 · (15/16) · M over twice the bandwidth.",
        ),
        mistakes=(
            Mistake(lambda: 1 / _jointly(), "That is the inverse: the joint AllReduce is faster."),
            Mistake(lambda: 1.6, "That is for one of the two AllReduces. There are two."),
            Mistake(
                lambda: 2,
                "That is for ReduceScatters over X and Y followed by AllGathers. It is better than two "
                "AllReduces, but it uses the links of only one axis at a time.",
            ),
            Mistake(lambda: 4, "That leaves out (1 - 1/n), which is 3/4 on one axis and 15/16 on two."),
        ),
        right="Right. So name all axes in a single AllReduce.",
    ),
    Check(
        key="sharding.alltoall-ratio",
        title="AllToAll compared with AllGather",
        answer=_gather_to_exchange,
        difficulty=2,
        hints=(
            "In the AllGather, each chip receives 15/16 of M over two links.",
            (
                "In the AllToAll, pieces travel 4 hops on average on a ring of 16, and each of the 16 "
                "chips sends M/16. Divide the traffic by 32 links."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: 4, "That is the limit for long rings. Keep the factor 1 - 1/16 of the AllGather."
            ),
            Mistake(
                lambda: _gather_to_exchange(both_ways=False),
                (
                    "That is for one direction only. With two directions, the pieces of an "
                    "AllToAll also take shorter paths."
                ),
            ),
            Mistake(lambda: 1 / _gather_to_exchange(), "That is the inverse: the AllGather takes longer."),
            Mistake(
                lambda: 16,
                (
                    "A chip receives that many times fewer bytes, but most pieces cross several "
                    "links on their way."
                ),
            ),
        ),
        right="Right: the AllGather takes nearly four times as long.",
    ),
    Check(
        key="sharding.longest-axis",
        title="AllToAll on a 4 × 4 × 16 torus",
        answer=lambda: _exchanged_s("4x4x16"),
        unit="s",
        difficulty=3,
        chips=256,
        hints=(
            "Divide the torus into halves such that the fewest links join them. Across which axis is that?",
            (
                "Half of the bytes of each half have to reach the other half. That is a quarter of all "
                "bytes in each direction, over 2 · 16 links."
            ),
            "The time is M · max / (4 N W), with M/N = 32 MiB and W = 200 GB/s.",
        ),
        mistakes=(
            Mistake(lambda: _exchanged_s("4x8x8"), "That is for 4 × 8 × 8, whose longest axis is 8."),
            Mistake(
                lambda: 2 * _exchanged_s("4x4x16"),
                (
                    "That is for one direction only, or for a line. The long axis is a ring, and "
                    "its links work in both directions."
                ),
                slip="one-direction",
            ),
            Mistake(
                lambda: 255 * 32 * MiB / 6e11,
                "That is an AllGather. In an AllToAll, each pair of chips exchanges its own small piece.",
            ),
            Mistake(lambda: 256 * 32 * MiB / 4 / 2e11, "That is for a single ring of all chips."),
            Mistake(
                lambda: 32 * MiB / 4 / 2e11,
                "32 MiB is what one chip holds. How many chips share one link of the long axis?",
            ),
        ),
        right=(
            "Right. On 4 × 8 × 8, with the same number of chips, it is half of that: the shape "
            "matters for an AllToAll."
        ),
    ),
    Check(
        key="sharding.bus-bandwidth",
        title="Bus bandwidth of an AllReduce",
        answer=lambda: collectives.bus_bandwidth("all-reduce", 1e9, 8, 5e-3),
        unit="B/s",
        difficulty=2,
        hints=(
            "algbw is the size divided by the time.",
            (
                "busbw multiplies algbw by the fraction of the size that each GPU has to receive: "
                "2(n - 1)/n for an AllReduce."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: 1e9 / 5e-3,
                "That is algbw. In an AllReduce, every GPU receives nearly twice the array.",
                slip="factor-left-out",
            ),
            Mistake(
                lambda: 7 / 8 * 1e9 / 5e-3,
                "That is right for an AllGather, but an AllReduce makes two passes.",
                slip="one-pass",
            ),
            Mistake(
                lambda: 2e9 / 5e-3,
                "In each pass, a GPU already has an eighth of the array.",
                slip="fraction-left-out",
            ),
        ),
        right=(
            "Right. You can compare this number with the link rate in the datasheet, whatever the collective."
        ),
    ),
    Check(
        key="sharding.two-slices",
        title="Hierarchical AllReduce over two slices",
        answer=lambda: collectives.hierarchical_all_reduce(_GRADIENTS, *_BIG, dcn=_DCN).bandwidth_s,
        unit="s",
        difficulty=3,
        hints=(
            (
                "There are three steps: a ReduceScatter inside each slice, an AllReduce between "
                "the slices, and an AllGather inside."
            ),
            "Between the slices, each chip only reduces its shard, M/512, with one partner, at 6.25 GB/s.",
            "Inside the slice, 2 (1 - 1/512) M moves over three axes of 200 GB/s each.",
        ),
        mistakes=(
            Mistake(
                lambda: _GRADIENTS / _DCN.link_bytes_per_s,
                "That sends all gradients of every chip over the data-center network.",
                slip="total-for-one",
            ),
            Mistake(
                lambda: 2 * _GRADIENTS * (1 / 6e11 + 1 / 512 / _DCN.link_bytes_per_s),
                (
                    "That is the formula for many slices. With two, each chip sends 2 (1 - 1/2) "
                    "of its shard across."
                ),
            ),
            Mistake(
                lambda: 2 * _GRADIENTS / 3e11 + _GRADIENTS / 512 / _DCN.link_bytes_per_s,
                "On a ring, a chip receives over two links, which is 200 GB/s per axis.",
                slip="one-direction",
            ),
            Mistake(
                lambda: collectives.all_reduce(_GRADIENTS, *_BIG).bandwidth_s,
                "That is only the part inside a slice. The sums of the two slices still have to be "
                "added together.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: collectives.hierarchical_all_reduce(_GRADIENTS, _BIG[0], dcn=_DCN).bandwidth_s,
                "That is for one torus axis of eight chips. A slice has three axes and 512 chips.",
            ),
            Mistake(
                lambda: (
                    collectives.all_gather(_GRADIENTS, *_BIG).bandwidth_s
                    + _GRADIENTS / 512 / _DCN.link_bytes_per_s
                ),
                (
                    "Inside the slice there are two passes: a ReduceScatter at the beginning and "
                    "an AllGather at the end."
                ),
            ),
        ),
        right="Right. With slices this large, the slow network between them takes only 9% of the time.",
    ),
)
