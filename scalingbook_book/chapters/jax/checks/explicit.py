"""Checks of the exercises in explicit mode, where a program says how results are sharded."""

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
        title="Choose the output sharding",
        answer=lambda: right({"all-reduce Y": f32(_B // _X, _F)}),
        kind="program",
        hints=(
            "JAX refuses `x @ v` here, because it cannot know how you want the result to be sharded.",
            'Use the argument `out_sharding` of `jnp.dot`, with a `PartitionSpec` such as `P("X", None)`.',
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-gather Y": _Y * (f32(_B // _X, _D // _Y) + f32(_D // _Y, _F))}),
                "Both operands are gathered over Y. Leave them sharded, and choose the sharding of "
                "the result.",
            ),
        ),
        right="Right: each device multiplies its shard of D, and one AllReduce completes the sum.",
    ),
    Check(
        key="jax.softmax-columns",
        title="Softmax along a sharded dimension",
        answer=lambda: right({"all-to-all Y": _SCORES}),
        kind="program",
        difficulty=2,
        hints=(
            "A softmax over I needs all rows of a column. What sharding gives each device complete columns?",
            "`reshard(a, P(None, 'Y'))` changes the sharding with one AllToAll, before anything is summed.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-reduce Y": f32(32), "all-to-all Y": _SCORES}),
                "Your program needs an AllReduce to complete the sums of the columns. Change the "
                "sharding first.",
            ),
            Mistake(
                lambda: right({"all-gather Y": _SCORES}),
                "Every device receives the whole array and keeps only a quarter of it. Reshard it directly.",
            ),
        ),
        right="Right: after one AllToAll, every column is on a single device.",
    ),
    Check(
        key="jax.explicit-block",
        title="An MLP with one AllReduce",
        answer=lambda: right({"all-reduce Y": f32(_B // _X, _D)}),
        kind="program",
        difficulty=2,
        hints=(
            "What is the type of `x @ w`? Its dimension F is sharded over Y, and `tanh` keeps it that way.",
            "The second matmul contracts F, which is sharded in both operands: choose the output sharding.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-gather Y": 2 * f32(_D, _F)}),
                "Both weights are gathered. If F stays sharded in both matmuls, only the result has "
                "to be reduced.",
            ),
            Mistake(
                lambda: right({"all-gather Y": f32(_B // _X, _F) + f32(_F, _D)}),
                "The hidden layer and V are gathered. If F stays sharded, only the result has to be reduced.",
            ),
        ),
        right="Right: this is tensor parallelism, and one out_sharding is all that JAX needs to know.",
    ),
    Check(
        key="jax.embed-rows",
        title="An embedding lookup without communication",
        answer=lambda: right({}),
        kind="program",
        difficulty=2,
        hints=(
            "Every device has all rows of the table and a quarter of its columns.",
            "`e.at[t].get(out_sharding=...)` looks up rows and says how the result is sharded.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-gather Y": _TABLE}),
                "The table was gathered. Each device can look up its own columns of its own rows.",
            ),
        ),
        right="Right: with rows sharded over X and columns over Y, every device already has what it needs.",
    ),
    Check(
        key="jax.split-heads",
        title="Reshape a sharded width into heads",
        answer=lambda: right({}),
        kind="program",
        difficulty=2,
        hints=(
            "The width of 32 is sharded over Y into four blocks of 8, and a head has 8 elements.",
            "`jnp.reshape(q, shape, out_sharding=P(...))` says which of the two new dimensions is sharded.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-gather Y": _QUERIES}),
                "The queries were gathered over Y. The block of a device is one whole head, so keep "
                "them sharded.",
            ),
        ),
        right="Right: a reshape that keeps every block on its device moves no data.",
    ),
)
