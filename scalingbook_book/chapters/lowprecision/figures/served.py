"""A figure of the speed of quantized weight matmuls in serving, by batch size."""

from scalingbook_book.reader.explorers.view import Chart, Curve, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import EXPERTS, IDLE, MATH
from scalingbook_lib import roofline
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.formats import FP16_ELEMENT, INT4_ELEMENT, Format
from scalingbook_lib.steps.limits.recipe import Recipe
from scalingbook_lib.units import BF16, FP8

CHIP, D, F = chips.H100, 8192, 28_672
INT4_128 = Format(name="int4 by 128", element=INT4_ELEMENT, block=128, scale=FP16_ELEMENT)
BATCHES = tuple(round(2 ** (k / 8)) for k in range(8 * 10 + 1))
KINDS = {  # of weights and activations: the type of the matmul, and that of the stored weights
    "bf16": (BF16, BF16, IDLE),
    "fp8 (W8A8)": (FP8, FP8, MATH),
    "int4 weights (W4A16)": (BF16, INT4_128.dtype, EXPERTS),
}


def served() -> Figure:
    """The speed of three kinds of matmuls relative to bf16, by the tokens of a step."""
    speeds = {kind: [_speed(B, kind) for B in BATCHES] for kind in KINDS}
    fast, even, equal = (Recipe(weights=w).batch(CHIP) for w in (INT4_128.dtype, FP8, BF16))
    return Figure(
        key="lowprecision.served",
        alt=f"Speed relative to bf16 over the tokens of a step, from {BATCHES[0]} to {BATCHES[-1]:,}. Int4 weights: "
        f"{speeds['int4 weights (W4A16)'][0]:.1f} times as fast up to {fast:.0f} tokens, then falling; as fast as fp8 at "
        f"{even:.0f} tokens and as bf16 at {equal:.0f}. Fp8: {speeds['fp8 (W8A8)'][0]:.1f} times as fast throughout.",
        caption=f"Speed of a matmul with weights of {D:,} × {F:,} on an H100, relative to bf16, by the roofline. "
        f"Int4 weights win for small batches. They are compute-bound above {fast:.0f} tokens, slower than fp8 above "
        f"{even:.0f}, and no faster than bf16 above {equal:.0f}.",
        parts=lambda wide: [
            Chart(
                x=Scale("tokens of a step", "", "pow2"),
                y=Scale("speed relative to bf16", "", "linear", 0, 4.5),
                marks=[
                    Curve(kind, BATCHES, speed, color)
                    for (kind, (*_, color)), speed in zip(KINDS.items(), speeds.values(), strict=True)
                ],
            )
        ],
    )


def _speed(B: int, kind: str) -> float:
    product, weights, _ = KINDS[kind]
    return roofline.matmul(B, D, F, CHIP, BF16, out=BF16).lower_s / (
        roofline.matmul(B, D, F, CHIP, product, weights=weights, out=BF16).lower_s
    )
