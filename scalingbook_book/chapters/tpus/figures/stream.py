"""Figures of large operations that stream through a small memory: chunks on a timeline, and their buffers."""

from scalingbook_book.chapters.tpus.explorers.pipeline import Reduction
from scalingbook_book.reader.explorers.marks import RefLine
from scalingbook_book.reader.explorers.panels import Span, Timeline
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import CACHE, IDLE, MATH, MEMORY, Area, Brace, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.roofline import CopyPipeline
from scalingbook_lib.units import MiB, binary, si

ARRAY, OPS, CHUNKS = 64 * MiB, 16, 8
WORK = Reduction(ARRAY, OPS, V5E.hbm_bytes_per_s)
TILE, DEPTH = 512, 512
VMEM = 16 * MiB  # that a kernel gets by default


def stream() -> Figure:
    """Two arrays through VMEM to the vector unit, in one chunk and in eight."""
    one, many = WORK.pipeline(1), WORK.pipeline(CHUNKS)
    return Figure(
        key="tpus.stream",
        alt="Two timelines with three stages: HBM to VMEM, VMEM to registers, vector unit. With one "
        f"chunk, the stages work one after the other and take {si(one.total_s, 's')}. With {CHUNKS} "
        f"chunks, they overlap and take {si(many.total_s, 's')}; the slowest stage alone takes "
        f"{si(many.lower_s, 's')}.",
        caption="The three stages of a streaming kernel, with one chunk and with eight. One chunk leaves "
        "every stage waiting for the one before it. Eight chunks overlap, so the total time "
        "approaches that of the slowest stage. (Σ f(x, y) over two 64 MiB arrays on a v5e, with 16 "
        "FLOPs per pair of elements. Chunks alternate between two buffers, blue and orange.)",
        parts=lambda wide: [_lanes(one, one.total_s), _lanes(many, one.total_s)],
    )


def _lanes(line: CopyPipeline, end: float) -> Timeline:
    numbered = line.chunks > 1
    spans = [Span(t.stage, t.start_s, t.end_s, str(t.chunk + 1) * numbered, t.chunk % 2) for t in line.turns]
    chunks = f"{line.chunks} chunk{'s' * numbered}: {si(line.total_s, 's')}"
    return Timeline(
        tuple(line.chunk_s), spans, "s", end, [RefLine("slowest stage alone", line.lower_s)], chunks
    )


def buffers() -> Figure:
    """What a tiled matmul keeps in VMEM: two of each tile that moves, one of the sums."""
    tile = 2 * TILE * DEPTH
    parts = [
        ("X", tile, MEMORY, 2),
        ("W", tile, MEMORY, 2),
        ("Y", 2 * TILE**2, CACHE, 2),
        ("accumulator", 4 * TILE**2, MATH, 1),
    ]
    total = sum(nbytes * copies for _, nbytes, _, copies in parts)
    return Figure(
        key="tpus.buffers",
        alt="A bar for the 16 MiB of VMEM that a kernel gets by default. It holds two tiles of X, two "
        f"of W, two of Y and one of fp32 accumulators, {binary(total)} in total; the rest is free.",
        caption=f"VMEM buffers of a kernel with tiles of {TILE} × {TILE}, {binary(total)} in total. While "
        "one buffer of a tile is in use, the next tile arrives in the other. The accumulators never "
        "move, so one buffer is enough for them. (To scale; the buffers are drawn in the order in which they are listed.)",
        parts=lambda wide: [_bar(wide, parts, total)],
    )


def _bar(wide: float, parts: list[tuple[str, int, int, int]], total: int) -> Sketch:
    scale = (wide - 8) / VMEM
    x, shapes, told = 4.0, list[Shape](), list[str]()
    for name, nbytes, color, copies in parts:
        step = nbytes * scale
        for k in range(copies):
            shapes.append(
                Area(
                    x=x + k * step,
                    y=30,
                    wide=max(step - 2, step / 2),
                    high=56,
                    color=color,
                    shade=0.5 - 0.25 * k,
                )
            )
        told.append(f"{copies} × {name}" if copies > 1 else name)
        x += step * copies
    shapes.append(Words(x=4, y=16, text=", ".join(told), align="start"))
    shapes.append(
        Area(x=x, y=30, wide=wide - x - 4, high=56, color=IDLE, shade=0.04, dashed=True, text="free")
    )
    used = f"{binary(total)} of {binary(VMEM)}"
    shapes.append(Brace(x0=4, x1=x, y=92))
    shapes.append(Words(x=4, y=113, text=used, align="start"))
    return Sketch(wide, 122, shapes)
