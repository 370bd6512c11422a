"""Checks on predictions of what a profile will show: times, bytes and padding, by hand."""

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
    """Seconds to reduce and scatter partial sums [16, 1024, 8192] in bf16 over a ring of four."""
    return collectives.reduce_scatter(BF16.bytes * 16 * 1024 * 8192, _RING).bandwidth_s


def _mfu(flops_per_parameter: int = 6) -> float:
    return flops_per_parameter * 8.03e9 * 2**20 / (2.9 * 64 * chips.V5P.bf16_flops_per_s)


def _columns(W: float = 2 * chips.V5E.link_bytes_per_s) -> float:
    """Columns of four devices, C/W for each: the FLOPs that it performs while one byte arrives."""
    return 4 * chips.V5E.bf16_flops_per_s / W


def _rows(links: int = 2) -> float:
    """Rows of X per chip for which X · W takes as long as receiving 7/8 of V, which is as large as W."""
    return chips.V5E.bf16_flops_per_s * 7 / 8 / (links * chips.V5E.link_bytes_per_s)


PREDICTED = (
    Check(
        key="profiling.padded-tile",
        title="A tile that is not full",
        answer=lambda: _TILED.bytes / _TILED.useful_bytes,
        rel_tol=0.01,
        hints=(
            (
                "How many tiles are side by side, and how many are one below the other? Only whole tiles "
                "are stored."
            ),
            "Round each side up to whole tiles: rows to a multiple of 8, columns to a multiple of 128.",
        ),
        mistakes=(
            Mistake(
                256 / 130 / _TILED.bytes * _TILED.useful_bytes, "Rows are padded too, to groups of eight."
            ),
            Mistake(
                24 / 20 / _TILED.bytes * _TILED.useful_bytes, "Columns are padded too, to groups of 128."
            ),
        ),
        right="Right. The compiler allocates the same number of bytes.",
    ),
    Check(
        key="profiling.predict-product",
        title="Predict, then look",
        answer=lambda: _QUERY_FLOPS / (4 * chips.V2.bf16_flops_per_s),
        unit="s",
        hints=(
            "How many tokens go in, and how many numbers come out for each token?",
            "Divide the FLOPs of the whole matmul by the FLOPs/s of all eight cores.",
        ),
        mistakes=(
            Mistake(
                0.5,
                (
                    "That is half of the answer. A multiply-add is two FLOPs, and the eight cores of 23 "
                    "TFLOPs/s each are on four chips."
                ),
                slip="factor-two-flops",
            ),
            Mistake(8.0, "That is the time of one core alone.", slip="total-for-one"),
            Mistake(1 / 1024, "A sequence has 1,024 tokens."),
            Mistake(
                1 / 32,
                "That is for one head, or for one sequence. There are 32 of each.",
                slip="one-for-total",
            ),
        ),
        right="Right. It is a quarter of the time of the wider matmul in the feed-forward layer.",
    ),
    Check(
        key="profiling.predict-allreduce",
        title="Predict a ReduceScatter",
        answer=_summed_s,
        unit="s",
        hints=(
            "How many bytes of partial sums does a core have to receive from the others?",
            "Over how many links do they arrive?",
        ),
        mistakes=(
            Mistake(
                2.0,
                (
                    "That is the time over a single link, or of an AllReduce. The bytes arrive over two "
                    "links, and a core keeps only a quarter of the sum."
                ),
            ),
            Mistake(4 / 3, "A core keeps its own partial sums of its quarter, so these do not travel."),
            Mistake(0.5, "An element of bf16 has two bytes, and the batch of 32 is sharded over two."),
            Mistake(
                1 / 3, "That is only one quarter. Each core receives partial sums in every hop of the ring."
            ),
        ),
        right="Right. For pairs of cores, it would be 1.12 ms, and the profile shows 1.13 ms.",
    ),
    Check(
        key="profiling.padded-argument",
        title="Read one line of HLO",
        answer=lambda: _TURNED.bytes,
        unit="B",
        rel_tol=0.005,
        hints=(
            (
                "The braces before the colon list the dimensions, starting with the one that varies "
                "fastest in memory."
            ),
            (
                "The dimension that is listed first runs along the 128 of the tile, and the other one "
                "along the 8."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: systolic.storage(4096, 129, BF16).bytes,
                "That would be {1,0}. With {0,1}, dimension 0 runs along the 128 lanes.",
                slip="wrong-dimension",
            ),
            Mistake(
                _TURNED.useful_bytes / _TURNED.bytes,
                "That is the size without padding. Which side has to be padded?",
                slip="padding-left-out",
            ),
        ),
        right="Right. With the transposed layout, the compiler saves nearly half of the memory.",
    ),
    Check(
        key="profiling.step-mfu",
        title="MFU of a training step",
        answer=_mfu,
        hints=(
            "How many FLOPs does the model need, and how many could the chips have performed in that time?",
            "A model needs six FLOPs per parameter per token, whatever else the hardware computed.",
        ),
        mistakes=(
            Mistake(
                lambda: _mfu(8),
                ("Recomputed FLOPs keep the hardware busy, but MFU counts only those that the model needs."),
            ),
            Mistake(
                lambda: _mfu(2),
                "That is the forward pass alone. The backward pass needs twice as many FLOPs.",
            ),
            Mistake(64.0, "Divide by what all 64 chips could have performed."),
        ),
    ),
    Check(
        key="profiling.reduced-then-cut",
        title="An AllReduce followed by a slice",
        answer=lambda: 2.0 * FP32.bytes / BF16.bytes,
        difficulty=2,
        rel_tol=0.01,
        hints=(
            (
                "An AllReduce consists of two other collectives, one after the other. Which of them are "
                "needed here?"
            ),
            "How many bytes does an element have in the plan, and how many in the program?",
        ),
        mistakes=(
            Mistake(
                0.5,
                (
                    "You found one of two causes. The data type is wider, and an AllReduce also gathers "
                    "what the program then slices off."
                ),
                slip="factor-two",
            ),
            Mistake(0.25, "Compare the data types, and ask what an AllReduce does besides reducing."),
            Mistake(
                2.0,
                "Each device receives (n − 1)/n of the array in the ReduceScatter, and the same amount "
                "in the AllGather. The later slice changes nothing about that.",
            ),
        ),
        right="Right. The number of devices does not matter.",
    ),
    Check(
        key="profiling.columns-to-hide",
        title="How many columns hide a transfer?",
        answer=_columns,
        unit="columns",
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "In each of the four steps, a device multiplies one chunk of A while the next one arrives.",
            "The rows of a chunk and J cancel. Compare the FLOPs per element of the chunk with its bytes.",
            "Chunks arrive from both neighbors, so two links bring them.",
        ),
        mistakes=(
            Mistake(
                lambda: _columns(chips.V5E.link_bytes_per_s),
                "That is for one link, but a device has two.",
                slip="one-direction",
            ),
            Mistake(
                0.25,
                "That is the number on each device. K is the number of columns on all four.",
                slip="one-for-total",
            ),
            Mistake(
                lambda: _columns(1.8 * chips.V5E.link_bytes_per_s),
                "You used 45 GB/s per link, which is 90% of the documented rate of 50 GB/s.",
            ),
        ),
    ),
    Check(
        key="profiling.rows-to-hide",
        title="How many rows hide an AllGather?",
        answer=_rows,
        unit="rows",
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "How many bytes of V does a chip still have to receive, and over how many links?",
            "D and F cancel, because both weights have the same number of elements.",
        ),
        mistakes=(
            Mistake(
                lambda: _rows(links=1),
                "That is the number for one link, but a chip receives over two.",
                slip="one-direction",
            ),
            Mistake(
                lambda: _rows() * 8 / 7,
                "An eighth of V is already on the chip and does not have to be sent.",
                slip="fraction-left-out",
            ),
            Mistake(
                8.0,
                "That is the number of rows in the whole batch. How many does one chip have?",
                slip="total-for-one",
            ),
        ),
        right="Right. The width of the layer does not matter.",
    ),
)
