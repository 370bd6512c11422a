"""Can a reader say what a sharded type means, and write what one device does? Checks of warm-ups."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_book.reader.checks.programs import right
from scalingbook_lib.notation import Mesh, parse
from scalingbook_lib.units import BF16

_MESH, _ROWS = Mesh(X=2, Y=4), {"I": 4096, "J": 8192}


_REFUSED = "x @ v"

TYPES = (
    Check(
        key="jax.bytes-of-copies",
        title="Every copy counted",
        answer=lambda: parse("A[I, J_Y]").total_bytes(_MESH, BF16, **_ROWS),
        unit="B",
        rel_tol=0.005,  # 134 MB will do
        hints=(
            "What is the block of one device, and how many devices are there?",
            "An axis that the type does not name holds copies.",
        ),
        mistakes=(
            Mistake(
                lambda: parse("A[I, J_Y]").global_bytes(BF16, **_ROWS),
                "That is the array once. Which axis of the mesh does its type not name?",
            ),
            Mistake(
                lambda: parse("A[I, J_Y]").local_bytes(_MESH, BF16, **_ROWS),
                "That is one device's block; all eight devices have one.",
            ),
            Mistake(
                lambda: 8 * parse("A[I, J]").global_bytes(BF16, **_ROWS),
                "No device has the whole array: `8192@Y` is split over Y.",
            ),
            Mistake(2.0, "An element of bf16 takes two bytes."),
        ),
    ),
    Check(
        key="jax.type-to-notation",
        title="From JAX's type to the notation",
        answer=lambda: "A[I_YX, J]{U_Z}",
        kind="notation",
        hints=(
            "An axis after @ is a subscript; with two of them, their order counts.",
            "What stands in braces splits nothing: is it a sum that is owed, or one that is complete?",
        ),
        mistakes=(
            Mistake(
                "A[I_XY, J]{U_Z}",
                "(Y,X): Y is named first, so it varies slowest. Keep the order.",
                slip="axis-order",
            ),
            Mistake(
                "A[I_YX, J_Z]",
                "{U:Z} splits no dimension. What is unreduced is a sum that is owed.",
                slip="partial-sum-as-split",
            ),
            Mistake(
                "A[I_YX, J]",
                "Over Z a sum is still owed, and the notation says so, too.",
                slip="partial-sum-left-out",
            ),
            Mistake("A[I, J]{U_XYZ}", "Only Z stands behind U; Y and X stand behind @, and split I."),
        ),
    ),
    Check(
        key="jax.refused-line",
        title="Which line is refused?",
        answer=lambda: _REFUSED,
        choices=("x @ w", _REFUSED, "x.sum(axis=1)", "x + b", "x.T"),
        hints=(
            "JAX refuses where there are several good answers, and only you can say which one you want.",
            "In which line is the dimension that is summed away split in both operands?",
        ),
        mistakes=(
            Mistake(
                "x @ w",
                "Only x is split in the contracted dimension, so JAX gathers x over Y without asking. "
                "That it is allowed does not make it cheap.",
            ),
            Mistake(
                "x.sum(axis=1)", "A sum over a split dimension has one usual result, complete on all of Y."
            ),
            Mistake("x + b", "b is split as the dimension that it is added to: nothing has to be decided."),
            Mistake("x.T", "The axes go along with their dimensions."),
        ),
        right="Right: the sum could be completed, scattered or left owed, so say it with out_sharding.",
    ),
)

BLOCKS = (
    Check(
        key="jax.shard-means",
        title="The mean of each shard",
        answer=lambda: right({}),
        kind="program",
        hints=(
            "Give the shards dimensions of their own: the 8 rows are 2 shards of 4, the 16 columns 4 of 4.",
            'JAX refuses the reshape until `jnp.reshape(..., out_sharding=P("X", None, "Y", None))` says '
            "which dimensions are split.",
        ),
        right="Right, and nothing is moved between devices.",
    ),
    Check(
        key="jax.roll-in-shard",
        title="Round and round in the shard",
        answer=lambda: right({}),
        kind="program",
        hints=(
            "`jnp.roll` of the whole array brings rows of the neighbor. What is it for one device's block?",
            "For whole arrays: give the shards a dimension of their own, and roll along the other one.",
        ),
        right="Right: within a shard nothing has to move between devices.",
    ),
)
