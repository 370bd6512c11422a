"""What one figure of a datasheet means: rates, pods, wraps and padding."""

from scalingbook_lib.machines import Slice, chips, systolic
from scalingbook_lib.reader.checks.check import Check, Mistake

_POD = Slice.of(chips.V5P, "16x20x28")


CHIP = (
    Check(
        key="tpus.1",
        title="The least time of a decoding step",
        answer=lambda: 2 * 200e9 / 32 / chips.V4.hbm_bytes_per_s,
        unit="s",
        chips=32,
        hints=(
            "How many bytes of weights does each chip hold?",
            "Every chip reads its own share once, all at the same time, from its own HBM.",
        ),
        mistakes=(Mistake(0.5, "A parameter in bf16 is two bytes."),),
        right="Right: no step that uses every weight once can be faster than this.",
    ),
    Check(
        key="tpus.2",
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
        key="tpus.3",
        title="The matrix units against the vector unit",
        answer=lambda: chips.V5P.bf16_flops_per_s / (chips.V5P.vector_flops_per_s or 0),
        hints=(
            "A place with four arithmetic units finishes four operations a cycle.",
            "Compare a chip with a chip: both cores on both sides.",
        ),
        mistakes=(
            Mistake(2.0, "That is the matrix units of both cores against the vector unit of one."),
            Mistake(4.0, "Each of the 8 × 128 places has four arithmetic units."),
        ),
        right="Right: whatever can be written as a matrix product is, on a TPU, about thirty times cheaper.",
    ),
    Check(
        key="tpus.4",
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
        key="tpus.5",
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
            ),
        ),
    ),
)
