"""Which axis sets the pace, and what does a benchmark print? More exercises on collectives."""

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
        title="What the end of a line must wait for",
        answer=lambda: collectives.bytes_received("all-gather", 80e6, 8),
        unit="B",
        rel_tol=1e-3,
        difficulty=2,
        hints=(
            "Chip 0 has one neighbor. What does it lack, and which way must all of it come?",
            "Seven shards of 10 MB.",
        ),
        mistakes=(
            Mistake(lambda: 80e6, "Chip 0 has an eighth of it already."),
            Mistake(lambda: 35e6, "That is each link's share on a ring, where half comes from either side."),
            Mistake(lambda: 10e6, "That is one shard. The shards of all the others pass this link as well."),
        ),
        right="Right: all of it over one link. On a ring two links share it, so a line takes twice as long.",
    ),
    Check(
        key="sharding.joint-allreduce",
        title="Two axes jointly, or one after the other",
        answer=_jointly,
        difficulty=2,
        hints=(
            "One after the other, each AllReduce takes 2 · (3/4) · M/W, with the whole M.",
            "Jointly: 2 · (15/16) · M over twice the bandwidth.",
        ),
        mistakes=(
            Mistake(lambda: 1 / _jointly(), "Upside down: the joint one is faster."),
            Mistake(lambda: 1.6, "One AllReduce alone takes that many times as long, and there are two."),
            Mistake(
                lambda: 2,
                "That scatters over X, then Y, and gathers back: better than two AllReduces, and still the "
                "links of one axis at a time.",
            ),
            Mistake(lambda: 4, "That leaves (1 - 1/n) out: it is 3/4 on one axis, 15/16 on two."),
        ),
        right="Right. Name all axes in one sum.",
    ),
    Check(
        key="sharding.alltoall-ratio",
        title="An AllToAll and a gather",
        answer=_gather_to_exchange,
        difficulty=2,
        hints=(
            "AllGather: each chip receives 15/16 of M over two links.",
            (
                "AllToAll: the mean distance on a ring of 16 is 4 hops, and each of 16 chips sends M/16 "
                "over it. Divide by 32 links."
            ),
        ),
        mistakes=(
            Mistake(lambda: 4, "That is the limit of long rings. Keep the gather's 1 - 1/16."),
            Mistake(
                lambda: _gather_to_exchange(both_ways=False),
                "That is with one direction only. Two directions shorten the ways of an exchange as well.",
            ),
            Mistake(lambda: 1 / _gather_to_exchange(), "That is upside down: the gather takes longer."),
            Mistake(
                lambda: 16,
                "A chip receives that many times less, but most pieces cross several links on their way.",
            ),
        ),
        right="Right: nearly four.",
    ),
    Check(
        key="sharding.longest-axis",
        title="The longest axis",
        answer=lambda: _exchanged_s("4x4x16"),
        unit="s",
        difficulty=3,
        chips=256,
        hints=(
            "Which cut of the torus into halves do the fewest links cross?",
            (
                "Half of the bytes of each half must cross it: a quarter of all bytes, each way, over 2 "
                "· 16 links."
            ),
            "That is M · max / (4 N W), with M/N = 32 MiB and W = 200 GB/s.",
        ),
        mistakes=(
            Mistake(lambda: _exchanged_s("4x8x8"), "That is 4 × 8 × 8, whose longest axis is 8."),
            Mistake(
                lambda: 2 * _exchanged_s("4x4x16"),
                "One way only, or a line: the long axis is a ring with links both ways.",
                slip="one-direction",
            ),
            Mistake(
                lambda: 255 * 32 * MiB / 6e11,
                "That is an AllGather. Here each pair of chips has its own, small piece.",
            ),
            Mistake(lambda: 256 * 32 * MiB / 4 / 2e11, "That is a single ring of all the chips."),
            Mistake(
                lambda: 32 * MiB / 4 / 2e11,
                "32 MiB is what one chip holds. How many chips' bytes cross one link of the long axis?",
            ),
        ),
        right="Right. In 4 × 8 × 8 it is half of that, with as many chips: for an AllToAll, shape matters.",
    ),
    Check(
        key="sharding.bus-bandwidth",
        title="What a benchmark prints",
        answer=lambda: collectives.bus_bandwidth("all-reduce", 1e9, 8, 5e-3),
        unit="B/s",
        difficulty=2,
        hints=(
            "algbw is the size over the time.",
            (
                "busbw multiplies by the share of the size that each link must carry: twice (n - 1)/n "
                "for an AllReduce."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: 1e9 / 5e-3,
                "That is algbw. An AllReduce brings nearly twice the array to every chip.",
                slip="factor-left-out",
            ),
            Mistake(
                lambda: 7 / 8 * 1e9 / 5e-3,
                "That is right for an AllGather; an AllReduce is two passes.",
                slip="one-pass",
            ),
            Mistake(
                lambda: 2e9 / 5e-3, "Of each pass a chip already has an eighth.", slip="fraction-left-out"
            ),
        ),
        right="Right. This number can be compared with the datasheet's link rate, whatever the collective.",
    ),
    Check(
        key="sharding.two-slices",
        title="Two slices",
        answer=lambda: collectives.hierarchical_all_reduce(_GRADIENTS, *_BIG, dcn=_DCN).bandwidth_s,
        unit="s",
        difficulty=3,
        hints=(
            "Three steps: ReduceScatter in the slice, AllReduce between the slices, AllGather in the slice.",
            "Between the slices a chip has only its share, M/512, to sum with one partner, over 6.25 GB/s.",
            "In the slice: 2 (1 - 1/512) M over three axes of 200 GB/s each.",
        ),
        mistakes=(
            Mistake(
                lambda: _GRADIENTS / _DCN.link_bytes_per_s,
                "That sends all gradients of every chip over the data-center network.",
                slip="total-for-one",
            ),
            Mistake(
                lambda: 2 * _GRADIENTS * (1 / 6e11 + 1 / 512 / _DCN.link_bytes_per_s),
                "That is the form for many slices. With two, 2 (1 - 1/2) of a chip's share crosses.",
            ),
            Mistake(
                lambda: 2 * _GRADIENTS / 3e11 + _GRADIENTS / 512 / _DCN.link_bytes_per_s,
                "On a ring two links bring data in: 200 GB/s an axis, both directions together.",
                slip="one-direction",
            ),
            Mistake(
                lambda: collectives.all_reduce(_GRADIENTS, *_BIG).bandwidth_s,
                "That is inside one slice. The two sums still have to meet.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: collectives.hierarchical_all_reduce(_GRADIENTS, _BIG[0], dcn=_DCN).bandwidth_s,
                "That is one torus axis of eight; a slice has three, and 512 chips.",
            ),
            Mistake(
                lambda: (
                    collectives.all_gather(_GRADIENTS, *_BIG).bandwidth_s
                    + _GRADIENTS / 512 / _DCN.link_bytes_per_s
                ),
                "Inside the slice there are two passes: scatter first, gather last.",
            ),
        ),
        right="Right: with slices this large, the slow network between them is the smaller part.",
    ),
)
