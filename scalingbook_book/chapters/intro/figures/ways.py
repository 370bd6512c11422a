"""Figure of data, tensor, pipeline and expert parallelism on four chips, one drawing for each."""

from dataclasses import replace

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import EXPERTS, MATH, MEMORY, NETWORK, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch

CHIPS = 4
SHADES = (0.1, 0.25, 0.4, 0.55)  # one for each chip
WIDE, HIGH, TALL = 120.0, 26.0, 214.0
WAYS = (
    ("data", "batch sharded", "sum gradients,\nonce per step"),
    ("tensor", "matrices sharded", "gather and sum\nactivations, each layer"),
    ("pipeline", "layers divided", "send activations\nto the next stage"),
    ("expert", "experts divided", "send tokens to experts\nand back, each layer"),
)


def ways() -> Figure:
    """Four ways to divide one model, and what each makes the chips send."""
    said = "; ".join(f"{name}: {cut}, {sent.replace('\n', ' ')}" for name, cut, sent in WAYS)
    return Figure(
        key="intro.ways",
        alt=f"A batch above four layers, drawn four times; the numbers 0 to 3 say which chip holds which part. {said}.",
        caption="Data, tensor, pipeline and expert parallelism over four chips. The numbers are chips; "
        "parts without a number are not divided. Every strategy sends something between chips, and "
        "they differ in what they send and how often. (Schematic.)",
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
    """The batch, an arrow and four layers, divided in the way of that name."""
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
    """A bar divided into as many parts as there are chips."""
    each = bar.wide / CHIPS
    return [
        replace(bar, x=bar.x + each * k + air / 2, wide=each - air, shade=SHADES[k], text=str(k))
        for k in range(CHIPS)
    ]
