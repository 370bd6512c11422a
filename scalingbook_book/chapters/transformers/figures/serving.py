"""Figure of prefill and decode attention on one roofline."""

from typing import cast

from scalingbook_book.reader.explorers.view import Chart, Curve, Points, RefLine, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import MATH, MEMORY
from scalingbook_lib import models, roofline, rules
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.models import arithmetic

S = 8192
DEEPSEEK = models.find("DeepSeek-V3")
LATENT = cast(models.Latent, DEEPSEEK.latent)


def prefill_decode() -> Figure:
    """Where is attention on the roofline, in prefill and in decode?"""
    marks = {
        "decode, G = 1": arithmetic.attention_intensity(1, S, G=1).flops_per_byte,
        "decode, G = 8": arithmetic.attention_intensity(1, S, G=8).flops_per_byte,
        "decode, latent": arithmetic.latent_intensity(LATENT, DEEPSEEK.N, S).flops_per_byte,
        "prefill": arithmetic.attention_intensity(S, S, G=8).flops_per_byte,
    }
    said = ", ".join(f"{name} {value:,.0f}" for name, value in marks.items())
    ridge = rules.ridge(V5E)
    return Figure(
        key="transformers.prefill_decode",
        alt=f"The roofline of a TPU v5e with its ridge point at {ridge:.0f} FLOPs per byte, and four dots: {said}.",
        caption="Arithmetic intensity of attention in prefill and in decode. Prefill attention is "
        "compute-bound, and decode attention is not: each key that is read serves only G query "
        "heads, however long the context and however large the batch. With latent attention (MLA), "
        "decode comes close to the ridge point.",
        parts=lambda wide: [_chart(marks, ridge)],
    )


def _chart(marks: dict[str, float], ridge: float) -> Chart:
    xs = [0.5, ridge, 20_000.0]
    roof = Curve("TPU v5e", xs, [roofline.attainable(x, V5E) for x in xs], color=MEMORY)
    dots = Points(
        "attention", list(marks.values()), [roofline.attainable(x, V5E) for x in marks.values()],
        labels=list(marks), color=MATH,
    )  # fmt: skip
    return Chart(
        x=Scale("FLOPs per byte", "", "log"),
        y=Scale("attainable", "FLOPs/s", "log"),
        marks=(roof, dots, RefLine("ridge point", ridge)),
    )
