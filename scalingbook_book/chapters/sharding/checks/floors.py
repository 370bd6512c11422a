"""Checks of the exercises on the lower bounds of a sharded matmul: latency, memory and overlap."""

from collections.abc import Callable
from functools import cache
from itertools import count

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import collectives
from scalingbook_lib.machines import chips
from scalingbook_lib.sharded_matmul import Strategy, solve
from scalingbook_lib.units import BF16, FP32, MiB

_CUBE = chips.Slice.of(chips.V4, "4x4x4").mesh(X=4, Y=4, Z=4)
_FOUR = chips.Slice.of(chips.V6E, "2x2").mesh(X=2, Y=2)
_MIXED = chips.Slice.of(chips.V5E, "2x4").mesh(X=2, Y=4)


def _lowest(axes: str = "XYZ", bring: Callable[..., collectives.Transfer] = collectives.all_gather) -> float:
    """2IJK FLOPs shared over these axes of the cube, then the result brought together, hops included."""
    I, J, K = 4096, 16384, 4096
    math_s = 2 * I * J * K / _CUBE.size(axes) / chips.V4.bf16_flops_per_s
    return math_s + bring(BF16.bytes * I * K, *_CUBE.axes(axes)).total_s


@cache
def _layer_s(term: str, B: int = 128) -> float:
    """A feed-forward layer by tensor parallelism on four v6e, term by term."""
    sizes = {"B": B, "D": 8192, "F": 32768}
    up = solve("A[B, D_XY] · W[D, F_XY] -> H[B, F_XY]", _FOUR, sizes).named("gather A over XY")
    down = solve("H[B, F_XY] · W[F_XY, D] -> Z[B, D_XY]", _FOUR, sizes).named("reduce-scatter Z over XY")
    return getattr(up, term) + getattr(down, term)


def _weights_s() -> float:
    return 2 * BF16.bytes * 8192 * 32768 / 4 / chips.V6E.hbm_bytes_per_s


@cache
def _overlapped(K: int = 8192) -> Strategy:
    found = solve("A[I, J_Y] · B[J, K_Y] -> C[I, K_Y]", _MIXED, {"I": 4096, "J": 8192, "K": K})
    return found.named("gather A over Y")


def _chunks(strategy: Strategy, margin: float = 1.1) -> int:
    """The fewest chunks with which a collective matmul takes at most `margin` times its longer term."""
    longer = max(strategy.chip_s, strategy.comms_s)
    return next(n for n in count(1) if strategy.overlapped(n).total_s <= margin * longer)


def _four_programs() -> float:
    """An AllGather, an AllReduce, a ReduceScatter and an AllToAll of fp32[1024, 1024] on eight devices."""
    kinds = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all")
    return sum(collectives.bytes_received(kind, FP32.bytes * 1024 * 1024, 8) for kind in kinds)


