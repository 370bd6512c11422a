"""Checks of the exercises on one chip: what a number of a datasheet means, and how busy the chip is.

They cover rates, pods, wraparound links and padding; the fill time of the systolic array, half-used arrays,
chunks in a pipeline, and weights in VMEM.
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
        title="Enough chips for a decode step",
        answer=lambda: math.ceil(120e9 / (4e-3 * chips.V5P.hbm_bytes_per_s)),
        unit="chips",
        hints=(
            "How many bytes does one chip read from its HBM in 4 ms?",
            "All chips read their shards at the same time. Round the number of chips up.",
        ),
        mistakes=(
            Mistake(lambda: 22, "An int8 parameter is one byte, not two.", slip="wrong-dtype-size"),
            Mistake(
                lambda: 10,
                "With that many chips, a step takes slightly longer than 4 ms, so round up.",
                slip="rounding",
            ),
            Mistake(
                lambda: math.ceil(120e9 / chips.V5P.hbm_bytes),
                "That many chips can store the weights, but reading them takes longer than 4 ms.",
            ),
        ),
        right="Right: here bandwidth decides how many chips are needed, not capacity.",
    ),
    Check(
        key="tpus.pod-peak",
        title="The peak of a whole pod",
        answer=_POD.flops_per_s,
        unit="FLOPs/s",
        chips=8960,
        hints=(
            "How many chips does a torus of 16 × 20 × 28 have?",
            "The datasheet's 459 TFLOPs/s are for a chip, with both of its cores.",
        ),
        mistakes=(Mistake(2.0, "The datasheet's 459 TFLOPs/s already count both cores of a chip."),),
    ),
    Check(
        key="tpus.mxu-over-vpu",
        title="The matrix units against the vector unit",
        answer=_hiding_depth,
        hints=(
            "How many FLOPs/s do the vector units of both cores perform?",
            "Compare 20 operations at that rate with 2 D FLOPs at the rate of the matrix units.",
        ),
        mistakes=(
            Mistake(
                2.0,
                "Both cores have a vector unit, and a multiply-add is two FLOPs. Is one of these missing?",
                slip="factor-two-flops",
            ),
            Mistake(4.0, "There are four ALUs for each of the 8 × 128 elements."),
            Mistake(1 / 20, "That is the answer for a single vector operation per element."),
        ),
        right="Right: activation functions hide behind a matmul only if its contracting dimension is large.",
    ),
    Check(
        key="tpus.all-rings",
        title="Which slice has only rings?",
        answer=lambda: "v4 4x4x4",
        choices=("v5e 8x16", "v5e 8x8", "v5p 2x4x4", "v4 4x4x4"),
        hints=(
            "An axis of a v5e slice is a ring if it is 16 long.",
            "On v4 and v5p, optical switches turn every slice of whole 4 × 4 × 4 cubes into a torus.",
        ),
        mistakes=(
            Mistake("v5e 8x16", "Its axis of 16 is a ring, but its axis of 8 is not."),
            Mistake("v5e 8x8", "None of its axes is 16 long, so none is a ring."),
            Mistake(
                "v5p 2x4x4", "It is only a part of a cube, and a part of a cube has no wraparound links."
            ),
        ),
    ),
    Check(
        key="tpus.one-column-over",
        title="One column too many",
        answer=lambda: systolic.storage(4096, 129).bytes,
        unit="B",
        hints=(
            "An array in memory consists of whole tiles of 8 rows and 128 columns.",
            "How many columns do two tiles have?",
        ),
        mistakes=(
            Mistake(
                lambda: systolic.storage(4096, 129).useful_bytes,
                "That is what the elements take without padding.",
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
            "Each cell is busy in B of these cycles. Set the fraction to 0.75 and solve for B.",
        ),
        mistakes=(
            Mistake(
                lambda: 3 * 255, "The array has to fill and to drain, which takes 2t − 2 cycles, not t − 1."
            ),
            Mistake(lambda: systolic.rows_for(0.9, 256), "That is for 90% of the cycles."),
            Mistake(
                lambda: 3 * (3 * 256 - 2), "The weights are in place already, so loading does not count."
            ),
        ),
        right=(
            "Right. If many tiles follow one another, filling and draining are paid only once, so a "
            "large matmul needs far fewer rows per tile."
        ),
    ),
    Check(
        key="tpus.half-heads",
        title="Heads of 128 on an array of 256",
        answer=lambda: _scores().performed_flops / chips.V6E.bf16_flops_per_s,
        unit="s",
        difficulty=2,
        hints=(
            "Kᵀ[128, 4096] is stationary. What fraction of a tile of 256 × 256 does it fill?",
            "The array takes the same time whether its lower half holds zeros or weights.",
        ),
        mistakes=(
            Mistake(
                lambda: _scores().useful_flops / chips.V6E.bf16_flops_per_s,
                "That is the time of the useful FLOPs, but they fill only half of each tile.",
            ),
            Mistake(2.0, "Only the contracting dimension is too short; the 4,096 columns fill their tiles."),
        ),
    ),
    Check(
        key="tpus.chunked-product",
        title="A matmul in thirty-two chunks",
        answer=lambda: _chunks().total_s,
        unit="s",
        difficulty=2,
        rel_tol=0.005,
        hints=(
            "How long does one chunk take in each of the three stages?",
            (
                "The first chunk passes through all three stages. Each later chunk finishes one turn "
                "of the slowest stage after the one before it."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: _chunks().upper_s,
                "That is without overlap: every chunk passes all stages before the next one starts.",
                slip="sum-for-max",
            ),
            Mistake(
                lambda: _chunks().lower_s,
                (
                    "That is the slowest stage alone. Reading the first chunk and writing the last one "
                    "are not hidden."
                ),
                slip="term-left-out",
            ),
        ),
        right="Right: the slowest stage sets the pace, and the other stages are paid only once.",
    ),
    Check(
        key="tpus.weights-in-vmem",
        title="Weights that stay in VMEM",
        answer=lambda: _batch(chips.V5E.vmem_bytes_per_s),
        unit="tokens",
        difficulty=2,
        rel_tol=0.03,
        hints=(
            "Set the time of the bytes equal to the time of the OPs. The bytes of W do not grow with B.",
            "Only the bandwidth is different: 18 TB/s instead of 819 GB/s.",
        ),
        mistakes=(
            Mistake(lambda: _batch(None), "That is with the arrays in HBM."),
            Mistake(
                2.0,
                (
                    "The int8 rate is 394 TOPs/s, and an element is one byte. One of these two factors "
                    "of two is missing."
                ),
            ),
        ),
    ),
)
