"""Can a reader say beforehand what a profile will show? Times, bytes and padding, by hand."""

from dataclasses import replace

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import collectives
from scalingbook_lib.machines import chips, systolic
from scalingbook_lib.units import BF16, FP32

_TILED = systolic.storage(20, 130, FP32)
_TURNED = systolic.storage(129, 4096, BF16)  # as {0,1} stores [4096, 129]
_RING = replace(chips.V2.axis(4, wrapped=True), link_bytes_per_s=60e9)
_QUERY_FLOPS = 2 * 32 * 1024 * 8192 * (32 * 256)


def _summed_s() -> float:
    """The partial sums of a core, [16, 1024, 8192] in bf16, scattered over a ring of four."""
    return collectives.reduce_scatter(BF16.bytes * 16 * 1024 * 8192, _RING).bandwidth_s


def _mfu(flops_per_parameter: int = 6) -> float:
    return flops_per_parameter * 8.03e9 * 2**20 / (2.9 * 64 * chips.V5P.bf16_flops_per_s)


def _columns(W: float = 2 * chips.V5E.link_bytes_per_s) -> float:
    """Four devices' columns, each as many as FLOPs are done while a byte arrives."""
    return 4 * chips.V5E.bf16_flops_per_s / W


def _rows(links: int = 2) -> float:
    """A chip's rows of X for which X · W takes as long as 7/8 of as large a V take to come."""
    return chips.V5E.bf16_flops_per_s * 7 / 8 / (links * chips.V5E.link_bytes_per_s)


