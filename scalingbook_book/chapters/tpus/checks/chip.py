"""What one figure of a datasheet means, and how busy one chip is.

Rates, pods, wraps and padding; the array as it fills, half-used arrays, chunks in a pipeline, weights in
VMEM.
"""

import math

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import roofline, rules
from scalingbook_lib.machines import Slice, chips, systolic
from scalingbook_lib.units import INT8

_POD = Slice.of(chips.V5P, "16x20x28")


def _hiding_depth(operations: int = 20) -> float:
    """The depth of a product that takes as long as so many vector operations on each of its elements."""
    return operations / (chips.V5P.vector_flops_per_s or 0) * chips.V5P.bf16_flops_per_s / 2


CHIP = (
    Check(
        key="tpus.decoding-floor",
        title="Enough chips for a decoding step",
        answer=lambda: math.ceil(120e9 / (4e-3 * chips.V5P.hbm_bytes_per_s)),
        unit="chips",
        hints=(
            "How many bytes does one chip read from its HBM in 4 ms?",
            "All chips read their shares at the same time. A fraction of a chip is a whole one.",
        ),
        mistakes=(
            Mistake(lambda: 22, "An int8 parameter is one byte, not two.", slip="wrong-dtype-size"),
            Mistake(lambda: 10, "With so many, a step takes longer than 4 ms: round up.", slip="rounding"),
            Mistake(
                lambda: math.ceil(120e9 / chips.V5P.hbm_bytes),
                "That many have room for the weights. They take longer than 4 ms to read them.",
            ),
        ),
        right="Right: the time sets the number of chips here, not the room.",
    ),
    Check(
        key="tpus.pod-peak",
        title="A whole pod",
        answer=_POD.flops_per_s,
        unit="FLOPs/s",
        chips=8960,
        hints=(
            "A shape is a product: how many chips are 16 by 20 by 28?",
            "The datasheet's 459 TFLOPs/s is for a chip, both of its cores together.",
        ),
        mistakes=(Mistake(2.0, "The 459 TFLOPs/s of the datasheet already count both cores of a chip."),),
    ),
    Check(
        key="tpus.mxu-over-vpu",
        title="The matrix units against the vector unit",
        answer=_hiding_depth,
        hints=(
            "How many FLOPs a second do the vector units of both cores do?",
            "20 operations at that rate against 2 D FLOPs at the rate of the matrix units.",
        ),
        mistakes=(
            Mistake(
                2.0,
                "Both cores have a vector unit, and a multiply-add is two FLOPs: is one of them left out?",
                slip="factor-two-flops",
            ),
            Mistake(4.0, "Each of the 8 × 128 places has four arithmetic units."),
            Mistake(1 / 20, "That is the depth for a single operation."),
        ),
        right="Right: activations hide behind deep products, and not behind shallow ones.",
    ),
    Check(
        key="tpus.all-rings",
        title="Which slice has rings only?",
        answer=lambda: "v4 4x4x4",
        choices=("v5e 8x16", "v5e 8x8", "v5p 2x4x4", "v4 4x4x4"),
        hints=(
            "An axis of a v5e wraps where it is 16 long.",
            "In three dimensions, slices of whole 4 × 4 × 4 cubes are closed by the optical switches.",
        ),
        mistakes=(
            Mistake("v5e 8x16", "Its axis of 16 wraps, its axis of 8 does not."),
            Mistake("v5e 8x8", "No axis of it is 16 long, so none wraps."),
            Mistake("v5p 2x4x4", "It is part of a cube, and a part of a cube has no way to the switches."),
        ),
    ),
    Check(
        key="tpus.one-column-over",
        title="One column too many",
        answer=lambda: systolic.storage(4096, 129).bytes,
        unit="B",
        hints=(
            "Memory is filled in tiles of 8 rows and 128 columns.",
            "How many columns do two tiles have?",
        ),
        mistakes=(
            Mistake(
                lambda: systolic.storage(4096, 129).useful_bytes,
                "That is what the elements need, without padding.",
                slip="padding-left-out",
            ),
        ),
    ),
)


