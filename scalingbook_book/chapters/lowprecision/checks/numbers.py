"""Exercises on number formats: bytes with scales, rounding, lost updates, sums that stop growing."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models
from scalingbook_lib.machines.formats import BF16_ELEMENT, E4M3, MXFP4, NVFP4, accumulate

_M405 = models.find("Llama 3.1 405B")
_WEIGHT, _RMS, _MANY = 0.05, 0.2, 4096


def _rate(parts: float = 2) -> float:
    return BF16_ELEMENT.ulp(_WEIGHT) / parts / _RMS


CHECKS = (
    Check(
        key="lowprecision.bytes-with-scales",
        title="Bytes with their scales",
        answer=lambda: MXFP4.bytes * _M405.params,
        unit="B",
        hints=(
            "Every block of 32 elements shares one scale of 8 bits.",
            "An element takes its own 4 bits and 1/32 of the scale.",
        ),
        mistakes=(
            Mistake(lambda: 0.5 * _M405.params, "You counted the elements only. The scales take bytes, too."),
            Mistake(
                lambda: NVFP4.bytes * _M405.params,
                "That is for NVFP4, which has a scale for every 16 elements.",
            ),
            Mistake(
                lambda: 1.5 * _M405.params,
                "You counted one scale per element, but the whole block shares it.",
            ),
        ),
    ),
    Check(
        key="lowprecision.nearest-mark",
        title="Rounding to E4M3",
        answer=lambda: E4M3.nearest(150.0),
        rel_tol=1e-9,
        hints=(
            "Three bits of mantissa divide the interval between two powers of two into eight equal parts.",
            "Which power of two is just below 150? An eighth of it is the spacing.",
        ),
        mistakes=(
            Mistake(lambda: 150.0, "E4M3 cannot represent that number.", slip="rounding"),
            Mistake(
                lambda: 160.0,
                "That is representable, but another representable value is nearer.",
                slip="rounding",
            ),
            Mistake(lambda: 148.0, "That would need more than three bits of mantissa.", slip="off-by-one"),
        ),
    ),
    Check(
        key="lowprecision.rate-that-moves",
        title="A learning rate that moves the weight",
        answer=_rate,
        hints=(
            "Which power of two is just below the weight? bf16 has seven bits of mantissa.",
            "The update has to exceed half the spacing.",
        ),
        mistakes=(
            Mistake(
                lambda: _rate(1),
                "Half the spacing is enough: above that, the sum is rounded to the next value.",
                slip="factor-two",
            ),
            Mistake(
                lambda: _rate() * _RMS,
                "That is the size of the update. The learning rate is five times as large.",
                slip="factor-left-out",
            ),
            Mistake(
                lambda: 2**-8 * _WEIGHT / _RMS,
                "The spacing depends on the power of two below the weight, not on the weight itself.",
            ),
        ),
    ),
    Check(
        key="lowprecision.sum-that-stops",
        title="A sum that stops growing",
        answer=lambda: accumulate(BF16_ELEMENT, 0.0, 1.0, _MANY)[-1] / _MANY,
        difficulty=2,
        hints=(
            "Above what sum is one more term at most half the spacing?",
            "bf16 has eight significant bits.",
        ),
        mistakes=(
            Mistake(
                lambda: 1 - accumulate(BF16_ELEMENT, 0.0, 1.0, _MANY)[-1] / _MANY,
                "That is the fraction that is lost. The question asks for what is left.",
                slip="complement",
            ),
            Mistake(
                lambda: 2048 / _MANY, "That is for fp16, which has eleven significant bits. bf16 has eight."
            ),
            Mistake(
                lambda: 128 / _MANY,
                "With seven bits of mantissa, there are eight significant bits, because the leading one "
                "is implicit.",
                slip="off-by-one",
            ),
        ),
    ),
)
