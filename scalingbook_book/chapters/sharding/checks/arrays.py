"""What does every chip hold, and what does a sharding say? The exercises on the notation."""

from functools import cache

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import notation
from scalingbook_lib.collectives.resharding import Rings, reshard
from scalingbook_lib.machines import chips
from scalingbook_lib.sharded_matmul import solve
from scalingbook_lib.units import BF16, FP32, INT8

_MESH = notation.Mesh(X=2, Y=8, Z=2)


def _held(text: str = "A[I_X, J_Z]") -> float:
    return notation.parse(text).local_bytes(_MESH, INT8, I=128, J=2048)


def _read_bytes(text: str = "A[I_XY, J]") -> float:
    return notation.parse(text).local_bytes(notation.Mesh(X=8, Y=2), FP32, I=1024, J=4096)


def _copies() -> float:
    """Bytes on all chips over the bytes of the array, with I over X of a 4 × 8 × 2 mesh."""
    mesh, array = notation.Mesh(X=4, Y=8, Z=2), notation.parse("A[I_X, J]")
    return array.total_bytes(mesh, BF16, I=64, J=64) / (BF16.bytes * 64 * 64)


@cache
def _unfinished() -> str:
    cube = Rings(chips.V4, X=4, Y=4, Z=4)
    found = solve("A[I_X, J_Y] · B[J_Y, K_Z] -> C[I_X, K_Z]", cube, {"I": 4096, "J": 4096, "K": 4096})
    return found.named("all-reduce C over Y").local.c.canonical()


@cache
def _between() -> str:
    way = reshard("A[I_X, J]", "A[I, J_Y]", Rings(chips.V4, X=4, Y=4), {"I": 4096, "J": 8192})
    return way.best.moves[0].after.canonical()