def _scores() -> systolic.Padding:
    return systolic.padding(4096, 128, 4096, 256)


def _chunks(n: int = 32) -> roofline.CopyPipeline:
    rows, D, F = 16384 // n, 256, 8192
    stages = {
        "read": 2 * rows * D / chips.V5E.hbm_bytes_per_s,
        "multiply": 2 * rows * D * F / chips.V5E.bf16_flops_per_s,
        "write": 2 * rows * F / chips.V5E.hbm_bytes_per_s,
    }
    return roofline.pipeline(stages, n)


def _batch(bytes_per_s: float | None) -> float:
    return rules.matmul_critical_batch(4096, 16384, chips.V5E, INT8, bytes_per_s=bytes_per_s)


INSIDE = (
    Check(
        key="tpus.rows-to-fill",
        title="Rows that fill an array",
        answer=lambda: systolic.rows_for(0.75, 256),
        unit="rows",
        difficulty=2,
        hints=(
            "From the first multiplication to the last result, B rows take B + 2t − 2 cycles.",
            "A cell works in B of these cycles. Set the share to 0.75 and solve for B.",
        ),
        mistakes=(
            Mistake(lambda: 3 * 255, "The array has to fill and to drain: 2t − 2 cycles, not t − 1."),
            Mistake(lambda: systolic.rows_for(0.9, 256), "That is for 90% of the cycles."),
            Mistake(lambda: 3 * (3 * 256 - 2), "The weights are in place: loading does not count."),
        ),
        right=(
            "Right. Tiles that follow each other share one filling and one draining, so a large "
            "product needs far fewer rows for each tile."
        ),
    ),
    Check(
        key="tpus.half-heads",
        title="Heads of 128 on an array of 256",
        answer=lambda: _scores().performed_flops / chips.V6E.bf16_flops_per_s,
        unit="s",
        difficulty=2,
        hints=(
            "Kᵀ is the stationary matrix: [128, 4096]. Which part of a tile of 256 × 256 does it fill?",
            "The array does the same work whether its lower half holds zeros or weights.",
        ),
        mistakes=(
            Mistake(
                lambda: _scores().useful_flops / chips.V6E.bf16_flops_per_s,
                "That is the time of the useful FLOPs; the contraction fills half of each tile.",
            ),
            Mistake(2.0, "Only the contraction is too short for the array; the 4,096 columns fill theirs."),
        ),
    ),
    Check(
        key="tpus.chunked-product",
        title="Thirty-two chunks",
        answer=lambda: _chunks().total_s,
        unit="s",
        difficulty=2,
        rel_tol=0.005,
        hints=(
            "What are the three times of one chunk?",
            (
                "The first chunk passes all three stages; each later one ends one slowest stage "
                "after the one before."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: _chunks().upper_s,
                "That is without overlap: every chunk through all stages before the next.",
                slip="sum-for-max",
            ),
            Mistake(
                lambda: _chunks().lower_s,
                (
                    "That is the slowest stage alone; the first chunk's reading and the last one's "
                    "writing are not hidden."
                ),
                slip="term-left-out",
            ),
        ),
        right="Right: the slowest stage sets the pace, and the rest is paid once.",
    ),
    Check(
        key="tpus.weights-in-vmem",
        title="Weights that stay in VMEM",
        answer=lambda: _batch(chips.V5E.vmem_bytes_per_s),
        unit="tokens",
        difficulty=2,
        rel_tol=0.03,
        hints=(
            "Time of the bytes equals time of the OPs. Both grow with B, the bytes of the weights do not.",
            "Only the bandwidth changes: 18 TB/s in place of 819 GB/s.",
        ),
        mistakes=(
            Mistake(lambda: _batch(None), "That is with the weights in HBM."),
            Mistake(
                2.0,
                (
                    "Int8 does 394 TOPs/s, and an element is one byte: of the two factors of two, "
                    "one is missing."
                ),
            ),
        ),
    ),
)
