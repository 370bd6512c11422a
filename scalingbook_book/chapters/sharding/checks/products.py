"""Which way to do a sharded product, and what limits it? The exercises on strategies."""

from functools import cache

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib.collectives.resharding import DeviceMesh, Rings
from scalingbook_lib.machines import chips
from scalingbook_lib.sharded_matmul import Strategy, solve

_V6E = Rings(chips.V6E, X=16)
_SQUARE = chips.Slice.of(chips.V5E, "4x4").mesh(X=4, Y=4)
_POD = chips.Slice.of(chips.V5E, "16x16").mesh(X=16, Y=16)
_IK = {"I": 4096, "K": 4096}


@cache
def _scattered_or_gathered() -> float:
    """Bytes that gathering A moves over bytes that scattering C moves."""
    sizes = {"I": 4096, "J": 8192, "K": 2048}
    found = solve("A[I, J_X] · B[J, K] -> C[I, K_X]", Rings(chips.V5P, X=16), sizes)
    first, last = (
        found.named(name)
        for name in ("gather A over X, cut B over X", "cut B over X, reduce-scatter C over X")
    )
    return first.nbytes / last.nbytes


@cache
def _strategies(B: int, D: int = 8192) -> tuple[Strategy, Strategy]:
    found = solve("A[B, D] · W[D_X, F] -> Z[B, F]", _V6E, {"B": B, "D": D, "F": 16384})
    return found.named("gather W over X"), found.named("cut A over X, all-reduce Z over X")


def _few_tokens(B: int = 1024) -> float:
    """Gathering grows with D, reducing does not: they cross where the two transfers are equal."""
    gather, reduce = _strategies(B)
    return 8192 * reduce.transfer.bandwidth_s / gather.transfer.bandwidth_s


def _many_tokens(B: int = 16384) -> float:
    """Gathering is compute-bound now: its arithmetic grows with D, the reduction does not."""
    gather, reduce = _strategies(B)
    return 8192 * reduce.transfer.bandwidth_s / gather.math_s


def _share(text: str, name: str, machine: DeviceMesh, **sizes: int) -> float:
    """Network over arithmetic, hops left out."""
    strategy = solve(text, machine, sizes).named(name)
    return strategy.transfer.bandwidth_s / strategy.math_s


@cache
def _no_wrap(J: int = 8192) -> float:
    return _share("A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K]", "all-reduce C over Y", _SQUARE, J=J, **_IK)


@cache
def _pod_rows(I: int = 16384) -> float:
    text = "A[I_X, J] · B[J_X, K_Y] -> C[I_X, K_Y]"
    return I * _share(text, "gather B over X", _POD, I=I, J=4096, K=4096)


PRODUCTS = (
    Check(
        key="sharding.backward-collective",
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
        key="sharding.gather-or-scatter",
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
        right="Right: J over K.",
    ),
    Check(
        key="sharding.reduce-few-tokens",
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
        key="sharding.reduce-many-tokens",
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
        key="sharding.slice-without-rings",
        title="A slice without rings",
        answer=_no_wrap,
        difficulty=2,
        hints=(
            "Arithmetic: 2IJK/16 FLOPs a chip. What does a chip hold of C before the sum?",
            "A ReduceScatter and an AllGather on a line of four: 2 · (3/4) · 2(I/4)K bytes over one link.",
        ),
        mistakes=(
            Mistake(
                0.5,
                "That is a ring, or only half of an AllReduce. A v5e axis of four is a line.",
                slip="ring-for-line",
            ),
            Mistake(
                4 / 3,
                "A chip has a quarter already: 1 - 1/4 of the array moves in each pass.",
                slip="fraction-left-out",
            ),
            Mistake(10 / 9, "That is with 45 GB/s, 90% of the rate. The documented rate is 50."),
            Mistake(4, "X still cuts I, so a quarter of C is summed.", slip="axis-left-out"),
            Mistake(
                lambda: 1 / _no_wrap(),
                "Upside down: network over arithmetic is asked for.",
                slip="inverted-ratio",
            ),
        ),
        right="Right: network-bound, almost three to one.",
    ),
    Check(
        key="sharding.pod-with-rings",
        title="The same on a pod with rings",
        answer=_pod_rows,
        unit="rows",
        rel_tol=0.01,
        difficulty=3,
        hints=(
            "Arithmetic: 2IJK/256 FLOPs a chip. Gathered: B[J, K/16], of which a chip lacks 15/16.",
            "An axis of 16 on v5e is a ring, so two links bring it.",
            "J and K cancel. What is left is I > 15 C/W.",
        ),
        mistakes=(
            Mistake(2, "An axis of 16 is a ring on v5e: W is twice the one-way rate."),
            Mistake(16 / 15, "A chip has a sixteenth of it already.", slip="fraction-left-out"),
            Mistake(lambda: 3 * 3940, "That is the threshold on the 4 × 4 slice."),
            Mistake(1 / 16, "That is the number of rows on each chip.", slip="one-for-total"),
            Mistake(
                lambda: 1970, "That is C/W, about the rows of one chip. X cuts I, and all rows are asked for."
            ),
        ),
        right="Right: a larger slice needs a larger batch, in proportion to the chips on X.",
    ),
)
