"""How long does an array take from chip to chip? The exercises on collectives, all with documented links."""

from dataclasses import replace

from scalingbook_lib import chips, collectives
from scalingbook_lib.checks.check import Check, Mistake
from scalingbook_lib.torus import Axis
from scalingbook_lib.units import BF16, GB, KiB, MiB

_RING = chips.V4.axis(4)  # one axis of a v4 cube: a ring of four
_LINE = chips.V5E.axis(4)  # an axis of four on v5e closes into no ring
_BD = BF16.bytes * 1024 * 4096  # X[B, D] in bf16
_GRADIENTS = 16 * GB  # bf16 gradients of 8 billion parameters
_BIG = chips.Slice.of(chips.V5P, "8x8x8").axes
_DCN = Axis(2, False, chips.V5P.dcn_bytes_per_s, 0.0)  # type: ignore[arg-type]


def _gathered_s(nbytes: float, *axes: Axis) -> float:
    return collectives.all_gather(nbytes, *axes).total_s


def _derated(axis: Axis) -> Axis:
    """The same links at the 90 % of their rate that the reference calculates with."""
    return replace(axis, link_bytes_per_s=0.9 * axis.link_bytes_per_s)


def _large(axis: Axis = _LINE) -> float:
    return _gathered_s(BF16.bytes * 2048 * 8192, axis)


def _small(axis: Axis = _LINE) -> float:
    return _gathered_s(BF16.bytes * 256 * 256, axis)


def _summed_s(nbytes: float) -> float:
    return collectives.all_reduce(nbytes, _RING).total_s


def _jointly() -> float:
    """Two AllReduces, one axis after the other, over one AllReduce over both."""
    one, both = collectives.all_reduce(1, _RING), collectives.all_reduce(1, _RING, _RING)
    return 2 * one.bandwidth_s / both.bandwidth_s


def _gather_to_exchange(both_ways: bool = True) -> float:
    ring = chips.V5E.axis(16)
    gather, exchange = (
        collective(1, ring, both_ways=both_ways)
        for collective in (collectives.all_gather, collectives.all_to_all)
    )
    return gather.bandwidth_s / exchange.bandwidth_s


def _exchanged_s(shape: str) -> float:
    """Every chip of 256 v5p holds 32 MiB."""
    axes = chips.Slice.of(chips.V5P, shape).axes
    return collectives.all_to_all(256 * 32 * MiB, *axes).bandwidth_s


def _over_two_slices() -> collectives.Transfer:
    return collectives.hierarchical_all_reduce(_GRADIENTS, *_BIG, dcn=_DCN)


