"""Checks of the exercises on strategies for a sharded matmul and their bottlenecks."""

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
        title="The backward pass of an AllGather",
        answer=lambda: "ReduceScatter",
        choices=("AllGather", "ReduceScatter", "AllReduce", "AllToAll"),
        hints=(
            ("Each chip used all of W, on its own tokens, so it has a gradient for all of it."),
            "The gradients have to be summed over the chips, and each chip needs only its own shard.",
        ),
        mistakes=(
            Mistake("AllGather", "That would not sum anything, but every chip has different gradients."),
            Mistake(
                "AllReduce",
                "The sum would be right, but every chip would receive all of it, at twice the cost.",
            ),
            Mistake("AllToAll", "That moves the gradients to the right chips without adding them up."),
        ),
        right="Right: the forward pass copies to all chips, so the backward pass sums over all chips.",
    ),
    Check(
        key="sharding.gather-or-scatter",
        title="Gather first or scatter last?",
        answer=_scattered_or_gathered,
        difficulty=2,
        hints=(
            "The first strategy gathers A[I, J]. The second scatters C[I, K].",
            "Both carry the same factor 1 - 1/n, so only the sizes of the two arrays matter.",
        ),
        mistakes=(
            Mistake(
                lambda: 1 / _scattered_or_gathered(), "That is the inverse: J is the larger dimension here."
            ),
            Mistake(0.5, "The result may stay sharded, so one pass is enough. No AllReduce is needed."),
        ),
        right="Right: the ratio is J/K.",
    ),
    Check(
        key="sharding.reduce-few-tokens",
        title="AllGather or AllReduce, with few tokens",
        answer=_few_tokens,
        difficulty=2,
        hints=(
            "Compare B with C/W: is gathering compute-bound or network-bound?",
            "Gathering moves 2DF bytes and reducing twice 2BF bytes, both over the same ring.",
        ),
        mistakes=(
            Mistake(lambda: 1024, "That compares one pass with one pass, but an AllReduce makes two."),
            Mistake(
                lambda: 2 * 4590,
                "That is 2 C/W, the threshold for batches above C/W. This batch is below it.",
            ),
            Mistake(
                lambda: 512, "The factor of 2 belongs on the other side: reducing moves its array twice."
            ),
        ),
        right="Right: D > 2B, whatever F, the chip and the number of chips are.",
    ),
    Check(
        key="sharding.reduce-many-tokens",
        title="AllGather or AllReduce, with many tokens",
        answer=_many_tokens,
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "Compare B with C/W: now compute takes longer than gathering.",
            "Compare 2BDF/C with 2 · (15/16) · 2BF/W. What cancels?",
        ),
        mistakes=(
            Mistake(lambda: 2 * 4590, "That is 2 C/W. Keep the exact factor 1 - 1/16 of the ring."),
            Mistake(
                lambda: 2 * 16384,
                "That is 2B, the threshold for small batches. Here gathering is compute-bound.",
            ),
            Mistake(2, "On a ring, W is the rate of two links: 200 GB/s."),
            Mistake(0.5, "An AllReduce makes two passes."),
        ),
        right="Right: B and F have canceled.",
    ),
    Check(
        key="sharding.slice-without-rings",
        title="A matmul on a slice without rings",
        answer=_no_wrap,
        difficulty=2,
        hints=(
            "Each chip performs 2IJK/16 FLOPs. How much of C does it hold before the AllReduce?",
            (
                "The AllReduce is a ReduceScatter and an AllGather on a line of four: 2 · (3/4) "
                "· 2(I/4)K bytes over one link."
            ),
        ),
        mistakes=(
            Mistake(
                0.5,
                "That is for a ring, or for only half of an AllReduce. A v5e axis of four is a line.",
                slip="ring-for-line",
            ),
            Mistake(
                4 / 3,
                "A chip already holds a quarter, so 1 - 1/4 of the array moves in each pass.",
                slip="fraction-left-out",
            ),
            Mistake(10 / 9, "That is for 45 GB/s, 90% of the rate. The documented rate is 50 GB/s."),
            Mistake(4, "I is still sharded over X, so only a quarter of C is reduced.", slip="axis-left-out"),
            Mistake(
                lambda: 1 / _no_wrap(),
                "That is the inverse. The question asks for communication over compute.",
                slip="inverted-ratio",
            ),
        ),
        right="Right: it is network-bound, by almost three to one.",
    ),
    Check(
        key="sharding.pod-with-rings",
        title="A matmul on a pod with rings",
        answer=_pod_rows,
        unit="rows",
        rel_tol=0.01,
        difficulty=3,
        hints=(
            "Each chip performs 2IJK/256 FLOPs. It gathers B[J, K/16], of which it lacks 15/16.",
            "An axis of 16 on v5e is a ring, so a chip receives over two links.",
            "J and K cancel, which leaves I > 15 C/W.",
        ),
        mistakes=(
            Mistake(2, "On v5e, an axis of 16 is a ring, so W is twice the rate of one link."),
            Mistake(16 / 15, "A chip already holds a sixteenth of it.", slip="fraction-left-out"),
            Mistake(lambda: 3 * 3940, "That is the threshold for the 4 × 4 slice."),
            Mistake(1 / 16, "That is the number of rows per chip.", slip="one-for-total"),
            Mistake(
                lambda: 1970,
                (
                    "That is C/W, roughly the rows per chip. The question asks for all rows, "
                    "which are sharded over X."
                ),
            ),
        ),
        right="Right: a larger slice needs a larger batch, in proportion to the number of chips along X.",
    ),
)
