"""Exercises on limits in low precision: critical batch size, FSDP, TP, and the speedup of a step."""

from scalingbook_book.chapters.lowprecision.case import NODES
from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.formats import NVFP4
from scalingbook_lib.steps.limits.recipe import Recipe
from scalingbook_lib.units import FP4, FP8

_B200 = chips.B200
_PRODUCTS, _FASTER = 0.65, 1.42
_BREAKS = "GB300"


def _fsdp(**types: object) -> float:
    return Recipe(product=FP8, **types).data_parallel(NODES, 8).least  # pyright: ignore[reportArgumentType]


CHECKS = (
    Check(
        key="lowprecision.two-types",
        title="NVFP4 weights, fp8 matmuls",
        answer=lambda: Recipe(product=FP8, weights=NVFP4.dtype).batch(_B200),
        unit="tokens",
        hints=(
            "How many bytes does a weight take, and at what rate does the chip multiply?",
            "The critical batch is w C over twice the bandwidth. The bytes include the scales.",
        ),
        mistakes=(
            Mistake(
                lambda: Recipe(product=FP4, weights=NVFP4.dtype).batch(_B200),
                "You used the fp4 rate, but the matmuls are in fp8.",
            ),
            Mistake(
                lambda: Recipe(product=FP8, weights=FP8).batch(_B200),
                "The weights are stored in NVFP4, not in fp8.",
            ),
            Mistake(
                lambda: Recipe(product=FP8, weights=FP4).batch(_B200),
                "You left out the scales, which are read as well.",
            ),
        ),
    ),
    Check(
        key="lowprecision.chip-that-breaks",
        title="The chip that breaks the rule",
        answer=lambda: _BREAKS,
        choices=("H100", "TPU7x", "B200", _BREAKS),
        hints=(
            "The critical batch stays the same if the rate grows as much as the bytes shrink.",
            "Compare each chip's rate with its bf16 rate, and the bytes per weight with two.",
        ),
        mistakes=(
            Mistake("H100", "H100 follows the rule: fp8 has half the bytes and twice the rate."),
            Mistake("TPU7x", "TPU7x follows the rule: fp8 has half the bytes and twice the rate."),
            Mistake(
                "B200",
                "B200 nearly follows the rule: it has four times the rate, and the bytes shrink by a "
                "factor of 3.6. Another chip is farther off.",
            ),
        ),
    ),
    Check(
        key="lowprecision.fsdp-tokens",
        title="Tokens for FSDP",
        answer=lambda: _fsdp(gather=FP8),
        unit="tokens",
        difficulty=2,
        hints=(
            "Forward: a gather against 2 FLOPs per parameter. Backward: a gather and a reduction against 4.",
            "Which of the two passes is the limit? The compute rate is that of fp8.",
        ),
        mistakes=(
            Mistake(
                lambda: _fsdp(),
                "The weights are gathered in fp8, with one byte each.",
                slip="wrong-dtype-size",
            ),
            Mistake(
                lambda: _fsdp(gather=FP8, sums=FP8),
                "That is with everything in bf16, or everything in fp8. Here, gradients have two bytes.",
                slip="wrong-rate",
            ),
        ),
    ),
    Check(
        key="lowprecision.tensor-ways",
        title="A smaller TP degree",
        answer=lambda: 2 * (1 + 4) / (2 + 2),
        difficulty=2,
        hints=(
            "The smallest useful width is proportional to C and to the bytes of both transfers together.",
            "fp8 takes one byte per element, and fp32 takes four.",
        ),
        mistakes=(
            Mistake(
                lambda: 2.0,
                "That is for both transfers in bf16. Their bytes change, too.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: 2 * (1 + 2) / 4, "You counted two bytes for the ReduceScatter, but it is in fp32."
            ),
            Mistake(
                lambda: (1 + 4) / (2 + 2),
                "You counted the bytes only. The matmuls are also twice as fast.",
                slip="term-left-out",
            ),
        ),
    ),
    Check(
        key="lowprecision.whole-step",
        title="Speedup of a whole step",
        answer=lambda: 1 / (1 - _PRODUCTS + _PRODUCTS / _FASTER),
        difficulty=2,
        hints=(
            "Everything that does not become faster takes as long as before.",
            "Add up the new times, as fractions of the old step. The speedup is the inverse.",
        ),
        mistakes=(
            Mistake(
                lambda: _FASTER,
                "Only the matmuls are that much faster, not the whole step.",
                slip="wrong-formula-whole",
            ),
            Mistake(
                lambda: 1 / (1 - _PRODUCTS + _PRODUCTS / 2),
                "The matmuls become 1.42 times as fast, not twice.",
            ),
            Mistake(
                lambda: 1 - _PRODUCTS + _PRODUCTS / _FASTER,
                "That is the new time over the old one. The speedup is its inverse.",
                slip="inverted-ratio",
            ),
        ),
    ),
)
