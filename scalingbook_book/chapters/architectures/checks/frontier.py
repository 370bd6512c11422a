"""Checks of the exercises on a frontier model: GPU-hours, the width of its experts, and an audit."""

from scalingbook_book.chapters.architectures.case import V4_PRO
from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, FP8, DType

_K2, _K2_TOKENS = models.find("Kimi K2"), 15.5e12
_RATE = 996e12  # model FLOPs/s of a GB300, as measured for DeepSeek-V4-Pro


def _hours(params: float = _K2.active_params, rate: float = _RATE, flops: float = 6.0) -> float:
    return flops * params * _K2_TOKENS / rate / 3600


def _width(longest: int = 4, combine: DType = BF16) -> float:
    """The width of an expert above which experts on a cube of TPU7x are compute-bound, with bf16 matmuls."""
    return rules.expert_parallel_width(chips.TPU7X, longest, dispatch=FP8, combine=combine)


def _audit(tokens: float = 9 * 12_000, params: float = V4_PRO.active_params) -> float:
    """FLOPs/s of so many tokens per second, over the fp8 peak of a GB300."""
    return tokens * 2 * params / chips.GB300.flops_per_s(FP8)


CHECKS = (
    Check(
        key="architectures.frontier-hours",
        title="GPU-hours of Kimi K2 on GB300",
        answer=_hours,
        difficulty=3,
        rel_tol=0.03,
        hints=(
            "How many FLOPs does a token of training take, and which parameters count?",
            "Multiply by the number of tokens, and divide by the FLOPs that a GPU performs in an hour.",
        ),
        mistakes=(
            Mistake(
                lambda: _hours(_K2.params),
                "That counts all experts. A token passes only through the active parameters.",
            ),
            Mistake(
                lambda: _hours(flops=2.0),
                "That is the forward pass alone. The backward pass takes twice as many FLOPs.",
            ),
            Mistake(
                lambda: _hours(rate=chips.GB300.flops_per_s(FP8)),
                "That is at the peak rate. Use the rate that was measured.",
            ),
            Mistake(lambda: _hours() * 3600, "That is in seconds. How many hours are they?"),
        ),
        right="Right. It would be less than a third of what DeepSeek-V4-Pro takes.",
    ),
    Check(
        key="architectures.frontier-width",
        title="Width of experts on a cube of TPU7x",
        answer=_width,
        difficulty=3,
        rel_tol=0.02,
        hints=(
            "How many bytes per element do dispatch and combine send together?",
            "On a ring of A chips, each axis carries A/4 of what a chip sends.",
            "Set the time of three matmuls equal to the time of both transfers.",
        ),
        mistakes=(
            Mistake(
                lambda: _width(combine=FP8),
                "Only the dispatch is in fp8. The results come back in bf16.",
            ),
            Mistake(
                lambda: rules.expert_parallel_width(chips.TPU7X, 4),
                "That sends both directions in bf16. The dispatch is in fp8.",
            ),
            Mistake(
                lambda: _width(8),
                "A cube of 64 chips has four chips along each axis.",
            ),
        ),
        right="Right. DeepSeek-V4-Pro's experts are little more than half as wide.",
    ),
    Check(
        key="architectures.frontier-audit",
        title="Audit of a throughput claim",
        answer=_audit,
        difficulty=3,
        rel_tol=0.03,
        hints=(
            "For each output token, how many prompt tokens have to be processed?",
            "A token takes two FLOPs for each active parameter.",
            "Divide the FLOPs per second by the peak in fp8.",
        ),
        mistakes=(
            Mistake(
                lambda: _audit(12_000),
                "That counts the output alone. Each request also has a prompt, which is eight times as long.",
            ),
            Mistake(
                lambda: _audit(8 * 12_000),
                "That counts the prompts alone. Add the output.",
            ),
            Mistake(
                lambda: _audit(params=V4_PRO.params),
                "That counts all experts. A token passes only through the active parameters.",
            ),
        ),
        right="Right. No chip exceeds its peak, so the claim must count prompt tokens, too.",
    ),
)
