"""How long does an array take from chip to chip? The exercises on collectives, all with documented links."""

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
        key="sharding.line-allgather",
        title="A large AllGather on a line",
        answer=_large,
        unit="s",
        rel_tol=0.001,
        difficulty=2,
        hints=(
            (
                "On v5e only an axis of 16 closes into a ring. How many links bring data to the chip at "
                "the end of a line?"
            ),
            "It receives seven eighths of 2EF bytes over one link, and the farthest shard makes seven hops.",
        ),
        mistakes=(
            Mistake(
                lambda: _large(chips.V5E.axis(8, wrapped=True)),
                "That is a ring. This axis of eight has two ends.",
                slip="ring-for-line",
            ),
            Mistake(
                lambda: 2**25 * 7 / 8 / 5e10,
                "The hops are missing: the farthest shard makes seven of them.",
                slip="hops-left-out",
            ),
            Mistake(
                lambda: 2**25 / 5e10,
                "A chip receives only what it lacks: (1 - 1/8) of the array.",
                slip="fraction-left-out",
            ),
            Mistake(lambda: 2**25 / 1e11, "That is M/W for a ring, as if the end of a line had two links."),
            Mistake(
                # the same links at the 90% of their rate that some texts calculate with
                lambda: _large(replace(_LINE, link_bytes_per_s=0.9 * _LINE.link_bytes_per_s)),
                "That is with 45 GB/s, 90% of the rate. The documented rate is 50.",
            ),
            Mistake(
                lambda: _large(chips.V5E.axis(4)), "That is over the axis of four. This is the one of eight."
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
            "How long does one shard of 16 KiB take over one link? Compare it with a hop.",
            (
                "Both terms count here: seven shards arrive over one link, and the farthest comes over "
                "seven hops."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: 7 * _LINE.hop_s,
                "Those are the hops alone; the bytes add a third of them. (A ring? This axis has ends.)",
                slip="term-left-out",
            ),
            Mistake(
                lambda: 7 * 16 * KiB / 5e10,
                "Those are the bytes alone; the hops take longer.",
                slip="hops-left-out",
            ),
            Mistake(
                lambda: _gathered_s(BF16.bytes * 256 * 256, chips.V5E.axis(4)),
                "That is over the axis of four. This is the one of eight.",
            ),
        ),
        right="Right. Real hops and starts cost more than the model's microsecond.",
    ),
    Check(
        key="sharding.gather-one-axis",
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
                lambda: _gathered_s(_BD, _RING),
                "Y still cuts D: each chip gathers a quarter of the array.",
                slip="axis-left-out",
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
        key="sharding.gather-two-axes",
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
        key="sharding.allreduce-one-axis",
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
                "That is 45 GB/s a link, no hops, and without 1 - 1/4.",
            ),
            Mistake(
                lambda: 2 * _BD / 16 / 1e11,
                (
                    "That is the textbook's 2M/W. (1 - 1/4) of it moves, and four hops are as long as "
                    "half of that."
                ),
            ),
        ),
        right="Right. Without the cuts over X and Y it would be sixteen times the bytes.",
    ),
)
