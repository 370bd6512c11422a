"""Checks of the exercises on one matmul: times, ridge points and critical batch sizes."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import roofline, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.units import INT8

_WIDE = 10**9  # a layer so wide that 1/D and 1/F are negligible


def _wide_int8(**stored: object) -> float:
    return roofline.rule_of_thumb_batch(_WIDE, _WIDE, chips.V5E, **stored).batch  # type: ignore[arg-type]


def _upper() -> roofline.Roofline:
    return roofline.matmul(256, 4096, 16384, chips.V5P)


def _narrow(width: int) -> float:
    return rules.matmul_critical_batch(width, width, chips.V5E, weights=INT8)


BATCHES = (
    Check(
        key="rooflines.no-overlap",
        title="Time without overlap",
        answer=lambda: _upper().upper_s,
        unit="s",
        hints=(
            "Without overlap, the compute time and the memory time add up.",
            "The matmul takes 2 · B · D · F FLOPs, and it moves two bytes for every element of X, W and Y.",
        ),
        mistakes=(
            Mistake(
                lambda: _upper().lower_s,
                "That is the time with perfect overlap. The question asks for the time without it.",
            ),
            Mistake(lambda: _upper().memory_s, "That is the memory time alone. Add the compute time."),
        ),
        right="Right. Perfect overlap would make it 1.7 times as fast; a factor of two is the limit.",
    ),
    Check(
        key="rooflines.int8-everywhere",
        title="int8 everywhere",
        answer=lambda: _wide_int8(dtype=INT8),
        unit="tokens",
        hints=(
            "There are half as many bytes as in bf16, so the intensity is not B.",
            "The compute rate doubles, so the ridge is not that of bf16 either.",
            "The intensity is 2B, and the ridge is 481 OPs per byte.",
        ),
        mistakes=(
            Mistake(
                lambda: rules.ridge(chips.V5E, INT8),
                "That is the ridge. At one byte per element, the intensity is 2B.",
                slip="factor-two-flops",
            ),
            Mistake(
                0.5,
                "The chip computes in int8, so the compute rate doubles while the bytes halve.",
                slip="wrong-rate",
            ),
        ),
        right="Right. Half the bytes and twice the compute rate cancel, so it is the same as in bf16.",
    ),
    Check(
        key="rooflines.int8-weights",
        title="int8 weights, bf16 compute",
        answer=lambda: _wide_int8(weights=INT8),
        unit="tokens",
        hints=(
            "Which of the three arrays has nearly all of the bytes?",
            "Only the bytes of the weights halve. The compute rate is still that of bf16.",
        ),
        mistakes=(
            Mistake(
                2,
                "That is for bf16 weights. With int8 weights, there are half as many bytes.",
                slip="wrong-dtype-size",
            ),
            Mistake(0.5, "That is the critical batch size for int4 weights.", slip="wrong-dtype-size"),
        ),
        right="Right. Half the bytes at the same compute rate need half the batch.",
    ),
    Check(
        key="rooflines.ridge-h200",
        title="The ridge point of an H200",
        answer=lambda: rules.ridge(chips.H200),
        unit="FLOP/B",
        hints=(
            "The ridge is FLOPs/s over bytes/s.",
            "The datasheet's 1,979 TFLOPs/s are with sparsity. The dense rate is half of that.",
        ),
        mistakes=(
            Mistake(2, "That uses the rate with sparsity. For dense matrices, the rate is half of it."),
            Mistake(
                lambda: rules.ridge(chips.H100), "That is the ridge of an H100, which has a slower memory."
            ),
        ),
        right="Right. An H200 has the compute rate of an H100 and 1.43 times its bandwidth.",
    ),
    Check(
        key="rooflines.matrix-per-row",
        title="A separate matrix for every row",
        answer=lambda: roofline.batched_matvec(1024, 8192, 8192, chips.V5E, INT8).intensity,
        unit="FLOP/B",
        hints=(
            "Count the bytes. There are B matrices now, and each is read once.",
            "B cancels, and what remains is 2 / (1 + 1/D + 1/F).",
        ),
        mistakes=(
            Mistake(
                lambda: roofline.matmul(1024, 8192, 8192, chips.V5E, INT8).intensity,
                "That is the intensity if all rows share one matrix.",
            ),
            Mistake(
                0.5,
                "Each weight takes one byte, and two FLOPs: a multiplication and an addition.",
            ),
        ),
        right="Right, and no batch size changes it. Attention over the KV cache in decode works like this.",
    ),
    Check(
        key="rooflines.int8-exact",
        title="The exact critical batch size for int8 weights",
        answer=lambda: rules.matmul_critical_batch(4096, 16384, chips.V5E, weights=INT8),
        unit="tokens",
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "Start from 1/I = (a/F + w/B + o/D) / 2, with a = o = 2 and w = 1.",
            "Set I to the ridge, 240.5, and solve for B.",
        ),
        mistakes=(
            Mistake(
                lambda: _wide_int8(weights=INT8),
                "That is the rule of thumb for very wide layers. Keep the terms with 1/D and 1/F.",
            ),
            Mistake(2, "That is for bf16 everywhere or int8 everywhere. Here only the weights are int8."),
        ),
        right="Right. It is 8% above the rule of thumb.",
    ),
    Check(
        key="rooflines.narrow-layer",
        title="Critical batch sizes of a narrow and a wide layer",
        answer=lambda: _narrow(1024) / _narrow(4096),
        difficulty=2,
        hints=(
            "Work out the exact critical batch size for both widths.",
            "B = (w R / 2) / (1 - R (1/D + 1/F)), with R = 240.5 and w = 1.",
        ),
        mistakes=(
            Mistake(
                lambda: _narrow(4096) / _narrow(1024),
                "That is the inverse. The narrow layer needs the larger batch.",
            ),
            Mistake(4, "The critical batch size is not inversely proportional to the width."),
        ),
        right="Right. At a quarter of the width, the critical batch size is well above the rule of thumb.",
    ),
    Check(
        key="rooflines.never-enough",
        title="Too narrow for a v6e",
        answer=lambda: rules.memory_bound_width(chips.V6E),
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "For which D = F does the intensity stay below the ridge even with an infinite batch?",
            "As B grows, the intensity approaches D F / (D + F).",
        ),
        mistakes=(
            Mistake(0.5, "With an infinite batch, the intensity is D/2, not D."),
            Mistake(lambda: rules.memory_bound_width(chips.V5E), "That is the width for a v5e."),
        ),
        right="Right. A layer of this width is memory-bound on a v6e, however large the batch.",
    ),
)
