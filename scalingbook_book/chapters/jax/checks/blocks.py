"""Checks of the warm-up exercises: what a sharded type means, and programs for one device's block."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_book.reader.checks.programs import right
from scalingbook_lib.notation import Mesh, parse
from scalingbook_lib.units import BF16

_MESH, _ROWS = Mesh(X=2, Y=4), {"I": 4096, "J": 8192}


_REFUSED = "x @ v"

TYPES = (
    Check(
        key="jax.bytes-of-copies",
        title="Memory of a replicated array",
        answer=lambda: parse("A[I, J_Y]").total_bytes(_MESH, BF16, **_ROWS),
        unit="B",
        rel_tol=0.005,  # 134 MB will do
        hints=(
            "How large is the block of one device, and how many devices are there?",
            "The array is replicated along every mesh axis that its type does not name.",
        ),
        mistakes=(
            Mistake(
                lambda: parse("A[I, J_Y]").global_bytes(BF16, **_ROWS),
                "That counts the array once. Which axis of the mesh does its type not name?",
            ),
            Mistake(
                lambda: parse("A[I, J_Y]").local_bytes(_MESH, BF16, **_ROWS),
                "That is one device's block, and each of the eight devices holds one.",
            ),
            Mistake(
                lambda: 8 * parse("A[I, J]").global_bytes(BF16, **_ROWS),
                "No device holds the whole array, because the dimension `8192@Y` is sharded over Y.",
            ),
            Mistake(2.0, "An element of bf16 takes two bytes."),
        ),
    ),
    Check(
        key="jax.type-to-notation",
        title="From a JAX type to the notation",
        answer=lambda: "A[I_YX, J]{U_Z}",
        kind="notation",
        hints=(
            "An axis after @ becomes a subscript. If there are two of them, their order matters.",
            "An axis in braces does not shard any dimension. Is the sum over it complete, or still pending?",
        ),
        mistakes=(
            Mistake(
                "A[I_XY, J]{U_Z}",
                "In (Y,X), Y comes first, so it varies slowest. Keep the order.",
                slip="axis-order",
            ),
            Mistake(
                "A[I_YX, J_Z]",
                "{U:Z} does not shard any dimension. It says that the array is unreduced: its sum over "
                "Z is pending.",
                slip="partial-sum-as-split",
            ),
            Mistake(
                "A[I_YX, J]",
                "The array is unreduced over Z, so the notation needs a {U_Z}: this sum is still pending.",
                slip="partial-sum-left-out",
            ),
            Mistake("A[I, J]{U_XYZ}", "Only Z appears after U. Y and X appear after @, so they shard I."),
        ),
    ),
    Check(
        key="jax.refused-line",
        title="Which line does JAX refuse?",
        answer=lambda: _REFUSED,
        choices=("x @ w", _REFUSED, "x.sum(axis=1)", "x + b", "x.T"),
        hints=(
            "JAX refuses a line if several results make sense and only you can say which one you want.",
            "In which line are both operands sharded along the contracting dimension?",
        ),
        mistakes=(
            Mistake(
                "x @ w",
                "Only x is sharded along the contracting dimension, so JAX gathers x over Y without asking. "
                "The line is allowed, but it is not cheap.",
            ),
            Mistake(
                "x.sum(axis=1)",
                "A sum over a sharded dimension has one obvious result: the complete sum, on all of Y.",
            ),
            Mistake(
                "x + b", "b is sharded like the dimension that it is added to, so nothing has to be decided."
            ),
            Mistake("x.T", "A transpose moves the mesh axes along with their dimensions."),
        ),
        right="Right: the result could be replicated, scattered or left unreduced, so JAX needs an "
        "out_sharding.",
    ),
)

BLOCKS = (
    Check(
        key="jax.shard-means",
        title="The mean of each shard",
        answer=lambda: right({}),
        kind="program",
        hints=(
            "Give the shards their own dimensions: the 8 rows are 2 shards of 4, and the 16 columns "
            "are 4 of 4.",
            'JAX refuses the reshape until `jnp.reshape(..., out_sharding=P("X", None, "Y", None))` says '
            "which dimensions are sharded.",
        ),
        right="Right, and no data moves between devices.",
    ),
    Check(
        key="jax.roll-in-shard",
        title="Roll the rows of each shard",
        answer=lambda: right({}),
        kind="program",
        hints=(
            "`jnp.roll` of the global array brings in rows of the neighbor. What does it do to one block?",
            "On global arrays: give the shards their own dimension, and roll along the other one.",
        ),
        right="Right: if rows stay within their shard, no data has to move between devices.",
    ),
)
