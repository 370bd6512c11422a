"""Checks on compiled programs: their arrays, their FLOPs, their bundles and their memory."""

from scalingbook_book.chapters.profiling.checks import recorded as r
from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib.units import BF16

_PRODUCT = 2 * 64 * 256 * 256  # FLOPs of [64, 256] · [256, 256]
_LAST = 2 * 64 * 256 * 1000


def loops_flops(outer: int = 6, inner: int = 4, last: int = _LAST) -> int:
    """FLOPs of a loop with one matmul and an inner loop of matmuls, and of one matmul after it."""
    return outer * (1 + inner) * _PRODUCT + last


def _kept(arrays: int = 2) -> float:
    """Bytes of this many bf16 arrays [8192, 2048] for each of eight layers."""
    return BF16.bytes * arrays * 8 * 8192 * 2048


COMPILED = (
    Check(
        key="profiling.parameters-from-hlo",
        title="From a compiled program back to its arrays",
        answer=lambda: 2 * 3072 * (4 * 2048),
        unit="parameters",
        difficulty=2,
        rel_tol=0.01,
        hints=(
            (
                "The last operation reduces within groups. How many devices are in a group, and why do "
                "they have to reduce?"
            ),
            (
                "The two matmuls share one dimension, and a device holds 2,048 of it. Which devices hold "
                "the rest?"
            ),
            (
                "The sum over four devices is complete, so devices of different groups hold the same "
                "blocks of the weights."
            ),
        ),
        mistakes=(
            Mistake(0.25, "That is what one device holds. How many devices take part in one reduction?"),
            Mistake(
                2.0,
                (
                    "The weights are sharded over the devices of a group, not over all eight. Both "
                    "groups hold the same weights."
                ),
            ),
            Mistake(
                0.5,
                (
                    "That is half of them. There are two weights, and [2,4]<=[4,2]T(1,0) means two "
                    "groups of four."
                ),
            ),
        ),
        right=(
            "Right. You cannot infer the number of tokens this way, because each group could hold "
            "its own rows or all rows."
        ),
    ),
    Check(
        key="profiling.count-flops",
        title="Count the FLOPs inside loops",
        answer=loops_flops,
        unit="FLOP",
        difficulty=2,
        rel_tol=1e-6,
        hints=(
            (
                "Look at `jax.make_jaxpr(program)(*shapes).jaxpr.eqns`. Each equation has a primitive, "
                "params and variables."
            ),
            "The params of a scan contain `length` and a `jaxpr`. Other equations can contain a jaxpr, too.",
            (
                "A dot_general performs two FLOPs for each element of its result times the size of the "
                "contracting dimensions."
            ),
        ),
        mistakes=(
            Mistake(lambda: loops_flops(1, 1), "The body of a loop runs as often as its length says."),
            Mistake(
                lambda: loops_flops(6, 1),
                "The inner loop runs four times in each iteration of the outer loop.",
            ),
            Mistake(lambda: loops_flops(1, 4), "The outer loop runs six times."),
            Mistake(lambda: loops_flops(last=0), "One matmul is outside the loops."),
        ),
    ),
    Check(
        key="profiling.idle-mxu",
        title="In which bundles is the MXU idle?",
        answer=lambda: r.idle(r.MATMUL_256),
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "How many bundles are there, and how many of them use none of the four slots?",
            (
                "Before the first matmul instruction, weights are loaded. After the last one, results "
                "are read out."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: 1 - r.idle(r.MATMUL_256), "That is the share of bundles in which the MXU gets work."
            ),
            Mistake(
                41 / 141,
                (
                    "You counted only the bundles before the first matmul instruction. There are more "
                    "after the last one."
                ),
            ),
            Mistake(
                100 / 141,
                (
                    "You counted only the bundles after the last matmul instruction. There are more "
                    "before the first one."
                ),
            ),
            Mistake(lambda: r.idle(r.MATMUL_1024), "That is the answer for the larger matmul."),
        ),
        right="Right. The larger matmul has a similar beginning and end, but a far longer middle.",
    ),
    Check(
        key="profiling.backward-memory",
        title="What the backward pass keeps",
        answer=_kept,
        unit="B",
        difficulty=2,
        hints=(
            "Which arrays does the backward pass of (h w)² read that are not arguments of the program?",
            "There is one array for the gradient of w, and one for the gradient of the square.",
        ),
        mistakes=(
            Mistake(
                0.5,
                "You counted one array per layer. The gradient of the matmul needs its input, and "
                "the gradient of the square needs the output of the matmul.",
                slip="term-left-out",
            ),
            Mistake(
                1.5, "The square is the h of the next layer, so it is stored only once.", slip="term-added"
            ),
            Mistake(
                1 / 8,
                "That is for one layer, and the program keeps the arrays of eight.",
                slip="one-for-total",
            ),
        ),
        right="Right. The compiler reports the same number to within 0.1%.",
    ),
)
