"""Can a reader tell from a compiled program what was written, what it does and what it keeps?"""

from scalingbook_book.chapters.profiling.checks import recorded as r
from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib.units import BF16

_PRODUCT = 2 * 64 * 256 * 256  # FLOPs of [64, 256] · [256, 256]
_LAST = 2 * 64 * 256 * 1000


def loops_flops(outer: int = 6, inner: int = 4, last: int = _LAST) -> int:
    """A product in each round of a loop, as many again in a loop within it, and one behind."""
    return outer * (1 + inner) * _PRODUCT + last


def _kept(arrays: int = 2) -> float:
    """So many arrays [8192, 2048] in bf16 for each of eight layers."""
    return BF16.bytes * arrays * 8 * 8192 * 2048


COMPILED = (
    Check(
        key="profiling.parameters-from-hlo",
        title="From a program back to its arrays",
        answer=lambda: 2 * 3072 * (4 * 2048),
        unit="parameters",
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "The last operation adds up within groups. How many devices has a group, and why must they add?",
            "Of the dimension that both products share, a device has 2,048. Who has the others?",
            "Devices of different groups have the same blocks of the weights: a sum over four is complete.",
        ),
        mistakes=(
            Mistake(0.25, "That is what one device holds. How many devices share a sum?"),
            Mistake(
                2.0,
                "Weights are split over the devices of a group, not over all eight: groups have the same.",
            ),
            Mistake(
                0.5,
                "Half of them. There are two weights; and [2,4]<=[4,2]T(1,0) are two groups of four.",
            ),
        ),
        right="Right. Tokens cannot be told so: a group could as well have rows of its own or all of them.",
    ),
    Check(
        key="profiling.count-flops",
        title="Counted once",
        answer=loops_flops,
        unit="FLOP",
        difficulty=2,
        rel_tol=1e-6,
        hints=(
            "`jax.make_jaxpr(program)(*shapes).jaxpr.eqns`: each has a primitive, params and variables.",
            "A scan has `length` and a `jaxpr` in its params; other equations may hold a jaxpr, too.",
            "Of a dot_general: two for each element of the result and of the contracted dimensions.",
        ),
        mistakes=(
            Mistake(lambda: loops_flops(1, 1), "A loop's body runs as often as its length says."),
            Mistake(lambda: loops_flops(6, 1), "The loop within the loop runs four times in each round."),
            Mistake(lambda: loops_flops(1, 4), "The outer loop runs six times."),
            Mistake(lambda: loops_flops(last=0), "One product stands outside of the loops."),
        ),
    ),
    Check(
        key="profiling.idle-mxu",
        title="Where the MXU idles",
        answer=lambda: r.idle(r.MATMUL_256),
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "How many bundles are there, and how many of them use none of the four slots?",
            "Before the first product, weights are loaded; behind the last one, sums are read out.",
        ),
        mistakes=(
            Mistake(lambda: 1 - r.idle(r.MATMUL_256), "That is the share in which it has something to do."),
            Mistake(41 / 141, "Those before the first product; there are more behind the last one."),
            Mistake(100 / 141, "Those behind the last product; there are more before the first one."),
            Mistake(lambda: r.idle(r.MATMUL_1024), "That is the larger product."),
        ),
        right="Right. The larger product begins and ends in much the same way, with a far longer middle.",
    ),
    Check(
        key="profiling.backward-memory",
        title="What the backward pass keeps",
        answer=_kept,
        unit="B",
        difficulty=2,
        hints=(
            "Which arrays does the backward pass of (h w)² read that no argument holds?",
            "One for the gradient of w, and one for that of the square.",
        ),
        mistakes=(
            Mistake(
                0.5,
                "One array for each layer. The product's gradient needs what went in, and the square's needs "
                "what came out of the product.",
                slip="term-left-out",
            ),
            Mistake(1.5, "The square itself is the next layer's h: it is kept once.", slip="term-added"),
            Mistake(
                1 / 8, "That is one layer; eight of them wait for the backward pass.", slip="one-for-total"
            ),
        ),
        right="Right, and the compiler says so to within a thousandth.",
    ),
)
