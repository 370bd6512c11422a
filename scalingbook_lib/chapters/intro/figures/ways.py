"""What can be split over four chips? Batch, matrices, layers, experts: one drawing four times."""

from dataclasses import replace

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
    batch = Area(x=x, y=y + 26, wide=WIDE, high=HIGH, color=MATH)
    shapes: list[Shape] = list(_cut(batch) if name in ("data", "expert") else [replace(batch, shade=0.06)])
    shapes.append(Arrow(x0=x + WIDE / 2, y0=y + 28 + HIGH, x1=x + WIDE / 2, y1=y + 72))
    color = EXPERTS if name == "expert" else MEMORY
    for k in range(CHIPS):
        layer = Area(x=x, y=y + 74 + k * (HIGH - 2), wide=WIDE, high=HIGH - 5, color=color, shade=0.06)
        if name == "pipeline":
            shapes.append(replace(layer, shade=SHADES[k], text=str(k)))
        else:
            shapes += [layer] if name == "data" else _cut(layer, air=5.0 * (name == "expert"))
    return shapes


def _cut(bar: Area, *, air: float = 0.0) -> list[Area]:
    """A bar in as many parts as there are chips."""
    each = bar.wide / CHIPS
    return [
        replace(bar, x=bar.x + each * k + air / 2, wide=each - air, shade=SHADES[k], text=str(k))
        for k in range(CHIPS)
    ]
