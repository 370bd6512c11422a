"""Which way to do a sharded product, and what limits it? The exercises on strategies."""

from collections.abc import Callable
from functools import cache
from itertools import count

from scalingbook_lib import chips, collectives
from scalingbook_lib.checks.check import Check, Mistake
from scalingbook_lib.collectives import Transfer
from scalingbook_lib.resharding import Machine, Rings
from scalingbook_lib.sharded_matmul import Strategy, solve
from scalingbook_lib.units import BF16, FP32, MiB

_V6E = Rings(chips.V6E, X=16)
_SQUARE = chips.Slice.of(chips.V5E, "4x4").mesh(X=4, Y=4)
_POD = chips.Slice.of(chips.V5E, "16x16").mesh(X=16, Y=16)
_CUBE = chips.Slice.of(chips.V4, "4x4x4").mesh(X=4, Y=4, Z=4)
_FOUR = chips.Slice.of(chips.V6E, "2x2").mesh(X=2, Y=2)
_MIXED = chips.Slice.of(chips.V5E, "2x4").mesh(X=2, Y=4)
_IK = {"I": 4096, "K": 4096}


@cache
def _scattered_or_gathered() -> float:
    """Bytes that gathering A moves over bytes that scattering C moves."""
    sizes = {"I": 4096, "J": 8192, "K": 2048}
    found = solve("A[I, J_X] · B[J, K] -> C[I, K_X]", Rings(chips.V5P, X=16), sizes)
    first, last = (
        found.named(name)
        for name in ("gather A over X, slice B over X", "slice B over X, reduce-scatter C over X")
    )
    return first.nbytes / last.nbytes


@cache
def _strategies(B: int, D: int = 8192) -> tuple[Strategy, Strategy]:
    found = solve("A[B, D] · W[D_X, F] -> Z[B, F]", _V6E, {"B": B, "D": D, "F": 16384})
    return found.named("gather W over X"), found.named("slice A over X, all-reduce Z over X")


def _few_tokens(B: int = 1024) -> float:
    """Gathering grows with D, reducing does not: they cross where the two transfers are equal."""
    gather, reduce = _strategies(B)
    return 8192 * reduce.transfer.bandwidth_s / gather.transfer.bandwidth_s


def _many_tokens(B: int = 16384) -> float:
    """Gathering is compute-bound now: its arithmetic grows with D, the reduction does not."""
    gather, reduce = _strategies(B)
    return 8192 * reduce.transfer.bandwidth_s / gather.math_s


def _share(text: str, name: str, machine: Machine, **sizes: int) -> float:
    """Network over arithmetic, hops left out."""
    strategy = solve(text, machine, sizes).named(name)
    return strategy.transfer.bandwidth_s / strategy.math_s


@cache
def _no_wrap(J: int = 8192) -> float:
    text = "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K]"
    return _share(text, "all-reduce C over Y", _SQUARE, J=J, **_IK)


@cache
def _pod_rows(I: int = 16384) -> float:
    text = "A[I_X, J] · B[J_X, K_Y] -> C[I_X, K_Y]"
    return I * _share(text, "gather B over X", _POD, I=I, J=4096, K=4096)


def _lowest(axes: str = "XYZ", bring: Callable[..., Transfer] = collectives.all_gather) -> float:
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
    sizes = {"I": 4096, "J": 8192, "K": K}
    found = solve("A[I, J_Y] · B[J, K_Y] -> C[I, K_Y]", _MIXED, sizes)
    return found.named("gather A over Y")


def _chunks(strategy: Strategy, margin: float = 1.1) -> int:
    """The fewest chunks with which a collective matmul takes at most `margin` times its longer term."""
    longer = max(strategy.chip_s, strategy.comms_s)
    return next(n for n in count(1) if strategy.overlapped(n).total_s <= margin * longer)


def _four_programs() -> float:
    """An AllGather, an AllReduce, a ReduceScatter and an AllToAll of fp32[1024, 1024] on eight devices."""
    kinds = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all")
    return sum(collectives.bytes_received(kind, FP32.bytes * 1024 * 1024, 8) for kind in kinds)


