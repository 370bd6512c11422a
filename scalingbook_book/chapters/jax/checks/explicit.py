"""Can a reader say where arrays are to lie, and leave the rest to the types? Checks on the mode Explicit."""

from scalingbook_book.chapters.jax.checks.rings import f32
from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_book.reader.checks.programs import right

_X, _Y = 2, 4
_B, _D, _F = 16, 16, 32
_TABLE = f32(32, 16)  # E[V, D_Y]
_SCORES = f32(16, 32)  # A[I_Y, J]
_QUERIES = f32(4 // _X, 8, 32)  # what a row of devices holds of Q[B_X, S, E_Y]

EXPLICIT = (
    Check(
        key="jax.choose-result",
        title="A sum that is completed",
        answer=lambda: right({"all-reduce Y": f32(_B // _X, _F)}),
        kind="program",
        hints=(
            "JAX refuses `x @ v` here, because it cannot know where you want the result.",
            'The argument `out_sharding` of `jnp.dot` says it: a `PartitionSpec` such as `P("X", None)`.',
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-gather Y": _Y * (f32(_B // _X, _D // _Y) + f32(_D // _Y, _F))}),
                "Both operands are gathered over Y. Leave them split, and say where the result is to lie.",
            ),
        ),
        right="Right: each device multiplies its part of D, and one all-reduce completes the sum.",
    ),
    Check(
        key="jax.softmax-columns",
        title="Split the other dimension first",
        answer=lambda: right({"all-to-all Y": _SCORES}),
        kind="program",
        difficulty=2,
        hints=(
            "A softmax over I needs all rows of a column. Which split gives a device whole columns?",
            "`reshard(a, P(None, 'Y'))` changes the split, with one all-to-all, before anything is summed.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-reduce Y": f32(32), "all-to-all Y": _SCORES}),
                "An all-reduce had to complete the sums of the columns. Change the split first.",
            ),
            Mistake(
                lambda: right({"all-gather Y": _SCORES}),
                "Every device receives the whole array, and keeps a quarter. Go to the other split directly.",
            ),
        ),
        right="Right: one all-to-all, and then every column is on one device.",
    ),
    Check(
        key="jax.explicit-block",
        title="An MLP with one all-reduce",
        answer=lambda: right({"all-reduce Y": f32(_B // _X, _D)}),
        kind="program",
        difficulty=2,
        hints=(
            "What is the type of `x @ w`? F is split over Y in it, and `tanh` does not change that.",
            "The second product contracts F, which is split in both operands: say where the result lies.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-gather Y": 2 * f32(_D, _F)}),
                "Both weights are gathered. With F split in both products, only their sum has to travel.",
            ),
            Mistake(
                lambda: right({"all-gather Y": f32(_B // _X, _F) + f32(_F, _D)}),
                "The hidden layer and V are gathered. With F split in both, only the sum has to travel.",
            ),
        ),
        right="Right: this is tensor parallelism, and the types follow from two of the three shardings.",
    ),
    Check(
        key="jax.embed-rows",
        title="A lookup that moves nothing",
        answer=lambda: right({}),
        kind="program",
        difficulty=2,
        hints=(
            "Every device has all rows of the table, and a quarter of the columns.",
            "`e.at[t].get(out_sharding=...)` looks rows up, and says how the result is split.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-gather Y": _TABLE}),
                "The table was gathered. Each device can look up its own columns of its own rows.",
            ),
        ),
        right="Right: rows of the result over X, columns over Y, and every device has what it needs.",
    ),
    Check(
        key="jax.split-heads",
        title="From a width to heads",
        answer=lambda: right({}),
        kind="program",
        difficulty=2,
        hints=(
            "The width of 32 is split over Y in four blocks of 8, and a head has 8 elements.",
            "`jnp.reshape(q, shape, out_sharding=P(...))` says which of the two new dimensions is split.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-gather Y": _QUERIES}),
                "The queries were gathered over Y. A device's block is one whole head: keep it split.",
            ),
        ),
        right="Right: a reshape that keeps blocks whole moves nothing.",
    ),
)
