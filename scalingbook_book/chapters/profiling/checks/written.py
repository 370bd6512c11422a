"""Checks on programs that fix what a profile shows, and on searches."""

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
    """Tokens of padding if every sequence is padded to the next of these lengths."""
    default_layout = tuple(sorted(default_layout))
    return sum(default_layout[bisect_left(default_layout, n)] - n for n in of)


@cache  # an answer and its mistakes are asked for at every judgement
def least_padding(lengths: int = 4, of: tuple[int, ...] = LENGTHS) -> int:
    """Tokens of padding with the best choice of this many lengths, each the length of some sequence."""

    @cache
    def best(sequences: int, left: int) -> int:
        if not sequences:
            return 0
        top = of[sequences - 1]
        starts = range(sequences) if left > 1 else (0,)
        return min(best(i, left - 1) + sum(top - n for n in of[i:sequences]) for i in starts)

    return best(len(of), lengths)


def least_traffic(*, buffers: int = 2, room: int = 16 * MiB) -> float:
    """The fewest bytes to and from HBM for [8192, 4096] · [4096, 8192], with tiles that fit in VMEM."""

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
        title="Fix the sharding",
        answer=lambda: programs.right({"all-reduce X": 3 * 256 * 4}),
        kind="program",
        difficulty=2,
        hints=(
            "Which array does the program gather, and which line causes that?",
            (
                "A maximum or a sum over a sharded dimension needs only one number per row from each "
                "device, not the row."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: programs.right({"all-gather X": (1, 64 * 2048 * 4)}),
                "The weights are gathered, and every device computes all logits. Keep the logits sharded.",
            ),
        ),
        right="Right. Only the maximum, the sum and one logit of each token are reduced.",
    ),
    Check(
        key="profiling.global-norm",
        title="The norm of all gradients",
        answer=lambda: programs.right({"all-reduce X": (1, 6 * 4)}),
        kind="program",
        difficulty=2,
        hints=(
            "What do the devices have to exchange to concatenate the arrays?",
            "The square of a norm is a sum of squares, and its order does not matter.",
        ),
        right="Right. One AllReduce of a few bytes is enough for gradients of any size.",
    ),
    Check(
        key="profiling.one-collective",
        title="One collective per step",
        answer=lambda: programs.right({"all-gather X": (8, 8 * 256 * 4)}),
        kind="program",
        difficulty=3,
        hints=(
            "Each device needs the whole vector for the next step. What can it then compute on its own?",
            (
                "If XLA gathers the matrix before the loop, write the step for one device's block with "
                "sharding.local."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: programs.right({"all-gather X": (8, 8 * 256 * 4), "all-reduce X": (8, 8 * 4)}),
                "Two collectives run in each step, one after the other. A device that has the whole "
                "vector can compute its norm on its own.",
            ),
            Mistake(
                lambda: programs.right({"all-gather X": (1, 256 * 256 * 4)}),
                "This is a single collective, but it gathers the matrix, so every device does all "
                "the work. Look at the bytes.",
            ),
        ),
        right="Right. Half as many collectives cost half as many hops.",
    ),
    Check(
        key="profiling.fewest-tile-bytes",
        title="Tiles with the least traffic",
        answer=least_traffic,
        unit="B",
        difficulty=3,
        rel_tol=0.01,
        hints=(
            "There are 7 · 7 · 6 tilings. Leave out those that do not fit, and take the best of the others.",
            (
                "There are 8192/rows · 8192/columns tiles of Y, and each reads its rows of X and its "
                "columns of W."
            ),
            "VMEM holds two tiles each of X, W and Y in bf16, and one tile of Y in fp32.",
        ),
        mistakes=(
            Mistake(
                lambda: least_traffic(buffers=1),
                (
                    "Those tiles do not fit, because there are two buffers: while one tile is computed, "
                    "the next one arrives."
                ),
            ),
            Mistake(
                lambda: least_traffic(room=128 * MiB),
                "You used all of VMEM. By default, a kernel gets only 16 MiB.",
            ),
            Mistake(
                lambda: least_traffic() - 2 * 8192 * 8192, "The result also has to be stored once, in bf16."
            ),
        ),
    ),
    Check(
        key="profiling.four-lengths",
        title="Four padded lengths",
        answer=least_padding,
        unit="tokens",
        difficulty=3,
        rel_tol=0.001,
        hints=(
            "Each of the best lengths is the length of some sequence, because any other could be shortened.",
            (
                "Sort the sequences. What do the first i of them cost with k lengths, if you know it for "
                "fewer sequences and lengths?"
            ),
        ),
        mistakes=(
            Mistake(
                lambda: padded((128, 256, 512, 1024)),
                "Those are powers of two. There are better choices.",
                slip="wrong-formula-powers",
            ),
            Mistake(
                lambda: padded(tuple(LENGTHS[50 * k - 1] for k in (1, 2, 3, 4))),
                "You gave a quarter of the sequences to each length. That is better, but not the best.",
                slip="wrong-formula-quartiles",
            ),
            Mistake(
                lambda: padded(tuple(max(LENGTHS) * k // 4 for k in (1, 2, 3, 4))),
                "You chose lengths in equal steps. There are better choices.",
            ),
            Mistake(lambda: least_padding(3), "That is with three lengths."),
            Mistake(lambda: least_padding(5), "That is with five lengths."),
        ),
    ),
)
