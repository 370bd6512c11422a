"""Checks of the exercises on the time of collectives, all with documented links."""

from dataclasses import replace

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import collectives
from scalingbook_lib.machines import Axis, chips
from scalingbook_lib.units import BF16, KiB

_RING = chips.V4.axis(4)  # one axis of a v4 cube: a ring of four
_LINE = chips.V5E.axis(8)  # an axis of eight on v5e closes into no ring
_BD = BF16.bytes * 1024 * 4096  # X[B, D] in bf16


def _gathered_s(nbytes: float, *axes: Axis) -> float:
    return collectives.all_gather(nbytes, *axes).total_s


def _large(axis: Axis = _LINE) -> float:
    return _gathered_s(BF16.bytes * 2048 * 8192, axis)


def _summed_s(nbytes: float) -> float:
    return collectives.all_reduce(nbytes, _RING).total_s


TRANSFERS = (
    Check(
        key="sharding.tiny-allgather",
        title="A very small AllGather",
        answer=lambda: _gathered_s(BF16.bytes * 128, _RING),
        unit="s",
        hints=(
            "Over links of 50 GB/s, 256 bytes take a few nanoseconds. What takes longer?",
            "How many hops away is the farthest chip on a ring of four?",
        ),
        mistakes=(
            Mistake(
                lambda: 3 * _RING.hop_s,
                "That is for a line of four. On a 4 × 4 × 4 slice of v4, every axis is a ring.",
            ),
            Mistake(
                lambda: 4 * _RING.hop_s,
                "Shards travel in both directions, so none of them goes all the way around the ring.",
            ),
            Mistake(
                lambda: collectives.all_gather(256, _RING).bandwidth_s,
                "That is the time for the bytes alone. Every hop takes a microsecond.",
            ),
        ),
        right="Right: the hops take practically all of the time.",
    ),
    Check(
        key="sharding.line-allgather",
        title="A large AllGather on a line",
        answer=_large,
        unit="s",
        rel_tol=0.001,
        difficulty=2,
        hints=(
            (
                "On v5e, only an axis of 16 is a ring. Over how many links does the chip at the end of a "
                "line receive?"
            ),
            "It receives 7/8 of 2EF bytes over one link, and the farthest shard makes seven hops.",
        ),
        mistakes=(
            Mistake(
                lambda: _large(chips.V5E.axis(8, wrapped=True)),
                "That is for a ring. This axis of eight is a line with two ends.",
                slip="ring-for-line",
            ),
            Mistake(
                lambda: 2**25 * 7 / 8 / 5e10,
                "The hops are missing: the farthest shard makes seven of them.",
                slip="hops-left-out",
            ),
            Mistake(
                lambda: 2**25 / 5e10,
                "A chip receives only what it lacks, which is (1 - 1/8) of the array.",
                slip="fraction-left-out",
            ),
            Mistake(
                lambda: 2**25 / 1e11,
                "That is M/W for a ring. The chip at the end of a line has only one link.",
            ),
            Mistake(
                # the same links at the 90% of their rate that some texts calculate with
                lambda: _large(replace(_LINE, link_bytes_per_s=0.9 * _LINE.link_bytes_per_s)),
                "That is for 45 GB/s, 90% of the rate. The documented rate is 50 GB/s.",
            ),
            Mistake(
                lambda: _large(chips.V5E.axis(4)), "That is for the axis of four. This is the axis of eight."
            ),
        ),
    ),
    Check(
        key="sharding.small-line-allgather",
        title="A small AllGather on a line",
        answer=lambda: _gathered_s(BF16.bytes * 256 * 256, _LINE),
        unit="s",
        difficulty=2,
        hints=(
            "How long does one shard of 16 KiB take over one link? Compare that with a hop.",
            ("Both terms matter here: seven shards arrive over one link, and the farthest makes seven hops."),
        ),
        mistakes=(
            Mistake(
                lambda: 7 * _LINE.hop_s,
                (
                    "Those are the hops alone, and the bytes add a third of that. (If you "
                    "thought of a ring: this axis has ends.)"
                ),
                slip="term-left-out",
            ),
            Mistake(
                lambda: 7 * 16 * KiB / 5e10,
                "That is the time for the bytes alone. The hops take longer.",
                slip="hops-left-out",
            ),
            Mistake(
                lambda: _gathered_s(BF16.bytes * 256 * 256, chips.V5E.axis(4)),
                "That is for the axis of four. This is the axis of eight.",
            ),
        ),
        right=(
            "Right. A real collective also has a start-up time, and its hops may take more "
            "than a microsecond."
        ),
    ),
    Check(
        key="sharding.gather-one-axis",
        title="AllGather over one of two mesh axes",
        answer=lambda: _gathered_s(_BD / 4, _RING),
        unit="s",
        difficulty=2,
        hints=(
            "What does one chip hold afterwards? D is still sharded over Y.",
            (
                "M is 2BD/4 bytes. A chip lacks three quarters of them and receives over two "
                "links. Add two hops."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: _gathered_s(_BD, _RING),
                "D is still sharded over Y, so each chip gathers only a quarter of the array.",
                slip="axis-left-out",
            ),
            Mistake(
                lambda: _BD / 4 / 1e11,
                "That is the approximation M/W. A chip already holds a quarter of M, and hops take time.",
            ),
            Mistake(
                lambda: _gathered_s(_BD / 4, chips.V4.axis(4, wrapped=False)),
                "That is for one direction, or for a line. On a ring, data arrives from both sides.",
            ),
            Mistake(
                lambda: _gathered_s(_BD / 16, _RING),
                "M is the gathered array, which is no longer sharded over X.",
            ),
        ),
        right="Right.",
    ),
    Check(
        key="sharding.gather-two-axes",
        title="AllGather over two mesh axes at once",
        answer=lambda: _gathered_s(_BD, _RING, _RING),
        unit="s",
        difficulty=2,
        hints=(
            "Sixteen chips take part, and each of them has links along two axes.",
            "(1 - 1/16) of 2BD bytes at a rate of 2 · W, plus two hops along each axis.",
        ),
        mistakes=(
            Mistake(
                lambda: _gathered_s(_BD / 4, _RING) + _gathered_s(_BD, _RING),
                "That is one axis after the other. The links of both axes can work at the same time.",
            ),
            Mistake(
                lambda: _gathered_s(_BD, chips.V4.axis(16)),
                (
                    "That is for a single ring of sixteen. There are two axes, and therefore "
                    "twice the bandwidth."
                ),
            ),
            Mistake(
                lambda: _BD / 2e11,
                (
                    "That is the approximation M/(2W). A chip already holds a sixteenth of M, "
                    "and hops take time."
                ),
            ),
        ),
        right="Right.",
    ),
    Check(
        key="sharding.allreduce-one-axis",
        title="AllReduce of a sharded array",
        answer=lambda: _summed_s(_BD / 16),
        unit="s",
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "How much of the array does one chip hold? Both B and D are sharded.",
            "It is a ReduceScatter and an AllGather of 2BD/16 bytes, with two hops each.",
        ),
        mistakes=(
            Mistake(
                lambda: _summed_s(_BD),
                "The array is sharded over X and Y, so each chip holds a sixteenth of it.",
            ),
            Mistake(
                lambda: _gathered_s(_BD / 16, _RING),
                "That is a ReduceScatter. Here every chip along Z needs the whole sum.",
            ),
            Mistake(
                lambda: collectives.all_reduce(_BD / 16, _RING).bandwidth_s,
                "That is the time for the bytes alone. Each of the two passes also takes two hops.",
            ),
            Mistake(
                lambda: collectives.all_reduce(_BD / 16, _RING).bandwidth_s + 2e-6,
                "There are two passes, and each of them takes two hops.",
            ),
            Mistake(
                lambda: collectives.all_reduce(_BD / 16, chips.V4.axis(4, wrapped=False)).total_s,
                "That is for a line. This axis is a ring.",
            ),
            Mistake(
                lambda: 2 * _BD / 16 / 9e10,
                "That is for 45 GB/s per link, without hops and without the factor 1 - 1/4.",
            ),
            Mistake(
                lambda: 2 * _BD / 16 / 1e11,
                (
                    "That is the approximation 2M/W. Only (1 - 1/4) of it moves, and four hops take about "
                    "half as long as that."
                ),
            ),
        ),
        right="Right. If the array were not sharded over X and Y, there would be sixteen times the bytes.",
    ),
)