TRANSFERS = (
    Check(
        key="sharding.8",
        title="A very small AllGather",
        answer=lambda: _gathered_s(BF16.bytes * 128, _RING),
        unit="s",
        hints=(
            "256 bytes over links of 50 GB/s take a few nanoseconds. What takes longer?",
            "How many hops away is the farthest chip on a ring of four?",
        ),
        mistakes=(
            Mistake(
                lambda: 3 * _RING.hop_s,
                "That is a line of four. An axis of a 4 × 4 × 4 slice of v4 closes into a ring.",
            ),
            Mistake(lambda: 4 * _RING.hop_s, "Shards travel both ways, so no one goes all the way round."),
            Mistake(
                lambda: collectives.all_gather(256, _RING).bandwidth_s,
                "That is the bytes alone. Every hop takes a microsecond.",
            ),
        ),
        right="Right: the hops, and nothing else.",
    ),
    Check(
        key="sharding.9",
        title="A large AllGather on a line",
        answer=_large,
        unit="s",
        difficulty=2,
        hints=(
            (
                "On v5e only an axis of 16 closes into a ring. How many links bring data to the chip at "
                "the end of a line?"
            ),
            "It receives three quarters of 2EF bytes over one link, and the farthest shard makes three hops.",
        ),
        mistakes=(
            Mistake(
                lambda: _large(chips.V5E.axis(4, wrapped=True)),
                "That is a ring. This axis of four has two ends.",
            ),
            Mistake(lambda: 2**25 / 5e10, "A chip receives only what it lacks: (1 - 1/4) of the array."),
            Mistake(lambda: 2**25 / 1e11, "That is M/W for a ring, as if the end of a line had two links."),
            Mistake(
                lambda: _large(_derated(_LINE)),
                "That is with the reference's 45 GB/s. The documented rate is 50.",
            ),
        ),
        right="Right. Measured on real chips: 680 µs.",
    ),
    Check(
        key="sharding.10",
        title="A small AllGather on a line",
        answer=_small,
        unit="s",
        difficulty=2,
        hints=(
            "How long does one shard of 32 KiB take over one link? Compare it with a hop.",
            (
                "Both terms count here: three shards arrive over one link, and the farthest comes over "
                "three hops."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: 3 * _LINE.hop_s,
                "Those are the hops alone; the bytes add two thirds of them. (A ring? This axis has ends.)",
            ),
            Mistake(lambda: 3 * 32 * KiB / 5e10, "Those are the bytes alone; the hops take longer."),
        ),
        right="Right. Measured: 8 µs. Real hops and starts cost more than the model's microsecond.",
    ),
    Check(
        key="sharding.11",
        title="Gather one dimension, the other stays cut",
        answer=lambda: _gathered_s(_BD / 4, _RING),
        unit="s",
        difficulty=2,
        hints=(
            "What does one chip hold afterwards? D is still cut over Y.",
            "M is 2BD/4 bytes, of which a chip lacks three quarters; two links bring them; two hops.",
        ),
        mistakes=(
            Mistake(
                lambda: _gathered_s(_BD, _RING), "Y still cuts D: each chip gathers a quarter of the array."
            ),
            Mistake(
                lambda: _BD / 4 / 1e11,
                "That is the textbook's M/W. A chip already has a quarter of M, and hops take time.",
            ),
            Mistake(
                lambda: _gathered_s(_BD / 4, chips.V4.axis(4, wrapped=False)),
                "That is one way, or a line. Rings bring data in from both sides.",
            ),
            Mistake(lambda: _gathered_s(_BD / 16, _RING), "M is the gathered array: X no longer cuts it."),
        ),
        right="Right.",
    ),
    Check(
        key="sharding.12",
        title="Gather over two axes at once",
        answer=lambda: _gathered_s(_BD, _RING, _RING),
        unit="s",
        difficulty=2,
        hints=(
            "Sixteen chips take part, and each has links along two axes.",
            "(1 - 1/16) of 2BD bytes over 2 · W; then two hops along each axis.",
        ),
        mistakes=(
            Mistake(
                lambda: _gathered_s(_BD / 4, _RING) + _gathered_s(_BD, _RING),
                "That is one axis after the other. Both axes' links can work at once.",
            ),
            Mistake(
                lambda: _gathered_s(_BD, chips.V4.axis(16)),
                "That is a single ring of sixteen. There are two axes, hence twice the bandwidth.",
            ),
            Mistake(
                lambda: _BD / 2e11,
                "That is the textbook's M/(2W). A chip already has a sixteenth, and hops take time.",
            ),
        ),
        right="Right.",
    ),
    Check(
        key="sharding.13",
        title="Sum over one axis, cut by two others",
        answer=lambda: _summed_s(_BD / 16),
        unit="s",
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "What does one chip hold? Both B and D are cut.",
            "A ReduceScatter and an AllGather of 2BD/16 bytes, two hops each.",
        ),
        mistakes=(
            Mistake(
                lambda: _summed_s(_BD), "X and Y still cut the array: each chip holds a sixteenth of it."
            ),
            Mistake(
                lambda: _gathered_s(_BD / 16, _RING),
                "That is a ReduceScatter. Everybody needs the whole sum.",
            ),
            Mistake(
                lambda: collectives.all_reduce(_BD / 16, _RING).bandwidth_s,
                "Those are the bytes alone. Each of the two passes takes two hops as well.",
            ),
            Mistake(
                lambda: collectives.all_reduce(_BD / 16, _RING).bandwidth_s + 2e-6,
                "There are two passes, and each of them takes two hops.",
            ),
            Mistake(
                lambda: collectives.all_reduce(_BD / 16, chips.V4.axis(4, wrapped=False)).total_s,
                "That is a line. This axis closes into a ring.",
            ),
            Mistake(
                lambda: 2 * _BD / 16 / 9e10,
                "That is the reference's figure: 45 GB/s a link, no hops, and without 1 - 1/4.",
            ),
            Mistake(
                lambda: 2 * _BD / 16 / 1e11,
                (
                    "That is the textbook's 2M/W. (1 - 1/4) of it moves, and four hops are as long as "
                    "half of that."
                ),
            ),
        ),
        right="Right. Early editions of the reference had 190 µs: they forgot that X and Y cut the array.",
    ),
    Check(
        key="sharding.14",
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
        key="sharding.15",
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
        key="sharding.16",
        title="An exchange and a gather",
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
        key="sharding.17",
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
        key="sharding.18",
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
                lambda: 1e9 / 5e-3, "That is algbw. An AllReduce brings nearly twice the array to every chip."
            ),
            Mistake(
                lambda: 7 / 8 * 1e9 / 5e-3, "That is right for an AllGather; an AllReduce is two passes."
            ),
            Mistake(lambda: 2e9 / 5e-3, "Of each pass a chip already has an eighth."),
        ),
        right="Right. This number can be compared with the datasheet's link rate, whatever the collective.",
    ),
    Check(
        key="sharding.19",
        title="Two slices",
        answer=lambda: _over_two_slices().bandwidth_s,
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
            ),
            Mistake(
                lambda: 2 * _GRADIENTS * (1 / 6e11 + 1 / 512 / _DCN.link_bytes_per_s),
                "That is the form for many slices. With two, 2 (1 - 1/2) of a chip's share crosses.",
            ),
            Mistake(
                lambda: 2 * _GRADIENTS / 3e11 + _GRADIENTS / 512 / _DCN.link_bytes_per_s,
                "On a ring two links bring data in: 200 GB/s an axis, both directions together.",
            ),
            Mistake(
                lambda: collectives.all_reduce(_GRADIENTS, *_BIG).bandwidth_s,
                "That is inside one slice. The two sums still have to meet.",
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
