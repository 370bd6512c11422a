"""Can a reader put a whole scheme together, and its gradient? Checks of the hardest programs."""

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
        title="A gradient that arrives scattered",
        answer=lambda: right({"all-gather X": (1, _WEIGHT), "reduce-scatter X": (1, _WEIGHT)}),
        kind="program",
        difficulty=3,
        hints=(
            "What is the gradient of a gather? Each device used the whole, and owns a part.",
            "Within `shard_map`, gather the weight in the function that is differentiated, not before.",
            "Differentiate the loss of the device's own tokens: the gradient sums over devices by itself.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-gather X": _WEIGHT, "all-reduce X": _WEIGHT}),
                "An all-reduce, of which a part is kept: twice the bytes of a scattered sum.",
            ),
        ),
        right="Right: the gradient of a gather is a scattered sum, and JAX knows it.",
    ),
    Check(
        key="jax.block-gradient",
        title="A block and its gradient",
        answer=lambda: _block(times=12),
        kind="program",
        difficulty=3,
        hints=(
            "First a gather, then a scattered sum, both taken apart. What lies between them never moves.",
            "Of a sum that ends on device i one half began on i + 1 and went right, the other on i - 1.",
            "`jax.vjp` of a function made by `jax.shard_map`: the gradient of a permute goes the other way.",
            "Keep what has arrived instead of asking for it once more; autodiff does so by itself.",
        ),
        mistakes=(
            Mistake(
                lambda: right(
                    {"all-gather Y": 8 * _CHUNK, "reduce-scatter Y": 8 * _CHUNK, "all-reduce X": _WEIGHTS}
                ),
                "Right, by two collectives each way, with nothing to hide them. Take them apart into hops.",
            ),
            Mistake(
                lambda: _block(times=6),
                "Right, by whole blocks. In each pass half of the links are idle: send halves to both sides.",
            ),
        ),
        right="Right: three hops each way for each of the four collectives, and one sum for both weights.",
    ),
    Check(
        key="jax.pipeline-stages",
        title="Stage by stage",
        answer=lambda: right({"collective-permute X": _TICKS * _BATCH}),
        kind="program",
        difficulty=3,
        hints=(
            "At every tick a stage works on what it has and passes it on; the first takes a new microbatch.",
            "How many ticks until the last microbatch has left the last stage?",
            "`lax.scan` over the ticks; the last stage's results from tick p - 1 on are the answer.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"collective-permute X": (18, 18 * _BATCH)}),
                "One microbatch after another: while it passes through, three of four stages are idle.",
            ),
            Mistake(
                lambda: right({"collective-permute X": (3, 18 * _BATCH)}),
                "The whole batch passes as one: at any time three of four stages wait. Send microbatches.",
            ),
        ),
        right="Right: six microbatches in nine ticks.",
    ),
    Check(
        key="jax.hosts-few-bytes",
        title="Few bytes between hosts",
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
            "X is slow and Y is fast: let as little as possible go over X.",
            "After which collective over Y does each chip have a quarter to sum over X?",
            "Scatter the sum over Y, all-reduce over X, gather over Y.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-reduce XY": _TOTAL}),
                "One all-reduce over all: what it sends between hosts is left to whoever implements it.",
            ),
            Mistake(
                lambda: right({"all-reduce Y": _TOTAL, "all-reduce X": _TOTAL}),
                "Four chips of a host send the same sum over X. A quarter from each would do.",
            ),
        ),
        right="Right: over the slow axis go a quarter of the bytes.",
    ),
    Check(
        key="jax.waits-for-credit",
        title="Who waits for credit?",
        answer=lambda: _waits(_RING, _BUFFERS),
        unit="hops",
        rel_tol=0,
        difficulty=3,
        hints=(
            "Hop h sends from buffer h mod 3 into the neighbor's buffer (h + 1) mod 3, for h = 0 to n - 2.",
            "Buffer 0 holds the chip's own block at the start, so it counts as used.",
        ),
        mistakes=(
            Mistake(lambda: _RING - 1, "The first hops write into buffers that nobody has used yet."),
            Mistake(
                lambda: _waits(_RING, _BUFFERS + 1),
                "One more: buffer 0 is in use from the start, with the chip's own block.",
            ),
            Mistake(
                lambda: _waits(_RING, _BUFFERS - 1),
                "One less: the first two hops fill buffers 1 and 2, which are free.",
            ),
        ),
    ),
)
