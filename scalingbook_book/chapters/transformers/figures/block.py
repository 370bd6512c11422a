"""Figure of one Transformer layer along its residual stream, with shapes, parameters and FLOPs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.layout import key
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch

SIZE = 12.0
GAP = 16.0  # between rows, for an arrow
STREAM = 20.0  # the residual stream's line
COLORS = {MEMORY: "attention", MATH: "MLP", IDLE: "elementwise"}


@dataclass(frozen=True, slots=True)
class Row:
    """One step of the layer: boxes side by side, each a name with the shape of its weights, and what comes out.

    `parameters` and `flops` (forward) are those of the whole row. A matmul without weights has FLOPs and no
    parameters; elementwise work has no FLOPs that the book counts. The boxes take `share` of the width.
    """

    boxes: tuple[tuple[str, str], ...]
    out: tuple[str, ...]
    parameters: str = ""
    flops: str = ""
    share: float = 1.0
    each: tuple[str, ...] = ()  # the FLOPs of each box, where there are several


ATTENTION = (
    Row((("norm", "[D]"),), (), "D"),
    Row(
        (("queries", "[D, N, H]"), ("keys", "[D, K, H]"), ("values", "[D, K, H]")),
        ("[B, T, N, H]", "[B, S, K, H]", "[B, S, K, H]"),
        "D(N + 2K)H",
        "2BTD(N + 2K)H",
        each=("2BTDNH", "2BSDKH", "2BSDKH"),
    ),
    Row((("attention scores", ""),), ("[B, N, T, S]",), "", "2BTSNH", 2 / 3),
    Row((("mask, softmax over S", ""),), (), share=2 / 3),
    Row((("weighted values", ""),), ("[B, T, N, H]",), "", "2BTSNH"),
    Row((("output", "[N, H, D]"),), ("[B, T, D]",), "NHD", "2BTNHD"),
)
MLP = (
    Row((("norm", "[D]"),), (), "D"),
    Row(
        (("gate", "[D, F]"), ("up", "[D, F]")),
        ("[B, T, F]", "[B, T, F]"),
        "2DF",
        "4BTDF",
        each=("2BTDF", "2BTDF"),
    ),
    Row((("SiLU(gate) · up", ""),), ()),
    Row((("down", "[F, D]"),), ("[B, T, D]",), "DF", "2BTFD"),
)


def block() -> Figure:
    """What does a layer consist of, and what are the shape, the parameters and the FLOPs of each part?"""
    return Figure(
        key="transformers.block",
        alt="One Transformer layer from top to bottom, with the residual stream x of shape B, T, D as a line at the left. "
        "Attention reads it through a norm; matmuls with weights make queries, keys and values; a matmul without weights "
        "makes the scores, then mask and softmax; another one makes the weighted values; the output matmul adds to the stream. "
        "The MLP reads it through a second norm; gate and up matmuls; SiLU of the gate times up; the down matmul adds to the "
        "stream. Each matmul is labeled with the shapes of its weights and its output, and with its forward FLOPs.",
        caption="One Transformer layer with the shapes and FLOPs of its matmuls. Attention and the MLP each "
        "read the residual stream x through a norm and add their output to the stream. Filled boxes "
        "are matmuls with weights, whose shape is in the box; dashed boxes are matmuls without "
        "weights; gray boxes are elementwise. Below each matmul is the shape of its output. In "
        "training, S = T.",
        parts=lambda wide: [_layer(wide)],
    )


def _layer(wide: float) -> Sketch:
    """Both halves below one another; where there is room, parameters and FLOPs as columns at the right."""
    narrow = wide <= 400
    left, right = (44.0, wide - 4) if narrow else (56.0, 400.0)
    shapes, y = key(wide, 2.0, COLORS)
    y += 18
    shapes.append(Words(x=STREAM - 16, y=y, text="residual stream x [B, T, D]", align="start", bold=True))
    if not narrow:
        shapes += _line(y, "parameters", "forward FLOPs", bold=True)
    start, y = y + 8, y + 24
    for name, rows, color in (("attention", ATTENTION, MEMORY), ("MLP", MLP, MATH)):
        shapes.append(Words(x=left, y=y, text=name, align="start", bold=True, color=color))
        y += 8
        shapes.append(Arrow(x0=STREAM, y0=y + 11, x1=left - 1, y1=y + 11))
        half, y, joins = _half(rows, color, (left, right), y, narrow)
        shapes += half
        shapes += [
            Arrow(x0=STREAM, y0=start, x1=STREAM, y1=joins - 10, heads=0, thick=2.4),
            Arrow(x0=left, y0=joins, x1=STREAM + 11, y1=joins),
            Area(x=STREAM - 10, y=joins - 10, wide=20, high=20, text="+", color=None, shade=0, bold=True),
        ]
        start, y = joins + 10, y + 14
    shapes.append(Arrow(x0=STREAM, y0=start, x1=STREAM, y1=y + 10, thick=2.4))
    shapes.append(Words(x=STREAM + 12, y=y + 8, text="x [B, T, D] to the next layer", align="start"))
    return Sketch(wide, y + 14, shapes)


def _half(
    rows: Sequence[Row], color: int, sides: tuple[float, float], y: float, narrow: bool
) -> tuple[list[Shape], float, float]:
    """Attention or the MLP: its shapes, the y below it, and the height at which it joins the stream."""
    shapes: list[Shape] = []
    level, waiting = y, None  # the column that passes by the next rows, and where it starts
    for k, row in enumerate(rows):
        across = (sides[1] - sides[0]) * row.share
        high = 38.0 if len(row.boxes) > 1 else 22.0
        shapes += _boxes(row, color, (sides[0], across), (y, high))
        level = y + high / 2
        if not narrow and (row.parameters or row.flops):
            shapes += _line(level + 4, row.parameters or "0", row.flops)
        outs = list(_outs(row, (sides[0], across), y + high, narrow))
        shapes += outs
        y += high + max((16.0 * (out.text.count("\n") + 1) + 2 for out in outs), default=0.0)
        if k == len(rows) - 1:
            break
        after = rows[k + 1]
        for x in _columns(row, after, sides):
            if x > sides[0] + (sides[1] - sides[0]) * after.share:
                waiting = (x, y + 1)
            else:
                shapes.append(_down(x, y + 1, y + GAP))
        if waiting and after.share == 1:
            shapes.append(_down(*waiting, y + GAP))
            waiting = None
        y += GAP
    return shapes, y, level


def _boxes(row: Row, color: int, across: tuple[float, float], down: tuple[float, float]) -> Iterator[Area]:
    """The boxes of a row: filled with weights, dashed for a matmul without, gray for elementwise work."""
    (left, wide), (top, high) = across, down
    between = 8.0
    each = (wide - between * (len(row.boxes) - 1)) / len(row.boxes)
    matmul = bool(row.flops)
    for k, (name, weights) in enumerate(row.boxes):
        text = f"{name}\n{weights}" if high > 30 else f"{name} {weights}".rstrip()
        yield Area(
            x=left + (each + between) * k, y=top, wide=each, high=high, text=text, size=SIZE,
            color=color if matmul else IDLE, shade=0.35 if weights else 0.1 if matmul else 0.2,
            dashed=matmul and not weights,
        )  # fmt: skip


def _outs(row: Row, across: tuple[float, float], y: float, narrow: bool) -> Iterator[Words]:
    """The shapes of what comes out below the boxes; on a phone with the FLOPs, which have no column there."""
    left, wide = across
    each = wide / max(len(row.out), 1)
    for k, out in enumerate(row.out):
        text = (
            out if not narrow else f"{out}\n{row.each[k]} FLOPs" if row.each else f"{out}, {row.flops} FLOPs"
        )
        yield Words(x=left + each * (k + 0.5), y=y + 14, text=text, quiet=True, size=SIZE)


def _columns(row: Row, after: Row, sides: tuple[float, float]) -> list[float]:
    """Where arrows lead from a row to the next: below each box of the row that has more of them."""
    most = max((row, after), key=lambda one: len(one.boxes))
    each = (sides[1] - sides[0]) * most.share / len(most.boxes)
    if len(most.boxes) == 1:
        each = (sides[1] - sides[0]) * min(row.share, after.share)
    return [sides[0] + each * (k + 0.5) for k in range(len(most.boxes))]


def _down(x: float, start: float, end: float) -> Arrow:
    return Arrow(x0=x, y0=start, x1=x, y1=end, thick=1.1)


def _line(y: float, parameters: str, flops: str, bold: bool = False) -> Iterator[Words]:
    """The two columns beside a row."""
    yield Words(x=490, y=y, text=parameters, bold=bold, size=SIZE)
    if flops:
        yield Words(x=610, y=y, text=flops, bold=bold, size=SIZE)
