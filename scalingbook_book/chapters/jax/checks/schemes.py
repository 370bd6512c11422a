"""Checks of the hardest exercises: FSDP gradients, an MLP block in rings, pipelines, hosts, kernels."""

from scalingbook_book.chapters.jax.checks.rings import f32
from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_book.reader.checks.programs import ProgramVerdict, right

_WEIGHT = f32(16, 8)  # W[D, F] of the exercise on scattered gradients
_CHUNK, _WEIGHTS = f32(8, 4), f32(16, 8) + f32(8, 16)  # of the block: A[B_X, D_Y] on a device, its W and V
_STAGES, _MICROBATCHES, _BATCH = 4, 6, f32(4, 8)
_TICKS = _STAGES + _MICROBATCHES - 1
_TOTAL, _CHIPS = f32(64, 32), 4  # what is summed over hosts of four chips
_RING, _BUFFERS = 8, 3


def _waits(n: int, buffers: int) -> int:
    """The hops of a ring of n at which the neighbor's buffer has been used before."""
    return sum(hop + 1 >= buffers for hop in range(n - 1))


def _block(times: int) -> ProgramVerdict:
    """A block forward and backward: so many hops each way, which carry twelve chunks in all."""
    hops = {f"collective-permute Y {way}1": (times, 6 * _CHUNK) for way in "+-"}
    return right({**hops, "all-reduce X": _WEIGHTS})


SCHEMES = (
    Check(
        key="jax.scattered-gradient",
        title="The FSDP gradient: one ReduceScatter",
        answer=lambda: right({"all-gather X": (1, _WEIGHT), "reduce-scatter X": (1, _WEIGHT)}),
        kind="program",
        difficulty=3,
        hints=(
            "What is the gradient of an AllGather? Each device uses the whole array and owns one "
            "shard of it.",
            "Inside `shard_map`, gather the weight within the function that you differentiate, not "
            "before it.",
            "Differentiate the loss of the device's own tokens. The gradient then sums over devices "
            "by itself.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-gather X": _WEIGHT, "all-reduce X": _WEIGHT}),
                "You run an AllReduce and keep a part of its result, which moves twice the bytes of a "
                "ReduceScatter.",
            ),
        ),
        right="Right: the gradient of an AllGather is a ReduceScatter, and JAX derives it for you.",
    ),
    Check(
        key="jax.block-gradient",
        title="The gradient of an MLP block in rings",
        answer=lambda: _block(times=12),
        kind="program",
        difficulty=3,
        hints=(
            "Split the AllGather and the ReduceScatter into hops. The values computed between them "
            "never move.",
            "Of the sum that ends on device i, one half started on i + 1 and went right, the other on i - 1.",
            "Differentiate the function that `jax.shard_map` returns. The gradient of a permute is "
            "its reverse.",
            "The backward pass needs the gathered blocks again. Autodiff saves them for you.",
        ),
        mistakes=(
            Mistake(
                lambda: right(
                    {"all-gather Y": 8 * _CHUNK, "reduce-scatter Y": 8 * _CHUNK, "all-reduce X": _WEIGHTS}
                ),
                "Right, but with two collectives per pass that nothing can hide. Split them into hops.",
            ),
            Mistake(
                lambda: _block(times=6),
                "Right, but with whole blocks, so half of the links are idle. Send halves in both "
                "directions.",
            ),
        ),
        right="Right: three hops per direction for each of the four collectives, and one sum for both "
        "weights.",
    ),
    Check(
        key="jax.pipeline-stages",
        title="A pipeline in shard_map",
        answer=lambda: right({"collective-permute X": _TICKS * _BATCH}),
        kind="program",
        difficulty=3,
        hints=(
            "In every tick, a stage processes its input and passes it on. The first takes a new microbatch.",
            "After how many ticks has the last microbatch left the last stage?",
            "Use `lax.scan` over the ticks. The answer is what the last stage returns, starting at "
            "tick p - 1.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"collective-permute X": (18, 18 * _BATCH)}),
                "You process one microbatch at a time, so three of the four stages are always idle.",
            ),
            Mistake(
                lambda: right({"collective-permute X": (3, 18 * _BATCH)}),
                "You send the whole batch at once, so three of the four stages always wait. Send "
                "microbatches.",
            ),
        ),
        right="Right: six microbatches pass the four stages in nine ticks.",
    ),
    Check(
        key="jax.hosts-few-bytes",
        title="A hierarchical AllReduce over hosts",
        answer=lambda: right(
            {
                "reduce-scatter Y": (1, _TOTAL),
                "all-reduce X": (1, _TOTAL // _CHIPS),
                "all-gather Y": (1, _TOTAL),
            }
        ),
        kind="program",
        difficulty=3,
        hints=(
            "X is slow and Y is fast, so send as little as possible over X.",
            "Which collective over Y leaves each chip with a quarter of the array to reduce over X?",
            "Run a ReduceScatter over Y, an AllReduce over X, and an AllGather over Y.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-reduce XY": _TOTAL}),
                "With one AllReduce over both axes, the implementation decides how much it sends "
                "between hosts.",
            ),
            Mistake(
                lambda: right({"all-reduce Y": _TOTAL, "all-reduce X": _TOTAL}),
                "The four chips of a host send the same data over X. A quarter from each of them is enough.",
            ),
        ),
        right="Right: only a quarter of the bytes go over the slow axis.",
    ),
    Check(
        key="jax.waits-for-credit",
        title="Credits in a ring kernel",
        answer=lambda: _waits(_RING, _BUFFERS),
        unit="hops",
        rel_tol=0,
        difficulty=3,
        hints=(
            "Hop h sends from buffer h mod 3 to the neighbor's buffer (h + 1) mod 3, for h = 0 to n - 2.",
            "Buffer 0 holds the chip's own block at the start, so it counts as used.",
        ),
        mistakes=(
            Mistake(
                lambda: _RING - 1,
                "The first hops write into buffers that have not been used yet, so they do not wait.",
            ),
            Mistake(
                lambda: _waits(_RING, _BUFFERS + 1),
                "The answer is one hop more, because buffer 0 is in use from the start: it holds the "
                "chip's own block.",
            ),
            Mistake(
                lambda: _waits(_RING, _BUFFERS - 1),
                "The answer is one hop less, because the first two hops fill buffers 1 and 2, which are "
                "free.",
            ),
        ),
    ),
)
