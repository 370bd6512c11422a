"""Can a reader mend what a profile shows? Programs to write, and searches."""

from bisect import bisect_left
from functools import cache
from itertools import product

from scalingbook_book.reader.checks import programs
from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import roofline
from scalingbook_lib.machines import chips
from scalingbook_lib.units import MiB

LENGTHS = tuple(sorted(24 + i**3 % 1000 for i in range(200)))
_SIDES = tuple(128 * 2**k for k in range(7))


def padded(default_layout: tuple[int, ...], of: tuple[int, ...] = LENGTHS) -> int:
    """Tokens of padding if every sequence is filled up to the next one of these lengths."""
    default_layout = tuple(sorted(default_layout))
    return sum(default_layout[bisect_left(default_layout, n)] - n for n in of)


@cache  # an answer and its mistakes are asked for at every judgement
def least_padding(lengths: int = 4, of: tuple[int, ...] = LENGTHS) -> int:
    """With the best choice of so many lengths: each of them is that of the last sequence that it takes."""

    @cache
    def best(sequences: int, left: int) -> int:
        if not sequences:
            return 0
        top = of[sequences - 1]
        starts = range(sequences) if left > 1 else (0,)
        return min(best(i, left - 1) + sum(top - n for n in of[i:sequences]) for i in starts)

    return best(len(of), lengths)


def least_traffic(*, buffers: int = 2, room: int = 16 * MiB) -> float:
    """The fewest bytes to and from HBM for [8192, 4096] · [4096, 8192], in tiles that fit."""

    def fits(rows: int, columns: int, depth: int) -> bool:
        tiles = rows * depth + depth * columns + rows * columns
        return 2 * buffers * tiles + 4 * rows * columns <= room

    tilings = (t for t in product(_SIDES, _SIDES, _SIDES[:-1]) if fits(*t))
    return min(_bytes(rows, columns, depth) for rows, columns, depth in tilings)


def _bytes(rows: int, columns: int, depth: int) -> float:
    tiled = roofline.tiled_matmul(8192, 4096, 8192, chips.V5E, rows=rows, columns=columns, depth=depth)
    return tiled.roofline.bytes


WRITTEN = (
    Check(
        key="profiling.split-vocabulary",
        title="Mend the sharding",
        answer=lambda: programs.right({"all-reduce X": 3 * 256 * 4}),
        kind="program",
        difficulty=2,
        hints=(
            "Which array does the program gather, and which line makes it do so?",
            "A maximum and a sum over a dimension that is split need one number of each row, not the row.",
        ),
        mistakes=(
            Mistake(
                lambda: programs.right({"all-gather X": (1, 64 * 2048 * 4)}),
                "The weights are gathered, and every device computes all logits. Let the logits stay split.",
            ),
        ),
        right="Right: of each token its maximum, its sum and one logit, and nothing else.",
    ),
    Check(
        key="profiling.global-norm",
        title="One number of all gradients",
        answer=lambda: programs.right({"all-reduce X": (1, 6 * 4)}),
        kind="program",
        difficulty=2,
        hints=(
            "What does joining the arrays ask of the devices?",
            "The square of a norm is a sum of squares, in whatever order.",
        ),
        right="Right: one all-reduce of a few bytes, for gradients of any size.",
    ),
    Check(
        key="profiling.one-collective",
        title="One collective a step",
        answer=lambda: programs.right({"all-gather X": (8, 8 * 256 * 4)}),
        kind="program",
        difficulty=3,
        hints=(
            "Each device needs all of the vector for the next step. What can it then work out by itself?",
            "If XLA gathers the matrix before the loop, write the step for one block: sharding.local.",
        ),
        mistakes=(
            Mistake(
                lambda: programs.right({"all-gather X": (8, 8 * 256 * 4), "all-reduce X": (8, 8 * 4)}),
                "Two collectives in each step, one after the other. Who has gathered the vector knows its "
                "norm.",
            ),
            Mistake(
                lambda: programs.right({"all-gather X": (1, 256 * 256 * 4)}),
                "One collective, and it gathers the matrix: every device then does all the work. Look at the "
                "bytes.",
            ),
        ),
        right="Right: half as many collectives, and each of them costs its hops.",
    ),
    Check(
        key="profiling.fewest-tile-bytes",
        title="The largest tiles",
        answer=least_traffic,
        unit="B",
        difficulty=3,
        rel_tol=0.01,
        hints=(
            "There are 7 · 7 · 6 tilings. Leave out those that do not fit, and take the least of the others.",
            "Each of the 8192/rows · 8192/columns tiles of Y reads its rows of X and its columns of W.",
            "In VMEM: two tiles of X, of W and of Y in bf16, and one of Y in fp32.",
        ),
        mistakes=(
            Mistake(
                lambda: least_traffic(buffers=1),
                "That needs more than there is: while one tile is computed, the next one comes.",
            ),
            Mistake(
                lambda: least_traffic(room=128 * MiB),
                "That is with all of VMEM. A kernel gets 16 MiB unless it asks for more.",
            ),
            Mistake(lambda: least_traffic() - 2 * 8192 * 8192, "The result has to be stored, once, in bf16."),
        ),
    ),
    Check(
        key="profiling.four-lengths",
        title="Four lengths",
        answer=least_padding,
        unit="tokens",
        difficulty=3,
        rel_tol=0.001,
        hints=(
            "A best length is always that of some sequence: any other could be shortened.",
            "Sort them. What do the first i sequences cost with k lengths, if you know it for all fewer?",
        ),
        mistakes=(
            Mistake(
                lambda: padded((128, 256, 512, 1024)),
                "Those are powers of two. There are better ones.",
                slip="wrong-formula-powers",
            ),
            Mistake(
                lambda: padded(tuple(LENGTHS[50 * k - 1] for k in (1, 2, 3, 4))),
                "A quarter of the sequences to each length: better, and not the best.",
                slip="wrong-formula-quartiles",
            ),
            Mistake(
                lambda: padded(tuple(max(LENGTHS) * k // 4 for k in (1, 2, 3, 4))),
                "Lengths in equal steps: there are better ones.",
            ),
            Mistake(lambda: least_padding(3), "That is with three lengths."),
            Mistake(lambda: least_padding(5), "That is with five lengths."),
        ),
    ),
)