PREDICTED = (
    Check(
        key="profiling.padded-tile",
        title="A tile that is not full",
        answer=lambda: _TILED.bytes / _TILED.useful_bytes,
        rel_tol=0.01,
        hints=(
            "How many tiles lie side by side, and how many one below the other? None is stored in part.",
            "Round each side up to whole tiles: rows to eights, columns to 128.",
        ),
        mistakes=(
            Mistake(256 / 130 / _TILED.bytes * _TILED.useful_bytes, "Rows come in eights, too."),
            Mistake(24 / 20 / _TILED.bytes * _TILED.useful_bytes, "Columns come in groups of 128, too."),
        ),
        right="Right. And the compiler stores as many bytes.",
    ),
    Check(
        key="profiling.predict-product",
        title="Predict, then look",
        answer=lambda: _QUERY_FLOPS / (4 * chips.V2.bf16_flops_per_s),
        unit="s",
        hints=(
            "How many tokens go in, and how many numbers come out for each?",
            "FLOPs of the whole product over the FLOPs/s of all eight cores.",
        ),
        mistakes=(
            Mistake(
                0.5,
                "Half of it. A multiply-add is two FLOPs, and eight cores of 23 TFLOPs/s are four chips.",
                slip="factor-two-flops",
            ),
            Mistake(8.0, "That is what one core alone would take.", slip="total-for-one"),
            Mistake(1 / 1024, "A sequence has 1,024 tokens."),
            Mistake(1 / 32, "That is one head, or one sequence; there are 32 of both.", slip="one-for-total"),
        ),
        right="Right: a quarter of what the wider product of the feed-forward layer takes.",
    ),
    Check(
        key="profiling.predict-allreduce",
        title="A sum, predicted",
        answer=_summed_s,
        unit="s",
        hints=("How much of the others' partial sums does a core have to take in?", "Over how many links?"),
        mistakes=(
            Mistake(
                2.0,
                "So long over one link, or for an AllReduce. Two links bring it, and a core keeps a quarter.",
            ),
            Mistake(
                4 / 3, "A quarter of the sum is the core's own: its partial sums of that quarter stay here."
            ),
            Mistake(0.5, "An element of bf16 is two bytes; and the batch of 32 is split two ways."),
            Mistake(1 / 3, "That is one quarter. Each core takes in partial sums for every hop of the ring."),
        ),
        right="Right. For pairs it would be 1.12 ms, and the profile shows 1.13 ms.",
    ),
    Check(
        key="profiling.padded-argument",
        title="One line, taken apart",
        answer=lambda: _TURNED.bytes,
        unit="B",
        rel_tol=0.005,
        hints=(
            "The braces before the colon name dimensions, the one whose neighbors lie side by side first.",
            "The dimension that is named first lies along the tile's 128, the other along its 8.",
        ),
        mistakes=(
            Mistake(
                lambda: systolic.storage(4096, 129, BF16).bytes,
                "That is {1,0}. With {0,1} it is dimension 0 that lies along the 128 lanes.",
                slip="wrong-dimension",
            ),
            Mistake(
                _TURNED.useful_bytes / _TURNED.bytes,
                "That is without padding. Which side has to grow?",
                slip="padding-left-out",
            ),
        ),
        right="Right: by turning it round the compiler saves nearly half of it.",
    ),
    Check(
        key="profiling.step-mfu",
        title="Utilization of a step",
        answer=_mfu,
        hints=(
            "What does the model need, and what could the chips have done in that time?",
            "A model's FLOPs are six for each parameter and token, whatever the hardware did besides.",
        ),
        mistakes=(
            Mistake(
                lambda: _mfu(8),
                "What is computed again keeps the hardware busy, and is no FLOP of the model.",
            ),
            Mistake(lambda: _mfu(2), "That is the forward pass; the backward pass takes twice as much."),
            Mistake(64.0, "Divide by what all 64 chips could have done."),
        ),
    ),
    Check(
        key="profiling.reduced-then-cut",
        title="Summed, then cut",
        answer=lambda: 2.0 * FP32.bytes / BF16.bytes,
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "An AllReduce is two other collectives, one after the other. How many of them are needed?",
            "And how many bytes has an element, in each program?",
        ),
        mistakes=(
            Mistake(
                0.5,
                "One of two causes. The type is wider, and an AllReduce gathers what the program then cuts.",
                slip="factor-two",
            ),
            Mistake(0.25, "Look at the types of both, and at what an AllReduce does beside adding."),
            Mistake(
                2.0,
                "Each device receives (n − 1)/n of the array in a ReduceScatter, and the same again for the "
                "gather: what is cut off later does not multiply it.",
            ),
        ),
        right="Right, whatever the number of devices.",
    ),
    Check(
        key="profiling.columns-to-hide",
        title="From how many columns on?",
        answer=_columns,
        unit="columns",
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "In each of four steps a device multiplies a chunk of A, and the next one comes.",
            "The rows and J of a chunk cancel: FLOPs per column and element, over bytes per element.",
            "Chunks come from both sides, so two links bring them.",
        ),
        mistakes=(
            Mistake(
                lambda: _columns(chips.V5E.link_bytes_per_s),
                "One link brings that; a device has two.",
                slip="one-direction",
            ),
            Mistake(
                0.25, "So many on each device; asked is K, the columns of all four.", slip="one-for-total"
            ),
            Mistake(
                lambda: _columns(1.8 * chips.V5E.link_bytes_per_s),
                "That is with 45 GB/s a link, 90% of it. The documented rate is 50.",
            ),
        ),
    ),
    Check(
        key="profiling.rows-to-hide",
        title="How many rows hide a gather?",
        answer=_rows,
        unit="rows",
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "How many bytes of V does a chip not have yet, and over how many links do they come?",
            "D and F cancel: both weights have as many elements.",
        ),
        mistakes=(
            Mistake(
                lambda: _rows(links=1),
                "Over one link it takes so many; a chip receives over two.",
                slip="one-direction",
            ),
            Mistake(
                lambda: _rows() * 8 / 7,
                "An eighth of V is there already, and need not come.",
                slip="fraction-left-out",
            ),
            Mistake(
                8.0, "So many rows has the whole batch; asked are those of one chip.", slip="total-for-one"
            ),
        ),
        right="Right, and no width of the layer changes it.",
    ),
)
