"""Can a reader use a ruler? Bytes with scales, marks, lost updates, sums that stop."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models
from scalingbook_lib.machines.formats import BF16_ELEMENT, E4M3, MXFP4, NVFP4, accumulate

_M405 = models.find("LLaMA-3 405B")
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
            "A block of 32 elements has one scale.",
            "Bits of an element, and its part of the scale's eight.",
        ),
        mistakes=(
            Mistake(lambda: 0.5 * _M405.params, "The scales take bytes, too."),
            Mistake(lambda: NVFP4.bytes * _M405.params, "That is NVFP4: a scale for each 16."),
            Mistake(lambda: 1.5 * _M405.params, "A scale is shared by the whole block."),
        ),
    ),
    Check(
        key="lowprecision.nearest-mark",
        title="The nearest mark",
        answer=lambda: E4M3.nearest(150.0),
        rel_tol=1e-9,
        hints=(
            "Between two powers of two, three bits of mantissa make eight equal parts.",
            "Which power of two lies below? An eighth of it is the distance of the marks.",
        ),
        mistakes=(
            Mistake(lambda: 150.0, "That number is not on the ruler.", slip="rounding"),
            Mistake(lambda: 160.0, "There is a nearer mark.", slip="rounding"),
            Mistake(lambda: 148.0, "That would need four bits of mantissa.", slip="off-by-one"),
        ),
    ),
    Check(
        key="lowprecision.rate-that-moves",
        title="A rate that moves it",
        answer=_rate,
        hints=(
            "Which power of two lies below the weight? bf16 has seven bits of mantissa.",
            "Half a mark is enough.",
        ),
        mistakes=(
            Mistake(
                lambda: _rate(1),
                "More than half the way to the next mark is rounded to it.",
                slip="factor-two",
            ),
            Mistake(
                lambda: _rate() * _RMS,
                "That is the step; the rate multiplies the update.",
                slip="factor-left-out",
            ),
            Mistake(lambda: 2**-8 * _WEIGHT / _RMS, "Marks are as far apart as at the power of two below."),
        ),
    ),
    Check(
        key="lowprecision.sum-that-stops",
        title="A sum that stops",
        answer=lambda: accumulate(BF16_ELEMENT, 0.0, 1.0, _MANY)[-1] / _MANY,
        difficulty=2,
        hints=("From where on is adding one less than half a mark?", "Eight significant bits."),
        mistakes=(
            Mistake(
                lambda: 1 - accumulate(BF16_ELEMENT, 0.0, 1.0, _MANY)[-1] / _MANY,
                "So much is lost; what is left?",
                slip="complement",
            ),
            Mistake(lambda: 2048 / _MANY, "That is fp16, with eleven significant bits."),
            Mistake(
                lambda: 128 / _MANY,
                "With seven bits of mantissa there are eight significant ones.",
                slip="off-by-one",
            ),
        ),
    ),
)
