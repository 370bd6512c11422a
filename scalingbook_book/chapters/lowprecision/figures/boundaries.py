"""Figures of how the limits move with faster matmuls, and of what stays in high precision in a layer."""

from scalingbook_book.chapters.lowprecision.case import NODES, RECIPES
from scalingbook_book.reader.explorers.view import Bars, Scale, Series
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import EXPERTS, MATH, MEMORY, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch

LIMITS = {
    "HBM: batch": lambda r: r.batch(NODES.chip),
    "FSDP: tokens": lambda r: r.data_parallel(NODES, 8).least,
    "TP=8: width": lambda r: r.tensor_parallel(NODES, 8).least,
    "EP=64: width": lambda r: r.expert_parallel(NODES, 64, 8).least,
}


def moved() -> Figure:
    """The limits of four recipes, relative to bf16."""
    plain = RECIPES["bf16"]
    values = {name: [of(r) / of(plain) for of in LIMITS.values()] for name, r in RECIPES.items()}
    series = [Series(name, row, color) for color, (name, row) in enumerate(values.items())]
    said = "; ".join(f"{name}: {', '.join(f'{v:.2f}' for v in row)}" for name, row in values.items())
    return Figure(
        key="lowprecision.moved",
        alt=f"Four groups of bars ({', '.join(LIMITS)}), each limit relative to its value in bf16. {said}.",
        caption="Network limits relative to bf16, for four combinations of data types. Matmuls in fp8 "
        "double every limit. Each transfer that also moves to fp8 undoes part of that. (4,096 H100s. "
        "The critical batch for HBM stays the same, because fp8 weights are half the bytes.)",
        parts=lambda wide: [
            Bars(Scale("limit relative to bf16", "", "linear", 0, 2.2), list(LIMITS), series)
        ],
    )


WIDE, EIGHT, FOUR = MEMORY, MATH, EXPERTS
COLORS = {WIDE: "bf16, fp32", EIGHT: "8 bits", FOUR: "4 bits"}
PARTS = (
    "embedding, head",
    "norms, router",
    "attention",
    "weight matmuls",
    "saved activations",
    "accumulation",
    "master, gradients",
    "moments",
)
TRAINED = {  # which part is in which type, from the developers' reports
    "DeepSeek-V3": (WIDE, WIDE, WIDE, EIGHT, EIGHT, WIDE, WIDE, WIDE),
    "NVFP4 recipe": (WIDE, WIDE, WIDE, FOUR, None, WIDE, WIDE, WIDE),
    "gpt-oss": (WIDE, WIDE, WIDE, FOUR, None, None, None, None),
}


def wide() -> Figure:
    """Which parts are in low precision in a model that is said to be?"""
    said = "; ".join(
        f"{name}: "
        + ", ".join(
            f"{part} {COLORS[color]}" for part, color in zip(PARTS, row, strict=True) if color is not None
        )
        for name, row in TRAINED.items()
    )
    return Figure(
        key="lowprecision.wide",
        alt=f"A table with the parts of a layer as rows and three models as columns. {said}.",
        caption="Data types of the parts of three models. Low precision is used for large arrays that are "
        "multiplied: the operands of weight matmuls, and the activations saved for them. Whatever "
        "accumulates many small terms stays in high precision. (In gpt-oss, which is served, only "
        "the experts are in 4 bits. Empty cells: not applicable, or not published.)",
        parts=lambda wide: [_wide(wide)],
    )


def _wide(across: float) -> Sketch:
    first = 150.0
    column = (across - first - 4) / len(TRAINED)
    shapes: list[Shape] = []
    for k, (name, row) in enumerate(TRAINED.items()):
        x = first + column * k
        told = name.replace(" ", "\n").replace("-V3", "\n-V3") if column < 90 else name
        shapes.append(Words(x=x + column / 2, y=14, text=told, bold=column > 90))
        for j, color in enumerate(row):
            if color is not None:
                text = COLORS[color] if column > 90 else COLORS[color].partition(",")[0]
                shapes.append(
                    Area(x=x + 2, y=38 + 28.0 * j, wide=column - 4, high=24, text=text, color=color)
                )
    for j, part in enumerate(PARTS):
        shapes.append(Words(x=first - 8, y=55 + 28.0 * j, text=part, align="end"))
    return Sketch(across, 40 + 28.0 * len(PARTS), shapes)
