"""Exercises on recipes: weight-only int4, SmoothQuant, and the two scales of NVFP4."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.formats import E2M1, E4M3
from scalingbook_lib.steps.limits.recipe import Recipe
from scalingbook_lib.units import BF16, FP8

_H200 = chips.H200
_ACTIVATION, _WEIGHT = 60.0, 0.15
_TENSOR, _BLOCK = 1344.0, 4.0
_OUTER = _TENSOR / (E2M1.largest * E4M3.largest)

CHECKS = (
    Check(
        key="lowprecision.batch-for-int4",
        title="The batch at which int4 weights lose to fp8",
        answer=lambda: Recipe(weights=FP8, product=BF16).batch(_H200),
        unit="tokens",
        difficulty=2,
        hints=(
            "The int4 matmul is compute-bound in bf16 there, and the fp8 matmul is still memory-bound.",
            "Set 2BDF/C in bf16 equal to the time of reading DF bytes.",
        ),
        mistakes=(
            Mistake(
                lambda: Recipe(weights=BF16, product=BF16).batch(_H200),
                "Above that batch, int4 is no faster than bf16. Fp8 overtakes it earlier.",
            ),
            Mistake(
                lambda: 0.515625 * Recipe(weights=FP8, product=BF16).batch(_H200),
                "There int4 becomes compute-bound, but it is still faster than fp8.",
            ),
        ),
    ),
    Check(
        key="lowprecision.smoothed-channel",
        title="A channel that SmoothQuant scales",
        answer=lambda: (_ACTIVATION / _WEIGHT) ** 0.5,
        hints=(
            "What is the factor of a channel for an exponent of one half?",
            "Divide the square root of the largest activation by that of the largest weight.",
        ),
        mistakes=(
            Mistake(lambda: _ACTIVATION / _WEIGHT, "Both largest values have an exponent of one half."),
            Mistake(
                lambda: (_ACTIVATION * _WEIGHT) ** 0.5,
                "That is the largest value of both operands after scaling. The question is the factor.",
            ),
            Mistake(lambda: _ACTIVATION**0.5, "You left out the weights, which are multiplied by it."),
        ),
    ),
    Check(
        key="lowprecision.two-level-scale",
        title="The two scales of NVFP4",
        answer=lambda: E4M3.nearest(_BLOCK / E2M1.largest / _OUTER),
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "The scale of the tensor maps its largest value to 6 times 448.",
            "Divide the block's largest value by 6 and by the scale of the tensor, then round to E4M3.",
        ),
        mistakes=(
            Mistake(
                lambda: _BLOCK / E2M1.largest / _OUTER,
                "The scale of a block is stored in E4M3, so it has to be rounded.",
            ),
            Mistake(
                lambda: _BLOCK / E2M1.largest,
                "That is the block's whole scale. The scale of the tensor is a part of it.",
            ),
            Mistake(
                lambda: E4M3.nearest(_BLOCK / E2M1.largest / (_TENSOR / E2M1.largest)),
                "The scale of the tensor leaves the range of E4M3 to the scales of the blocks.",
            ),
        ),
    ),
)
