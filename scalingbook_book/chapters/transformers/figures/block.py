"""One layer as a block diagram: norms, products and the residual stream, each with its shape."""

from typing import Any

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch

STREAM, LEFT, RIGHT = 66.0, 84.0, 336.0  # the residual stream's line, and the sides of the boxes
BETWEEN = 7.0
SUM, HIGH = 320.0, 396.0
# name, shape of the weights, shape of what comes out
ATTENTION = (
    ("query", "[D, N, H]", "[B, T, N, H]"),
    ("key", "[D, K, H]", "[B, S, K, H]"),
    ("value", "[D, K, H]", "[B, S, K, H]"),
)
MLP = (("gate", "[D, F]", "[B, T, F]"), ("up", "[D, F]", "[B, T, F]"))
THEN = {  # what follows below them: text, whether it has weights, its top and height
    "attention": (
        ("scores, mask, softmax\n[B, N, T, S]", False, 180.0, 38.0),
        ("weighted values [B, T, N, H]", False, 234.0, 24.0),
        ("output [N, H, D]", True, 274.0, 24.0),
    ),
    "MLP": (("SiLU(gate) · up [B, T, F]", False, 180.0, 38.0), ("down [F, D]", True, 254.0, 24.0)),
}


def block() -> Figure:
    """What does a layer consist of, and which shape has each part?"""
    return Figure(
        key="transformers.block",
        alt="A layer as two blocks along the residual stream x of shape B, T, D. Attention: a norm; query, key and value "
        "matrices; scores, mask and softmax; weighted values; the output matrix; its result is added to x. MLP: a norm; gate "
        "and up matrices; SiLU of the gate times up; the down matrix; its result is added to x.",
        caption="One layer. Each block reads the residual stream x through a norm and adds its result to it. Filled boxes have "
        "weights, with their shape inside; dashed boxes have none. Below or inside stands the shape of what comes out.",
        parts=lambda wide: _both(wide),
    )


def _both(wide: float) -> list[Sketch]:
    """The two blocks beside one another where there is room."""
    if wide <= 400:
        return [Sketch(wide, HIGH, _block(name, heads, 0.0)) for name, heads in _named()]
    shapes = [shape for k, (name, heads) in enumerate(_named()) for shape in _block(name, heads, 340.0 * k)]
    return [Sketch(wide, HIGH, shapes)]


def _named() -> tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...]:
    return ("attention", ATTENTION), ("MLP", MLP)


def _block(name: str, heads: tuple[tuple[str, str, str], ...], at: float) -> list[Shape]:
    """From the stream through a norm and the products, and back into the stream."""
    left, right, stream = at + LEFT, at + RIGHT, at + STREAM
    sides, middle, color = (left, right), (left + right) / 2, MEMORY if name == "attention" else MATH
    across = (right - left - BETWEEN * (len(heads) - 1)) / len(heads)
    shapes: list[Shape] = [
        Words(x=at + 2, y=14, text=name, align="start", bold=True),
        _box(sides, (24, 24), "x [B, T, D]", color=None),
        _down(middle, 48, 64),
        _box(sides, (64, 22), "norm [D]", color=IDLE),
        Words(x=at + 2, y=200, text="residual\nstream", align="start", quiet=True),
        Arrow(x0=left, y0=36, x1=stream, y1=36, heads=0),
        Arrow(x0=stream, y0=36, x1=stream, y1=SUM + 11, heads=0),
        Arrow(x0=stream, y0=SUM + 11, x1=middle - 12, y1=SUM + 11),
        Area(x=middle - 11, y=SUM, wide=22, high=22, color=None, shade=0, text="+", bold=True),
        _down(middle, SUM + 22, SUM + 40),
        _box(sides, (SUM + 40, 24), "x [B, T, D]", color=None),
    ]
    for k, (head, weights, out) in enumerate(heads):
        x = left + (across + BETWEEN) * k
        shapes += [
            _down(x + across / 2, 86, 104),
            Area(x=x, y=104, wide=across, high=38, text=f"{head}\n{weights}", color=color, size=12),
            Words(x=x + across / 2, y=156, text=out, quiet=True, size=12),
            # the values pass by the scores
            _down(x + across / 2, 161, 234 if head == "value" else 180),
        ]
    last, narrow = 0.0, left + 2 * across + BETWEEN  # of queries and keys
    for k, (text, weighs, top, high) in enumerate(THEN[name]):
        shapes += [_down(middle if k != 1 else (left + narrow) / 2, last, top)] if last else []
        held = {"color": color} if weighs else {"color": None, "dashed": True}
        shapes.append(_box((left, narrow if k == 0 else right), (top, high), text, **held))
        last = top + high
    return [*shapes, _down(middle, last, SUM)]


def _box(across: tuple[float, float], down: tuple[float, float], text: str, **drawn: Any) -> Area:
    """A box from left to right, `down` from its top by its height."""
    (left, right), (top, high) = across, down
    shade = 0.3 if drawn.get("color") is not None else 0.0
    return Area(x=left, y=top, wide=right - left, high=high, text=text, shade=shade, size=12, **drawn)


def _down(x: float, start: float, end: float) -> Arrow:
    return Arrow(x0=x, y0=start, x1=x, y1=end, thick=1.1)