PRODUCTS = (
    Check(
        key="sharding.20",
        title="The way back",
        answer=lambda: "ReduceScatter",
        choices=("AllGather", "ReduceScatter", "AllReduce", "AllToAll"),
        hints=(
            (
                "Each chip used a copy of the whole of W, on data of its own, and so has a gradient for "
                "all of it."
            ),
            "The gradients must be summed over the chips, and each chip needs those of its own part only.",
        ),
        mistakes=(
            Mistake("AllGather", "Nothing would be summed, and every chip has gradients of its own."),
            Mistake("AllReduce", "The sum is right, and every chip would get all of it: twice the bytes."),
            Mistake("AllToAll", "That moves gradients to their owners without adding them up."),
        ),
        right="Right: forwards a copy goes to everybody, backwards everybody's part is added up.",
    ),
    Check(
        key="sharding.21",
        title="Gather first, or scatter last",
        answer=_scattered_or_gathered,
        difficulty=2,
        hints=(
            "Gathering first moves A[I, J]; scattering last moves C[I, K].",
            "Both carry the same 1 - 1/n, so only the sizes of the two arrays matter.",
        ),
        mistakes=(
            Mistake(
                lambda: 1 / _scattered_or_gathered(), "That is the inverse: J is the larger dimension here."
            ),
            Mistake(0.5, "The result may stay cut, so one pass is enough: no AllReduce."),
        ),
        right="Right: J over K. In the reference's letters, M over K.",
    ),
    Check(
        key="sharding.22",
        title="Gather or reduce, few tokens",
        answer=_few_tokens,
        difficulty=2,
        hints=(
            "Compare B with C/W: is gathering compute-bound or network-bound?",
            "2DF bytes for gathering, twice 2BF bytes for reducing, both over the same ring.",
        ),
        mistakes=(
            Mistake(lambda: 1024, "That compares one pass with one pass. An AllReduce is two."),
            Mistake(
                lambda: 2 * 4590, "That is 2 C/W, the threshold of batches above C/W. This batch is below."
            ),
            Mistake(lambda: 512, "The factor is on the other side: reducing moves its array twice."),
        ),
        right="Right: D > 2B, whatever F, the chip and the number of chips.",
    ),
    Check(
        key="sharding.23",
        title="Gather or reduce, many tokens",
        answer=_many_tokens,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "Compare B with C/W: now the arithmetic takes longer than gathering.",
            "2BDF/C against 2 · (15/16) · 2BF/W. What cancels?",
        ),
        mistakes=(
            Mistake(lambda: 2 * 4590, "That is 2 C/W: keep the exact 1 - 1/16 of the ring."),
            Mistake(
                lambda: 2 * 16384,
                "That is 2B, the threshold of small batches. Here gathering is compute-bound.",
            ),
            Mistake(2, "W counts both directions of a ring: 200 GB/s."),
            Mistake(0.5, "An AllReduce is two passes."),
        ),
        right="Right: B and F have cancelled.",
    ),
    Check(
        key="sharding.24",
        title="A slice without rings",
        answer=_no_wrap,
        difficulty=2,
        hints=(
            "Arithmetic: 2IJK/16 FLOPs a chip. What does a chip hold of C before the sum?",
            "A ReduceScatter and an AllGather on a line of four: 2 · (3/4) · 2(I/4)K bytes over one link.",
        ),
        mistakes=(
            Mistake(0.5, "That is a ring, or only half of an AllReduce. A v5e axis of four is a line."),
            Mistake(4 / 3, "A chip has a quarter already: 1 - 1/4 of the array moves in each pass."),
            Mistake(10 / 9, "That is with the reference's 45 GB/s. The documented rate is 50."),
            Mistake(4, "X still cuts I, so a quarter of C is summed."),
            Mistake(lambda: 1 / _no_wrap(), "Upside down: network over arithmetic is asked for."),
        ),
        right="Right: network-bound, almost three to one.",
    ),
    Check(
        key="sharding.25",
        title="The same on a pod with rings",
        answer=_pod_rows,
        rel_tol=0.01,
        difficulty=3,
        hints=(
            "Arithmetic: 2IJK/256 FLOPs a chip. Gathered: B[J, K/16], of which a chip lacks 15/16.",
            "An axis of 16 on v5e is a ring, so two links bring it.",
            "J and K cancel. What is left is I > 15 C/W.",
        ),
        mistakes=(
            Mistake(2, "An axis of 16 is a ring on v5e: W is twice the one-way rate."),
            Mistake(16 / 15, "A chip has a sixteenth of it already."),
            Mistake(lambda: 3 * 3940, "That is the threshold on the 4 × 4 slice."),
            Mistake(1 / 16, "That is the number of rows on each chip."),
            Mistake(
                lambda: 1970, "That is C/W, about the rows of one chip. X cuts I, and all rows are asked for."
            ),
        ),
        right="Right: a larger slice needs a larger batch, in proportion to the chips on X.",
    ),
    Check(
        key="sharding.26",
        title="The lowest latency",
        answer=_lowest,
        unit="s",
        difficulty=3,
        hints=(
            "Each of 64 chips does its share: 2IJK/64 FLOPs.",
            "Cut I or K, so that the result only has to be gathered: 2IK bytes, over three axes at once.",
            "Add six hops, two along each axis.",
        ),
        mistakes=(
            Mistake(
                lambda: _lowest(""),
                "That is every chip doing all the work: nothing to move, and a lot to compute.",
            ),
            Mistake(
                lambda: _lowest(bring=collectives.all_reduce),
                "Cutting J leaves sums, and an AllReduce costs twice an AllGather.",
            ),
            Mistake(lambda: _lowest("X"), "That shares the work among the four chips of one axis."),
            Mistake(lambda: _lowest() - 6e-6, "Add the hops: two along each of three rings."),
            Mistake(
                lambda: collectives.all_gather(BF16.bytes * 4096**2, *_CUBE.axes("XYZ")).total_s,
                "That is the network alone. Without overlap the arithmetic comes on top.",
            ),
        ),
        right="Right. Most of it is bringing the result together.",
    ),
    Check(
        key="sharding.27",
        title="Do not forget the memory",
        answer=_weights_s,
        unit="s",
        rel_tol=0.04,
        difficulty=3,
        chips=4,
        hints=(
            "Three times to compare: arithmetic, network, HBM. Which one is the longest?",
            "128 tokens are far below what a v6e needs to be compute-bound.",
            "Each chip has a quarter of both matrices and must read all of it.",
        ),
        mistakes=(
            Mistake(lambda: _layer_s("math_s"), "That is the arithmetic. Something else takes longer."),
            Mistake(lambda: _layer_s("comms_s"), "That is the network. Something else takes longer."),
            Mistake(
                lambda: 2 * collectives.all_gather(BF16.bytes * 128 * 8192, *_FOUR.axes("XY")).bandwidth_s,
                "Those are the bytes of the network. Something else takes longer.",
            ),
            Mistake(
                lambda: _weights_s() + _layer_s("math_s"),
                "That adds arithmetic and memory. Everything overlaps, so only the longest counts.",
            ),
            Mistake(
                lambda: _weights_s() + _layer_s("math_s") + _layer_s("comms_s"),
                "That adds all three times. Everything overlaps, so only the longest counts.",
            ),
            Mistake(
                lambda: _weights_s() * chips.V6E.hbm_bytes_per_s / chips.V5E.hbm_bytes_per_s,
                "That is a v5e. A v6e's memory is twice as fast.",
            ),
        ),
        right="Right: memory-bound. The reference's version of this problem never asks for the memory.",
    ),
    Check(
        key="sharding.28",
        title="How many chunks?",
        answer=lambda: _chunks(_overlapped()),
        rel_tol=1e-6,
        difficulty=3,
        hints=(
            "First the two times: 2IJK/4 FLOPs a chip, and an AllGather of 2IJ bytes on a line of four.",
            "In n chunks it takes the longer one and 1/n of the shorter.",
            "Which is the longer? The shorter, divided by n, must be at most a tenth of it.",
        ),
        mistakes=(
            Mistake(lambda: 10, "The tenth is of the longer term, and the shorter one is cut."),
            Mistake(
                lambda: _chunks(_overlapped(32768)), "That is for the K of the text, four times this one."
            ),
            Mistake(lambda: _chunks(_overlapped()) - 1, "Not quite: one chunk more."),
            Mistake(lambda: 8, "That would be a ring. This axis of four is a line, which is the slower."),
        ),
        right="Right.",
    ),
    Check(
        key="sharding.29",
        title="Four collectives, written and counted",
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
            "Compile each and add up `program.collectives.received_bytes`.",
            (
                "On paper: with M = 4 MiB, 7/8 of M for the gather and the scatter, twice that for the "
                "AllReduce, an eighth for the exchange."
            ),
        ),
        mistakes=(
            Mistake(lambda: 7 / 8 * 4 * MiB * 3.125, "An AllReduce receives twice 7/8 of the array."),
            Mistake(
                lambda: 7 / 8 * 4 * MiB * 5,
                "An AllToAll gives each device only an eighth of what a gather does.",
            ),
            Mistake(lambda: 7 / 8 * 4 * MiB * 4, "An AllToAll receives little, and not nothing."),
            Mistake(lambda: 4 * 4 * MiB, "Those are the sizes of the arrays. What does one device receive?"),
            Mistake(0.5, "The array is fp32, four bytes an element."),
        ),
        right="Right: what was written is what was compiled, byte for byte.",
    ),
)