ARRAYS = (
    Check(
        key="sharding.valid-sharding",
        title="Which one can exist?",
        answer=lambda: "A[I_YX, J_Z]",
        choices=("A[I_X, J_X]", "A[I_XY, J_Y]", "A[I_YX, J_Z]", "A[I_XX, J]"),
        hints=(
            "A chip has one place along each mesh axis, and it can say which piece of one dimension is held.",
            "In three of the four, one axis is used twice.",
        ),
        mistakes=(
            Mistake(
                "A[I_X, J_X]",
                "Chip x would hold block (x, x), and nobody the blocks beside the diagonal.",
                slip="wrong-option",
            ),
            Mistake("A[I_XY, J_Y]", "Y already cuts I, so it cannot cut J too.", slip="wrong-option"),
            Mistake("A[I_XX, J]", "X has been used up by cutting I once.", slip="wrong-option"),
        ),
        right="Right: every axis at most once, in any order.",
    ),
    Check(
        key="sharding.bytes-per-chip",
        title="What one chip holds",
        answer=_held,
        unit="B",
        rel_tol=1e-6,
        chips=32,
        hints=(
            "Divide I by the size of X and J by the size of Z.",
            "int8 takes one byte an element. Y is not used, and changes nothing for one chip.",
        ),
        mistakes=(
            Mistake(
                lambda: _held("A[I_XY, J]"),
                "That is A[I_XY, J], the sharding of the text.",
                slip="wrong-axis",
            ),
            Mistake(
                lambda: _held("A[I_XY, J_Z]"),
                "Y is not in the subscripts, so it cuts nothing.",
                slip="axis-added",
            ),
            Mistake(
                lambda: _held("A[I_X, J]"),
                "Twice too much: J is cut too, over Z, and int8 takes one byte.",
                slip="axis-left-out",
            ),
        ),
        right="Right: eight chips along Y hold the same block.",
    ),
    Check(
        key="sharding.read-shard",
        title="Reading one's own part",
        answer=lambda: _read_bytes() / chips.V5P.hbm_bytes_per_s,
        unit="s",
        chips=16,
        hints=(
            "How many rows of 4096 numbers does one chip hold, and how many bytes are they?",
            "The part takes exactly 2^20 bytes, which is 5% more than a million.",
        ),
        mistakes=(
            Mistake(
                lambda: _read_bytes() / 3.4e12,
                "That is the memory of the text's quiz, 3.4 TB/s. This is a v5p.",
            ),
            Mistake(lambda: 1e6 / chips.V5P.hbm_bytes_per_s, "The part is 2^20 bytes, not 10^6."),
            Mistake(lambda: _read_bytes("A[I_X, J]") / chips.V5P.hbm_bytes_per_s, "Y cuts I as well."),
            Mistake(0.5, "fp32 takes four bytes an element."),
        ),
        right="Right. At this size even a microsecond of latency would be longer.",
    ),
    Check(
        key="sharding.copies-stored",
        title="How many times is it stored?",
        answer=_copies,
        rel_tol=1e-6,
        hints=(
            "Which axes does the sharding not mention?",
            "Chips that differ only in their place along an unused axis hold the same.",
        ),
        mistakes=(
            Mistake(4, "All chips together hold that many shards. How many times does each shard occur?"),
            Mistake(0.25, "That is the number of pieces."),
        ),
        right="Right: the product of the sizes of the axes that are not used.",
    ),
    Check(
        key="sharding.uneven-split",
        title="A thousand rows over sixteen chips",
        answer=lambda: notation.parse("A[I_X, J]").local_bytes(notation.Mesh(X=16), BF16, I=1000, J=4096),
        unit="B",
        rel_tol=1e-3,
        chips=16,
        hints=(
            "No chip holds half a row.",
            "Round up the number of rows of one chip; the last chip holds fewer, and padding.",
        ),
        mistakes=(
            Mistake(
                lambda: 1000 / 16 * 4096 * BF16.bytes,
                "That is the mean. A chip holds whole rows.",
                slip="rounding",
            ),
            Mistake(
                lambda: 62 * 4096 * BF16.bytes,
                "Sixteen times that many rows are fewer than a thousand.",
                slip="rounding",
            ),
        ),
        right="Right, and the last chip has 55 rows where the others are full.",
    ),
    Check(
        key="sharding.before-collectives",
        title="Before anything moves",
        answer=_unfinished,
        kind="notation",
        difficulty=2,
        hints=(
            "Each chip has complete rows and columns of its blocks only for its own part of J.",
            "I and K carry over their subscripts. The axis of J becomes a sum that is not finished.",
        ),
        mistakes=(
            Mistake(
                "C[I_X, K_Z]", "Every chip has summed over its own part of J alone: a sum over Y is owed."
            ),
            Mistake("C[I_X, K]{U_Y}", "B's columns are cut over Z, and nobody has gathered them."),
            Mistake(
                "C[I_X, K_Z]{U_J}", "U names the mesh axis whose chips hold the parts, not the dimension."
            ),
            Mistake("C[I_XY, K_Z]", "J is gone from the result, and Y with it; what it leaves is a sum."),
        ),
        right="Right. An AllReduce or a ReduceScatter over Y finishes it.",
    ),
    Check(
        key="sharding.between-shardings",
        title="Half-way between two shardings",
        answer=_between,
        kind="notation",
        difficulty=2,
        hints=(
            "Taking a slice of what one already holds is free. Which subscript can be added for nothing?",
            "Slice first: then there is less to gather.",
        ),
        mistakes=(
            Mistake(
                "A[I, J]",
                "Gathering first moves four times as much, and throws three quarters of it away.",
                slip="gathered-first",
            ),
            Mistake(
                "A[I_XY, J]",
                "Free as well, but then Y has to move from I to J: an AllToAll more.",
                slip="wrong-dimension",
            ),
            Mistake("A[I, J_X]", "That is an AllToAll, and it costs more than what it saves. What is free?"),
            Mistake(
                "A[I_Y, J]",
                "That permutes whole shards between chips, and leaves J as it was.",
                slip="wrong-axis",
            ),
        ),
        right="Right: cut over Y for nothing, then gather a quarter of the array over X.",
    ),
)
