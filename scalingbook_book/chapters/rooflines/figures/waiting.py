"""Figures of the opening matmul: its bytes as areas, its two times, and their overlap in chunks."""

from scalingbook_book.reader.explorers.view import Span
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.lanes import lanes
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import roofline
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.units import count, percent, si
from scalingbook_lib.words import pluralize

B, D, F = 64, 8192, 8192
PRODUCT = roofline.matmul(B, D, F, V5E)
CHUNKS = (1, 2, 3)


def wait() -> Figure:
    """Bytes of X, W and Y as areas; memory time and compute time on one time axis."""
    share = percent(PRODUCT.math_s / PRODUCT.lower_s)
    return Figure(
        key="rooflines.wait",
        alt=f"Top: arrays with areas proportional to their bytes. W is a large square of {si(2 * D * F, 'B')}; "
        f"X and Y are slivers of {si(2 * B * D, 'B')} each. Bottom: two rows on one time axis. Memory is busy "
        f"for {si(PRODUCT.memory_s, 's')}. Compute is busy for {si(PRODUCT.math_s, 's')} and then waits.",
        caption=f"Bytes and times of one matmul with {B} tokens on a TPU v5e, in bf16. Nearly all of the "
        f"bytes are weights, and the compute takes only {share} of the time needed to move them.",
        parts=lambda wide: [_bytes(wide), _clock(wide)],
    )


def _bytes(wide: float) -> Sketch:
    """X, W and Y, with areas proportional to their bytes."""
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
    """Memory and compute as two rows on one time axis."""
    memory_s, math_s = PRODUCT.memory_s, PRODUCT.math_s
    spans = (
        Span("memory", 0, memory_s, si(memory_s, "s"), MEMORY),
        Span("compute", 0, math_s, si(math_s, "s"), MATH),
        Span("compute", math_s, memory_s, "waits", IDLE),
    )
    return lanes(wide, spans)


def overlap() -> Figure:
    """Overlap of memory and compute in one, two and three chunks, between the two bounds."""
    took = ", ".join(f"{n} {si(_piped(n).total_s, 's')}" for n in CHUNKS)
    least, most = si(PRODUCT.lower_s, "s"), si(PRODUCT.upper_s, "s")
    return Figure(
        key="rooflines.overlap",
        alt="Three timelines with a row for memory and a row for compute: the same work in one, two and three "
        f"chunks. While one chunk is computed, the next one is copied. Total times by number of chunks: {took}. "
        f"Two lines mark the larger of the two times, {least}, and their sum, {most}.",
        caption="Overlap of memory and compute in one, two and three chunks. With double buffering, only "
        "the compute of the last chunk is exposed, so more chunks expose less of it. No number of "
        "chunks makes the total shorter than the longer of the two times. (Dashed: the longer time and the "
        "sum.)",
        parts=lambda wide: [_lanes(wide)],
    )


def _piped(chunks: int) -> roofline.CopyPipeline:
    each = {"memory": PRODUCT.memory_s / chunks, "compute": PRODUCT.math_s / chunks}
    return roofline.pipeline(each, chunks)


def _lanes(wide: float) -> Sketch:
    """Two rows for each number of chunks, and the two bounds as vertical lines."""
    left, step, high = 82.0, 98.0, 24.0
    scale = (wide - 66 - left) / PRODUCT.upper_s
    foot = 26 + step * len(CHUNKS)
    shapes: list[Shape] = []
    for k, chunks in enumerate(CHUNKS):
        top, piped = 50 + step * k, _piped(chunks)
        said = pluralize(chunks, "chunk")
        shapes.append(Words(x=2, y=top - 8, text=said, align="start", bold=True))
        for turn in piped.turns:
            down, color = (0, MEMORY) if turn.stage == "memory" else (high + 3, MATH)
            x, long = left + scale * turn.start_s, scale * (turn.end_s - turn.start_s)
            name = turn.stage if turn.chunk == 0 else ""
            words = Words(x=left - 7, y=top + down + 17, text=name, align="end", quiet=True)
            shapes += [Area(x=x, y=top + down, wide=long, high=high, color=color), words]
        took = si(piped.total_s, "s")
        shapes.append(Words(x=wide - 5, y=top + high + 20, text=took, align="end", bold=True))
    for at, name in ((PRODUCT.lower_s, "max"), (PRODUCT.upper_s, "sum")):
        x = left + scale * at
        shapes += [
            Arrow(x0=x, y0=20, x1=x, y1=foot, heads=0, dashed=True, thick=1),
            Words(x=x, y=14, text=name),
        ]
    return Sketch(wide, foot + 4, shapes)
