"""Checks of the exercises on sharding notation: what every chip holds."""

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
        title="Which sharding is valid?",
        answer=lambda: "A[I_YX, J_Z]",
        choices=("A[I_X, J_X]", "A[I_XY, J_Y]", "A[I_YX, J_Z]", "A[I_XX, J]"),
        hints=(
            "A chip has one coordinate along each mesh axis, which can select a shard of one dimension only.",
            "In three of the four, a mesh axis appears twice.",
        ),
        mistakes=(
            Mistake(
                "A[I_X, J_X]",
                "Chip x would hold block (x, x), and no chip would hold the blocks off the diagonal.",
                slip="wrong-option",
            ),
            Mistake("A[I_XY, J_Y]", "Y already shards I, so it cannot shard J too.", slip="wrong-option"),
            Mistake(
                "A[I_XX, J]",
                "X already shards I once, and it has no more chips to shard it again.",
                slip="wrong-option",
            ),
        ),
        right="Right: each mesh axis appears at most once, in any order.",
    ),
    Check(
        key="sharding.bytes-per-chip",
        title="Bytes per chip",
        answer=_held,
        unit="B",
        rel_tol=1e-6,
        chips=32,
        hints=(
            "Divide I by the size of X and J by the size of Z.",
            "An int8 element takes one byte. Y is not used, so it does not change the bytes per chip.",
        ),
        mistakes=(
            Mistake(
                lambda: _held("A[I_XY, J]"),
                "That is for A[I_XY, J], the sharding in the text.",
                slip="wrong-axis",
            ),
            Mistake(
                lambda: _held("A[I_XY, J_Z]"),
                "Y does not appear in the subscripts, so it shards nothing.",
                slip="axis-added",
            ),
            Mistake(
                lambda: _held("A[I_X, J]"),
                "Too large by a factor of two: J is sharded too, over Z, and an int8 element takes one byte.",
                slip="axis-left-out",
            ),
        ),
        right="Right. The eight chips along Y hold identical blocks.",
    ),
    Check(
        key="sharding.read-shard",
        title="Reading a shard from HBM",
        answer=lambda: _read_bytes() / chips.V5P.hbm_bytes_per_s,
        unit="s",
        chips=16,
        hints=(
            "How many rows of 4096 numbers does one chip hold, and how many bytes are that?",
            "The shard has exactly 2^20 bytes, which is 5% more than a million.",
        ),
        mistakes=(
            Mistake(
                lambda: _read_bytes() / 3.4e12,
                "That is for an HBM of 3.4 TB/s. The HBM of a v5p reads 2,765 GB/s.",
            ),
            Mistake(lambda: 1e6 / chips.V5P.hbm_bytes_per_s, "The shard has 2^20 bytes, not 10^6."),
            Mistake(
                lambda: _read_bytes("A[I_X, J]") / chips.V5P.hbm_bytes_per_s, "I is sharded over Y as well."
            ),
            Mistake(0.5, "An fp32 element takes four bytes."),
        ),
        right="Right. At this size, even a latency of one microsecond would take longer than the transfer.",
    ),
    Check(
        key="sharding.copies-stored",
        title="How many replicas are stored?",
        answer=_copies,
        rel_tol=1e-6,
        hints=(
            "Which mesh axes do not appear in the sharding?",
            "Chips that differ only in their coordinate along an unused axis hold identical shards.",
        ),
        mistakes=(
            Mistake(4, "All chips together hold that many shards. How many times does each shard occur?"),
            Mistake(
                0.25, "That is the number of different shards. On how many chips is each of them stored?"
            ),
        ),
        right="Right: the ratio is the product of the sizes of all unused axes.",
    ),
    Check(
        key="sharding.uneven-split",
        title="A thousand rows over sixteen chips",
        answer=lambda: notation.parse("A[I_X, J]").local_bytes(notation.Mesh(X=16), BF16, I=1000, J=4096),
        unit="B",
        rel_tol=1e-3,
        chips=16,
        hints=(
            "A chip cannot hold half a row.",
            "Round up the number of rows per chip. The last chip holds fewer rows, and padding.",
        ),
        mistakes=(
            Mistake(
                lambda: 1000 / 16 * 4096 * BF16.bytes,
                "That is the average. A chip holds whole rows.",
                slip="rounding",
            ),
            Mistake(
                lambda: 62 * 4096 * BF16.bytes,
                "Sixteen chips with that many rows hold fewer than a thousand.",
                slip="rounding",
            ),
        ),
        right="Right. The last chip holds only 55 rows.",
    ),
    Check(
        key="sharding.before-collectives",
        title="The result before any communication",
        answer=_unfinished,
        kind="notation",
        difficulty=2,
        hints=(
            "Each chip can sum only over its own part of J.",
            "The subscripts of I and K carry over. Over the mesh axis of J, the result is unreduced.",
        ),
        mistakes=(
            Mistake(
                "C[I_X, K_Z]",
                "Every chip has summed only over its own part of J, so the result is still unreduced over Y.",
            ),
            Mistake("C[I_X, K]{U_Y}", "The columns of B are sharded over Z, and nothing has gathered them."),
            Mistake(
                "C[I_X, K_Z]{U_J}",
                "U names the mesh axis over which the result is unreduced, not the dimension.",
            ),
            Mistake(
                "C[I_XY, K_Z]",
                "J does not appear in the result, so Y cannot shard it. What remains of it is a partial sum.",
            ),
        ),
        right="Right. An AllReduce or a ReduceScatter over Y completes it.",
    ),
    Check(
        key="sharding.between-shardings",
        title="Resharding in two steps",
        answer=_between,
        kind="notation",
        difficulty=2,
        hints=(
            "A chip can take a slice of what it already holds for free. Which subscript does that add?",
            "Slice first, so that there is less to gather.",
        ),
        mistakes=(
            Mistake(
                "A[I, J]",
                "Gathering first moves four times as many bytes, and then discards three quarters of them.",
                slip="gathered-first",
            ),
            Mistake(
                "A[I_XY, J]",
                "That is free as well, but then Y has to move from I to J, which takes another AllToAll.",
                slip="wrong-dimension",
            ),
            Mistake(
                "A[I, J_X]",
                "That takes an AllToAll, which costs more than it saves. Which step would be free?",
            ),
            Mistake(
                "A[I_Y, J]",
                "That permutes whole shards between chips and does not shard J.",
                slip="wrong-axis",
            ),
        ),
        right="Right: slicing over Y is free, and then only a quarter of the array is gathered over X.",
    ),
)
