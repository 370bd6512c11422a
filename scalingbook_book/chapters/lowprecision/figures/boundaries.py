"""Where the boundaries go with faster products, and what stays wide in a layer."""

from scalingbook_book.chapters.lowprecision.case import NODES, RECIPES
from scalingbook_book.reader.explorers.view import Bars, Scale, Series
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import EXPERTS, MATH, MEMORY, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch

LIMITS = {
    "batch for HBM": lambda r: r.batch(NODES.chip),
    "FSDP: tokens": lambda r: r.data_parallel(NODES, 8).least,
    "TP over 8: width": lambda r: r.tensor_parallel(NODES, 8).least,
    "experts: width": lambda r: r.expert_parallel(NODES, 64, 8).least,
}


def moved() -> Figure:
    """Where do the boundaries go?"""
    plain = RECIPES["bf16"]
    values = {name: [of(r) / of(plain) for of in LIMITS.values()] for name, r in RECIPES.items()}
    series = [Series(name, row, color) for color, (name, row) in enumerate(values.items())]
    said = "; ".join(f"{name}: {', '.join(f'{v:.2f}' for v in row)}" for name, row in values.items())
    return Figure(
        key="lowprecision.moved",
        alt=f"Four groups of bars ({', '.join(LIMITS)}), each limit over its value in bf16. {said}.",
        caption="Products in fp8 alone double what the network asks for. Each transfer that is narrowed, too, takes a part back. (H100, over bf16; "
        "the batch for HBM stays, since weights in fp8 are half the bytes.)",
        parts=lambda wide: [Bars(Scale("limit, over bf16's", "", "linear", 0, 2.2), list(LIMITS), series)],
    )


WIDE, EIGHT, FOUR = MEMORY, MATH, EXPERTS
COLORS = {WIDE: "bf16, fp32", EIGHT: "8 bits", FOUR: "4 bits"}
PARTS = (
    "embedding, head",
    "norms, router",
    "attention",
    "products",
    "kept activations",
    "sums",
    "master, gradient",
    "moments",
)
TRAINED = {  # who is in which type, from the makers' reports
    "DeepSeek-V3": (WIDE, WIDE, WIDE, EIGHT, EIGHT, WIDE, WIDE, WIDE),
    "NVFP4 recipe": (WIDE, WIDE, WIDE, FOUR, None, WIDE, WIDE, WIDE),
    "gpt-oss": (WIDE, WIDE, WIDE, FOUR, None, None, None, None),
}


def wide() -> Figure:
    """Who is narrow in a model that is called so?"""
    said = "; ".join(
        f"{name}: "
        + ", ".join(
            f"{part} {COLORS[color]}" for part, color in zip(PARTS, row, strict=True) if color is not None
        )
        for name, row in TRAINED.items()
    )
    return Figure(
        key="lowprecision.wide",
        alt=f"A table of colours, parts of a layer against three models. {said}.",
        caption="Narrow is what is large and multiplied: the operands of products with weights, and activations kept for them. What adds up many small things stays wide. "
        "(gpt-oss is served; its experts alone are in 4 bits. Empty: not there, or not published.)",
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
