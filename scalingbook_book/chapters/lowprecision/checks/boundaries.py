"""Can a reader move the boundaries? Batches of mixed types, FSDP, tensors, gains."""

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
        title="Two types, one batch",
        answer=lambda: Recipe(product=FP8, weights=NVFP4.dtype).batch(_B200),
        unit="tokens",
        hints=(
            "Which bytes are read, and which rate multiplies?",
            "w C over twice the bandwidth; scales count.",
        ),
        mistakes=(
            Mistake(
                lambda: Recipe(product=FP4, weights=NVFP4.dtype).batch(_B200), "The products are in fp8."
            ),
            Mistake(
                lambda: Recipe(product=FP8, weights=FP8).batch(_B200), "The weights lie there in four bits."
            ),
            Mistake(lambda: Recipe(product=FP8, weights=FP4).batch(_B200), "Scales are read as well."),
        ),
    ),
    Check(
        key="lowprecision.chip-that-breaks",
        title="The chip that breaks the rule",
        answer=lambda: _BREAKS,
        choices=("H100", "TPU7x", "B200", _BREAKS),
        hints=(
            "The batch stays where the rate grows as the bytes shrink.",
            "Compare each chip's narrowest rate with its bf16, and the bytes with two.",
        ),
        mistakes=(
            Mistake("H100", "Half the bytes, twice the rate: the batch stays."),
            Mistake("TPU7x", "Its fp8 is twice its bf16, for half the bytes: no change."),
            Mistake(
                "B200",
                "Four times the rate for 3.6 times fewer bytes is nearly the rule. Another is farther off.",
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
            "Forward a gather against 2 FLOPs a parameter; backward a gather and a sum against 4.",
            "Which of the two passes binds? C is that of fp8.",
        ),
        mistakes=(
            Mistake(lambda: _fsdp(), "Weights are gathered in one byte.", slip="wrong-dtype-size"),
            Mistake(
                lambda: _fsdp(gather=FP8, sums=FP8),
                "So many in bf16, or with all in fp8; here gradients have two bytes, and C has doubled.",
                slip="wrong-rate",
            ),
        ),
    ),
    Check(
        key="lowprecision.tensor-ways",
        title="Fewer tensor ways",
        answer=lambda: 2 * (1 + 4) / (2 + 2),
        difficulty=2,
        hints=(
            "The limit on the width goes with C and with the mean of both transfers.",
            "fp32 has four bytes.",
        ),
        mistakes=(
            Mistake(lambda: 2.0, "That is for both transfers in bf16.", slip="term-left-out"),
            Mistake(lambda: 2 * (1 + 2) / 4, "The sums are in fp32 here."),
            Mistake(lambda: (1 + 4) / (2 + 2), "The products are twice as fast.", slip="term-left-out"),
        ),
    ),
    Check(
        key="lowprecision.whole-step",
        title="What the whole step gains",
        answer=lambda: 1 / (1 - _PRODUCTS + _PRODUCTS / _FASTER),
        difficulty=2,
        hints=("What is not faster stays as long as it was.", "Add the new shares, and turn them over."),
        mistakes=(
            Mistake(lambda: _FASTER, "Only the products are faster.", slip="wrong-formula-whole"),
            Mistake(lambda: 1 / (1 - _PRODUCTS + _PRODUCTS / 2), "They do not reach twice the rate."),
            Mistake(
                lambda: 1 - _PRODUCTS + _PRODUCTS / _FASTER,
                "That is the new time over the old.",
                slip="inverted-ratio",
            ),
        ),
    ),
)
