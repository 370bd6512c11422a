"""The opening's matmul: its bytes as areas, its two times on one clock, and the clock in chunks."""

from scalingbook_book.reader.explorers.view import Span
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.lanes import lanes
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import roofline
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.units import count, percent, si

B, D, F = 64, 8192, 8192
PRODUCT = roofline.matmul(B, D, F, V5E)
CHUNKS = (1, 2, 3)


def wait() -> Figure:
    """Why does a healthy chip stand idle for three quarters of a matmul?"""
    share = percent(PRODUCT.math_s / PRODUCT.lower_s)
    return Figure(
        key="rooflines.wait",
        alt=f"Above, arrays drawn by their bytes: W is a large square of {si(2 * D * F, 'B')}, X and "
        f"Y are slivers of {si(2 * B * D, 'B')} each. Below, two lanes on one clock: the memory "
        f"is busy for {si(PRODUCT.memory_s, 's')}, the arithmetic for {si(PRODUCT.math_s, 's')} "
        "and then waits.",
        caption="The weights are nearly all of the bytes, and the bytes are the work: the arithmetic is "
        f"done in {share} of the time that W needs to arrive. (TPU v5e, bf16, {B} rows.)",
        parts=lambda wide: [_bytes(wide), _clock(wide)],
    )


def _bytes(wide: float) -> Sketch:
    """X, W and Y with areas as their bytes."""
    side, top = (190.0 if wide > 400 else 150.0), 32.0
    thin = max(side * B / D, 2.5)
    left, right = wide / 2 - side / 2, wide / 2 + side / 2
    sliver = {"y": top, "wide": thin, "high": side, "color": MEMORY, "shade": 0.8, "top": f"B = {B}"}
    weights = f"W[D, F]\n{si(2 * D * F, 'B')}"
    arrays: list[Shape] = [
        Area(x=left, y=top, wide=side, high=side, color=MEMORY, text=weights, top=f"F = {count(F)}"),
        Area(x=left - 50, **sliver),
        Area(x=right + 50 - thin, **sliver),
        Words(x=left - 50, y=top + side + 18, text=f"X[B, D]\n{si(2 * B * D, 'B')}"),
        Words(x=right + 50, y=top + side + 18, text=f"Y[B, F]\n{si(2 * B * F, 'B')}"),
    ]
    return Sketch(wide, top + side + 42, arrays)


def _clock(wide: float) -> Sketch:
    """Both lanes from 0 to the end of the longer."""
    memory_s, math_s = PRODUCT.memory_s, PRODUCT.math_s
    spans = (
        Span("memory", 0, memory_s, si(memory_s, "s"), MEMORY),
        Span("arithmetic", 0, math_s, si(math_s, "s"), MATH),
        Span("arithmetic", math_s, memory_s, "waits", IDLE),
    )
    return lanes(wide, spans)


def overlap() -> Figure:
    """What do chunks hide? All of the shorter lane but its first piece."""
    took = ", ".join(f"{n} {si(_piped(n).total_s, 's')}" for n in CHUNKS)
    least, most = si(PRODUCT.lower_s, "s"), si(PRODUCT.upper_s, "s")
    return Figure(
        key="rooflines.overlap",
        alt="Three pairs of lanes, memory and arithmetic, with the same work in one, two and three "
        f"chunks. A chunk is computed while the next one is copied. By number of chunks: {took}. "
        f"Two lines mark the larger of the two times, {least}, and their sum, {most}.",
        caption="Only the last chunk of the arithmetic is left uncovered, and more chunks make it smaller. "
        "Nothing makes the longer lane shorter.",
        parts=lambda wide: [_lanes(wide)],
    )


def _piped(chunks: int) -> roofline.CopyPipeline:
    each = {"memory": PRODUCT.memory_s / chunks, "arithmetic": PRODUCT.math_s / chunks}
    return roofline.pipeline(each, chunks)


def _lanes(wide: float) -> Sketch:
    """A pair of lanes for each number of chunks, and the two bounds across them."""
    left, step, high = 82.0, 78.0, 24.0
    scale = (wide - 66 - left) / PRODUCT.upper_s
    foot = 26 + step * len(CHUNKS)
    shapes: list[Shape] = []
    for k, chunks in enumerate(CHUNKS):
        top, piped = 30 + step * k, _piped(chunks)
        for turn in piped.turns:
            down, color = (0, MEMORY) if turn.stage == "memory" else (high + 3, MATH)
            x, long = left + scale * turn.start_s, scale * (turn.end_s - turn.start_s)
            name = turn.stage if turn.chunk == 0 else ""
            words = Words(x=left - 7, y=top + down + 17, text=name, align="end", quiet=True)
            shapes += [Area(x=x, y=top + down, wide=long, high=high, color=color), words]
        took = si(piped.total_s, "s")
        shapes.append(Words(x=wide - 5, y=top + high + 20, text=took, align="end", bold=True))
    for at, name in ((PRODUCT.lower_s, "larger"), (PRODUCT.upper_s, "sum")):
        x = left + scale * at
        shapes += [
            Arrow(x0=x, y0=20, x1=x, y1=foot, heads=0, dashed=True, thick=1),
            Words(x=x, y=14, text=name),
        ]
    return Sketch(wide, foot + 4, shapes)
