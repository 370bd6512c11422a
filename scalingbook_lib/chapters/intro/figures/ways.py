"""What can be split over four chips? Batch, matrices, layers, experts: one drawing four times."""

from scalingbook_lib.reader.figures.figure import Figure
from scalingbook_lib.reader.figures.shapes import EXPERTS, MATH, MEMORY, NETWORK, Area, Arrow, Shape, Words
from scalingbook_lib.reader.figures.sketch import Sketch

CHIPS = 4
SHADES = (0.1, 0.25, 0.4, 0.55)  # one for each chip
WIDE, HIGH, TALL = 120.0, 26.0, 214.0
WAYS = (
    ("data", "batch split", "sum gradients,\nonce a step"),
    ("tensor", "matrices split", "gather and sum\nactivations, each layer"),
    ("pipeline", "layers split", "hand activations\nto the next stage"),
    ("expert", "experts split", "send tokens there\nand back, each layer"),
)


def ways() -> Figure:
    """Four cuts of one model, and what each must send."""
    said = "; ".join(f"{name}: {cut}, {sent.replace('\n', ' ')}" for name, cut, sent in WAYS)
    return Figure(
        key="intro.ways",
        alt=f"A batch above four layers, drawn four times; 0 to 3 say which chip has which part. {said}.",
        caption="Four things can be split. Whatever is split, something else has to travel: the choice is "
        "what, and how often.",
        parts=lambda wide: [_four(wide)],
    )


def _four(wide: float) -> Sketch:
    """Side by side, or two by two."""
    abreast = 4 if wide > 400 else 2
    shapes: list[Shape] = []
    for k, (name, _, sent) in enumerate(WAYS):
        x, y = wide / abreast * (k % abreast + 0.5) - WIDE / 2, TALL * (k // abreast)
        shapes += _one(name, x, y)
        shapes.append(Words(x=x + WIDE / 2, y=y + 16, text=name, bold=True))
        shapes.append(Words(x=x + WIDE / 2, y=y + 184, text=sent, color=NETWORK, size=11.5))
    return Sketch(wide, TALL * (4 // abreast), shapes)


def _one(name: str, x: float, y: float) -> list[Shape]:
    """The batch, an arrow, four layers; cut in the way of that name."""
    batch = (CHIPS, 1) if name == "data" else (1, 1)
    layers = {"tensor": (CHIPS, 1), "expert": (CHIPS, 1), "pipeline": (1, CHIPS)}.get(name, (1, 1))
    color = EXPERTS if name == "expert" else MEMORY
    shapes = [*_cut(x, y + 26, HIGH, batch, MATH)]
    shapes.append(Arrow(x0=x + WIDE / 2, y0=y + 26 + HIGH + 2, x1=x + WIDE / 2, y1=y + 72))
    for k in range(CHIPS):
        top = y + 74 + k * (HIGH - 2)
        if layers == (1, CHIPS):
            shapes.append(
                Area(x=x, y=top, wide=WIDE, high=HIGH - 5, color=color, shade=SHADES[k], text=str(k))
            )
        else:
            shapes += _cut(x, top, HIGH - 5, layers, color, air=5 if name == "expert" else 0)
    return shapes


def _cut(x: float, y: float, high: float, parts: tuple[int, int], color: int, air: float = 0) -> list[Shape]:
    """A bar in as many parts as there are chips, or whole."""
    n = parts[0]
    each = WIDE / n
    return [
        Area(
            x=x + each * k + air / 2,
            y=y,
            wide=each - air,
            high=high,
            color=color,
            shade=SHADES[k] if n > 1 else 0.06,
            text=str(k) if n > 1 else "",
        )
        for k in range(n)
    ]