FLOORS = (
    Check(
        key="sharding.lowest-latency",
        title="A matmul with the lowest latency",
        answer=_lowest,
        unit="s",
        difficulty=3,
        hints=(
            "Each of the 64 chips performs 2IJK/64 FLOPs.",
            "Shard I or K, so that the result only has to be gathered: 2IK bytes over three axes at once.",
            "Add six hops, two along each axis.",
        ),
        mistakes=(
            Mistake(
                lambda: _lowest(""),
                "That is full replication: nothing has to move, but every chip computes everything.",
                slip="total-for-one",
            ),
            Mistake(
                lambda: _lowest(bring=collectives.all_reduce),
                "Sharding J leaves partial sums, and an AllReduce takes twice as long as an AllGather.",
                slip="two-passes",
            ),
            Mistake(lambda: _lowest("X"), "That shares the work among the four chips of one axis only."),
            Mistake(
                lambda: _lowest() - 6e-6,
                "Add the hops: two along each of the three rings.",
                slip="hops-left-out",
            ),
            Mistake(
                lambda: collectives.all_gather(BF16.bytes * 4096**2, *_CUBE.axes("XYZ")).total_s,
                "That is the communication alone. Without overlap, the compute time is added to it.",
                slip="term-left-out",
            ),
        ),
        right="Right. Most of the time goes into assembling the result.",
    ),
    Check(
        key="sharding.layer-with-memory",
        title="The three times of a sharded MLP",
        answer=_weights_s,
        unit="s",
        rel_tol=0.04,
        difficulty=3,
        chips=4,
        hints=(
            "There are three times to compare: compute, network and HBM. Which one is the longest?",
            "128 tokens are far fewer than a v6e needs to be compute-bound.",
            "Each chip holds a quarter of both matrices and has to read all of it.",
        ),
        mistakes=(
            Mistake(lambda: _layer_s("math_s"), "That is the compute. Something else takes longer."),
            Mistake(lambda: _layer_s("comms_s"), "That is the communication. Something else takes longer."),
            Mistake(
                lambda: 2 * collectives.all_gather(BF16.bytes * 128 * 8192, *_FOUR.axes("XY")).bandwidth_s,
                "That is the time for the bytes on the network. Something else takes longer.",
            ),
            Mistake(
                lambda: _weights_s() + _layer_s("math_s"),
                "That adds compute and memory. Everything overlaps, so only the longest time counts.",
            ),
            Mistake(
                lambda: _weights_s() + _layer_s("math_s") + _layer_s("comms_s"),
                "That adds all three times. Everything overlaps, so only the longest one counts.",
            ),
            Mistake(
                lambda: _weights_s() * chips.V6E.hbm_bytes_per_s / chips.V5E.hbm_bytes_per_s,
                "That is for a v5e. The HBM of a v6e is twice as fast.",
            ),
        ),
        right="Right: it is memory-bound. Compute and communication alone would not have shown that.",
    ),
    Check(
        key="sharding.chunks-to-overlap",
        title="Collective matmul: how many chunks?",
        answer=lambda: _chunks(_overlapped()),
        rel_tol=1e-6,
        difficulty=3,
        hints=(
            (
                "First compute the two times: 2IJK/4 FLOPs per chip, and an AllGather of 2IJ "
                "bytes on a line of four."
            ),
            "In n chunks, it takes the longer time plus 1/n of the shorter one.",
            "Which one is longer? The shorter one, divided by n, must be at most a tenth of it.",
        ),
        mistakes=(
            Mistake(
                lambda: 10,
                "The 10% refer to the longer time, while the shorter one is divided by n.",
                slip="wrong-formula-tenth",
            ),
            Mistake(
                lambda: _chunks(_overlapped(32768)),
                "That is for the K in the text, which is four times as large.",
            ),
            Mistake(lambda: _chunks(_overlapped()) - 1, "Almost: it takes one more chunk.", slip="rounding"),
            Mistake(
                lambda: 8, "That would be right for a ring. This axis of four is a line, which is slower."
            ),
        ),
        right="Right.",
    ),
    Check(
        key="sharding.write-collectives",
        title="Writing and counting four collectives",
        answer=_four_programs,
        unit="B",
        rel_tol=3e-3,
        chips=8,
        difficulty=3,
        hints=(
            (
                "lax.all_gather, lax.psum, lax.psum_scatter and lax.all_to_all, each in a function of "
                "the local block."
            ),
            "Compile each of them and add up `program.collectives.received_bytes`.",
            (
                "On paper, with M = 4 MiB: 7/8 of M for the AllGather and for the ReduceScatter, twice "
                "that for the AllReduce, and an eighth of it for the AllToAll."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: 7 / 8 * 4 * MiB * 3.125,
                "In an AllReduce, each device receives twice 7/8 of the array.",
            ),
            Mistake(
                lambda: 7 / 8 * 4 * MiB * 5,
                "In an AllToAll, each device receives only an eighth of what it receives in an AllGather.",
            ),
            Mistake(
                lambda: 7 / 8 * 4 * MiB * 4, "In an AllToAll, each device receives little, but not nothing."
            ),
            Mistake(
                lambda: 4 * 4 * MiB,
                "Those are the sizes of the arrays. How much of them does one device receive?",
            ),
            Mistake(0.5, "The array is fp32, with four bytes per element."),
        ),
        right="Right: the compiled programs receive exactly the bytes that the formulas predict.",
    ),
)
