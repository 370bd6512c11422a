"""Figures of what each chip of a ring receives in an AllReduce, and of the matmul order that hides it."""

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, MATH, NETWORK, Area, Arrow, Cells, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import rules
from scalingbook_lib.machines.chips import V5P
from scalingbook_lib.roofline import scaling
from scalingbook_lib.units import GB, si

P, B = 8e9, 2**21
RINGS = (4, 16)
LAYER = scaling.data_parallel(1024 * 4096, 65536, 64, V5P, axes=3)


def received(n: int) -> float:
    """Bytes that an AllReduce of all gradients brings into each of n chips."""
    return scaling.data_parallel(P, B, n, V5P).network_s * rules.network_bytes_per_s(V5P)


def receives() -> Figure:
    """With more chips, each one's part of the batch shrinks; the gradients that it receives do not."""
    told = "; ".join(
        f"on {n} chips, each has {B // n:,} tokens and receives {si(received(n), 'B')}" for n in RINGS
    )
    return Figure(
        key="intro.receives",
        alt="Two rings of chips, drawn below the same batch. Each chip processes one part of the batch, and a bar below "
        f"each chip shows the gradients that it has to receive: {told}.",
        caption="What each chip of a ring computes and receives in one step. With four times as many chips, "
        "each chip has a quarter of the work but receives just as many bytes: on long rings, "
        f"{si(4 * P, 'B')}, which is twice the {si(2 * P, 'B')} of the gradients.",
        parts=lambda wide: [_ring(wide, n) for n in RINGS],
    )


def _ring(wide: float, n: int) -> Sketch:
    """The batch, the chips below it, and what each receives."""
    left, each = 10.0, (wide - 20) / n
    side, sheet = 15.0, (14.0, received(n) / GB * 1.6)
    bar, chip, floor = 26.0, 74.0, 110.0
    middles = [left + each * (k + 0.5) for k in range(n)]
    ring = chip + side / 2
    shapes: list[Shape] = [
        Words(x=left, y=16, text=f"{n} chips on a ring", bold=True, align="start"),
        Words(x=wide - left, y=16, text=f"{B // n:,} tokens each", align="end", color=MATH),
        Cells(x=left, y=bar, rows=[[MATH] * n], wide=each, high=26),
        Arrow(x0=left, y0=ring, x1=wide - left, y1=ring, heads=0, thick=1.2),
        Arrow(x0=left, y0=ring, x1=left, y1=floor + 58, heads=0, thick=1.2),
        Arrow(x0=wide - left, y0=ring, x1=wide - left, y1=floor + 58, heads=0, thick=1.2),
        Arrow(x0=left, y0=floor + 58, x1=wide - left, y1=floor + 58, heads=0, thick=1.2),
    ]
    for x in middles:
        shapes.append(Arrow(x0=x, y0=bar + 26, x1=x, y1=chip - 2, thick=1.1, color=MATH))
        shapes.append(Area(x=x - side / 2, y=chip, wide=side, high=side, color=None, shade=0.5))
        shapes.append(Arrow(x0=x, y0=floor - 1, x1=x, y1=chip + side + 2, thick=1.1, color=NETWORK))
        shapes.append(
            Area(x=x - sheet[0] / 2, y=floor, wide=sheet[0], high=sheet[1], color=NETWORK, shade=0.4)
        )
    said = f"each chip receives {si(received(n), 'B')} of gradients"
    shapes.append(Words(x=wide / 2, y=floor + 76, text=said, color=NETWORK))
    return Sketch(wide, floor + 92, shapes)


def order() -> Figure:
    """Timelines of the layer as compiled, and with its AllReduce overlapped as far as one layer allows."""
    waits, best = LAYER.math_s + LAYER.network_s, beside_dx()
    return Figure(
        key="intro.order",
        alt="Timelines of two orders of the same matmuls, each with a row for compute and a row for "
        "the network. As compiled, dx and dw are followed by the AllReduce alone and then by y, "
        f"{si(waits, 's')} in total. In the order y, dw, dx, the AllReduce overlaps with dx, only "
        f"{si(best - LAYER.math_s, 's')} of it are exposed, and the total is {si(best, 's')}.",
        caption="Two schedules of one layer. The same three matmuls and the same AllReduce take "
        f"{si(waits, 's')} in one order and {si(best, 's')} in the other. In training, dw needs dy, "
        "which depends on y, so only dx is left to hide the AllReduce. In a deep model, the "
        f"backward pass of the previous layer follows dx and hides the rest: {si(LAYER.math_s, 's')} "
        "per layer.",
        parts=lambda wide: [_lanes(wide, hidden=False), _lanes(wide, hidden=True)],
    )


def beside_dx() -> float:
    """Time of the layer if the AllReduce of dw starts with dx, the only matmul that does not come before dw."""
    # dw needs dy, which comes from the loss and so from y: y first, then dw, then dx beside the AllReduce
    dx = LAYER.forward_s
    return LAYER.math_s + max(LAYER.network_s - dx, 0)


def _lanes(wide: float, *, hidden: bool) -> Sketch:
    """Three matmuls in one row and the AllReduce of dw in the other, with the last after it or overlapping it."""
    left, high = (84.0, 26.0) if wide > 400 else (2.0, 26.0)
    scale = (wide - left - 4) / (LAYER.math_s + LAYER.network_s)
    each, sent = LAYER.forward_s * scale, LAYER.network_s * scale
    send = 2 * each
    starts = (0.0, each, send if hidden else send + sent)
    shapes: list[Shape] = [
        Area(x=left + start, y=26, wide=each, high=high, color=MATH, text=name)
        for name, start in zip(("y", "dw", "dx") if hidden else ("dx", "dw", "y"), starts, strict=True)
    ]
    shapes.append(Area(x=left + send, y=60, wide=sent, high=high, color=NETWORK, text="AllReduce of dw"))
    idle, waits = (send + each, sent - each) if hidden else (send, sent)
    text = "waits" if waits > 44 else ""
    idling = Area(x=left + idle, y=26, wide=waits, high=high, color=IDLE, shade=0.06, dashed=True, text=text)
    shapes.append(idling)
    if wide > 400:
        shapes += [
            Words(x=left - 7, y=43.5, text="compute", align="end", quiet=True),
            Words(x=left - 7, y=77.5, text="network", align="end", quiet=True),
        ]
    took = si(beside_dx() if hidden else LAYER.math_s + LAYER.network_s, "s")
    title = f"dx overlaps with the AllReduce: {took}" if hidden else f"as compiled, y waits: {took}"
    shapes.append(Words(x=left, y=16, text=title, bold=True, align="start"))
    return Sketch(wide, 104, shapes)
