"""From which batch on does arithmetic bind? Checks of the rooflines chapter on products."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import roofline, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.units import INT8

_WIDE = 10**9  # a layer so wide that 1/D and 1/F vanish


def _wide_int8(**stored: object) -> float:
    return roofline.rule_of_thumb_batch(_WIDE, _WIDE, chips.V5E, **stored).batch  # type: ignore[arg-type]


def _upper() -> roofline.Roofline:
    return roofline.matmul(256, 4096, 16384, chips.V5P)


def _narrow(width: int) -> float:
    return rules.matmul_critical_batch(width, width, chips.V5E, weights=INT8)


BATCHES = (
    Check(
        key="rooflines.no-overlap",
        title="Between two bounds",
        answer=lambda: _upper().upper_s,
        unit="s",
        hints=(
            "Without overlap, the time of the arithmetic and the time of moving the bytes add up.",
            "FLOPs are 2 · B · D · F. Bytes are two for every element of X, W and Y.",
        ),
        mistakes=(
            Mistake(
                lambda: _upper().lower_s, "That is the time with perfect overlap. The question asks for none."
            ),
            Mistake(lambda: _upper().memory_s, "That is the memory's term alone."),
        ),
        right="Right. With overlap it could be almost twice as fast, never more.",
    ),
    Check(
        key="rooflines.int8-everywhere",
        title="int8 everywhere",
        answer=lambda: _wide_int8(dtype=INT8),
        unit="tokens",
        hints=(
            "The bytes halve, so the intensity is not B.",
            "The rate doubles, so the ridge is not that of bf16 either.",
            "Intensity 2B against a ridge of 481 OPs per byte.",
        ),
        mistakes=(
            Mistake(
                lambda: rules.ridge(chips.V5E, INT8),
                "That is the ridge. At one byte an element, the intensity is 2B.",
                slip="factor-two-flops",
            ),
            Mistake(
                0.5,
                "The rate doubles as well as the bytes halve: the arithmetic is in int8.",
                slip="wrong-rate",
            ),
        ),
        right="Right: bytes and rate both change by two, and the threshold stays.",
    ),
    Check(
        key="rooflines.int8-weights",
        title="int8 weights alone",
        answer=lambda: _wide_int8(weights=INT8),
        unit="tokens",
        hints=(
            "Which of the three arrays dominates the bytes?",
            "Only the bytes of the weights halve. The rate stays that of bf16.",
        ),
        mistakes=(
            Mistake(
                2,
                "That is the batch for bf16 weights. The bytes that dominate have halved.",
                slip="wrong-dtype-size",
            ),
            Mistake(0.5, "That is what int4 weights would need.", slip="wrong-dtype-size"),
        ),
        right="Right: half the bytes, the same arithmetic, half the batch.",
    ),
    Check(
        key="rooflines.ridge-h200",
        title="The ridge of an H200",
        answer=lambda: rules.ridge(chips.H200),
        unit="FLOP/B",
        hints=(
            "FLOPs/s over bytes/s.",
            "The datasheet's 1,979 TFLOPs are with sparsity: half of it is dense.",
        ),
        mistakes=(
            Mistake(2, "That uses the rate with sparsity. Dense matrices get half of it."),
            Mistake(lambda: rules.ridge(chips.H100), "That is the ridge of an H100, whose memory is slower."),
        ),
        right="Right. The same arithmetic as an H100 with 1.43 times the bandwidth.",
    ),
    Check(
        key="rooflines.matrix-per-row",
        title="A matrix for every row",
        answer=lambda: roofline.batched_matvec(1024, 8192, 8192, chips.V5E, INT8).intensity,
        unit="FLOP/B",
        hints=(
            "Count the bytes: there are B matrices now.",
            "B cancels. What is left is 2 / (1 + 1/D + 1/F).",
        ),
        mistakes=(
            Mistake(
                lambda: roofline.matmul(1024, 8192, 8192, chips.V5E, INT8).intensity,
                "That is one matrix shared by all rows.",
            ),
            Mistake(0.5, "One multiply and one add: two FLOPs for every weight read, at one byte each."),
        ),
        right="Right, and no batch changes it. Attention over a cache in decoding works like this.",
    ),
    Check(
        key="rooflines.int8-exact",
        title="The exact batch for int8 weights",
        answer=lambda: rules.matmul_critical_batch(4096, 16384, chips.V5E, weights=INT8),
        unit="tokens",
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "Start from 1/I = (a/F + w/B + o/D) / 2, with a = o = 2 and w = 1.",
            "Set I to the ridge, 240.5, and solve for B.",
        ),
        mistakes=(
            Mistake(lambda: _wide_int8(weights=INT8), "That is the rule of thumb for very wide layers."),
            Mistake(2, "That is for bf16 everywhere, or int8 everywhere; here only the weights are int8."),
        ),
        right="Right: 8% above the rule of thumb.",
    ),
    Check(
        key="rooflines.narrow-layer",
        title="What a narrow layer costs",
        answer=lambda: _narrow(1024) / _narrow(4096),
        difficulty=2,
        hints=(
            "Work out the exact batch for both widths.",
            "B = (w R / 2) / (1 - R (1/D + 1/F)), with R = 240.5 and w = 1.",
        ),
        mistakes=(
            Mistake(
                lambda: _narrow(4096) / _narrow(1024),
                "That is the inverse: the narrow layer needs the larger batch.",
            ),
            Mistake(4, "The batch does not grow in proportion to the width."),
        ),
        right="Right: close to twice the batch for a quarter of the width.",
    ),
    Check(
        key="rooflines.never-enough",
        title="Too narrow for a v6e",
        answer=lambda: rules.memory_bound_width(chips.V6E),
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "For which D = F does even an infinite batch not reach the ridge?",
            "As B grows, the intensity goes to D F / (D + F).",
        ),
        mistakes=(
            Mistake(0.5, "An infinite batch reaches an intensity of D/2, not of D."),
            Mistake(lambda: rules.memory_bound_width(chips.V5E), "That is for a v5e."),
        ),
        right="Right: a layer of this width is memory-bound on a v6e whatever you feed it.",
    ),
)
