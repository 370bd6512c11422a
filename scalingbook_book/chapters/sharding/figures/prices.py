"""Figures of the time of a strategy: hops or bytes, gather or reduce, three times of a layer, overlap."""

from itertools import pairwise
from math import sqrt

from scalingbook_book.chapters.sharding.figures.cuts import LAYER, halves
from scalingbook_book.reader.explorers.view import (
    Chart,
    Curve,
    Points,
    RefLine,
    Regions,
    Scale,
    Span,
)
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.lanes import lanes as stretches
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, NETWORK
from scalingbook_lib.collectives import all_gather, latency_bound_below
from scalingbook_lib.machines.chips import V5E, V5P, Slice
from scalingbook_lib.roofline import CopyPipeline
from scalingbook_lib.sharded_matmul import SplitWeight, solve
from scalingbook_lib.units import si

MATMUL = {"B": 512, "D": 8192, "F": 16384}  # gather the weights, or reduce the result?
RINGS = {n: V5E.axis(n, wrapped=True) for n in (4, 16, 64)}
SIZES = [10 ** (3 + k / 4) for k in range(25)]


def bend() -> Figure:
    """Time over bytes: a plateau of hops, then a slope of bytes."""
    bends = {n: latency_bound_below(ring) for n, ring in RINGS.items()}
    said = ", ".join(f"{n} chips {si(at, 'B')}" for n, at in bends.items())
    curves = [
        Curve(f"{n} chips", SIZES, [all_gather(size, ring).total_s for size in SIZES], color)
        for color, (n, ring) in enumerate(RINGS.items())
    ]
    turned = [all_gather(at, RINGS[n]).total_s for n, at in bends.items()]
    dots = Points("bend", list(bends.values()), turned, ["", "", ""], IDLE)
    return Figure(
        key="sharding.bend",
        alt="Time of an AllGather against the bytes of the array, on logarithmic axes, for rings of 4, 16 "
        "and 64 chips. Each curve is flat at first, higher for more chips, and then all rise on one slope. "
        f"They bend at: {said}.",
        caption="Time of an AllGather against the size of the array, on rings of 4, 16 and 64 chips. Small "
        "arrays are latency-bound, so more chips, and therefore more hops, take longer. Large "
        "arrays are bandwidth-bound, and the number of chips hardly matters. At the dots, hops and "
        "bytes take equally long. (v5e links.)",
        parts=lambda wide: [
            Chart(Scale("gathered array M", "B", "log", 1e3, 1e9), Scale("time", "s", "log"), (*curves, dots))
        ],
    )


def border() -> Figure:
    """The faster strategy by tokens and width: gather the weights, or reduce the result?"""
    split = SplitWeight(V5P, V5P.axis(4), MATMUL["F"], exact=False)
    r, (xs, ys) = split.r, (_edges(16, 65536, 48), _edges(64, 65536, 48))
    inside, beside = ([sqrt(a * b) for a, b in pairwise(edges)] for edges in (xs, ys))
    cells = [[way for way, _ in row] for row in split.fastest_of_all(inside, beside, 2)]
    curve = [16, r, 65536]
    marks = (
        Regions(["gather W", "reduce Z"], xs, ys, cells, colors=(MATH, NETWORK)),
        Curve("", curve, [2 * min(b, r) for b in curve], IDLE),
        RefLine(f"B = {r:,.0f}", r),
        Points("", [MATMUL["B"]], [MATMUL["D"]], ["the example's layer"], IDLE),
    )
    return Figure(
        key="sharding.border",
        alt=f"A map over tokens B and width D. The boundary rises as D = 2B and is flat above B = {r:,.0f}. "
        "Above the boundary, reducing the result wins; below it, gathering the weights. The layer of the "
        f"example, with {MATMUL['B']} tokens and width {MATMUL['D']:,}, lies above it.",
        caption="Which strategy is faster for each batch size and width. If the layer is wide and the batch "
        "moderate, leave the weights where they are and reduce the result. If the layer is narrow "
        "or the batch large, gather the weights. (From the two formulas, for a ring of four v5p chips.)",
        parts=lambda wide: [
            Chart(Scale("tokens B", "", "log", 16, 65536), Scale("width D", "", "log", 64, 65536), marks)
        ],
    )


def _edges(low: float, high: float, cells: int) -> list[float]:
    return [low * (high / low) ** (k / cells) for k in range(cells + 1)]


def three() -> Figure:
    """The layer of the example, with its weights in place: network, compute, memory."""
    names = {"network": ("comms_s", NETWORK), "compute": ("math_s", MATH), "HBM": ("hbm_s", MEMORY)}
    times = {name: sum(getattr(half, term) for half in halves()) for name, (term, _) in names.items()}
    said = ", ".join(f"{name} {si(seconds, 's')}" for name, seconds in times.items())
    spans = [Span(name, 0, times[name], si(times[name], "s"), names[name][1]) for name in names]
    return Figure(
        key="sharding.three",
        alt=f"Three times of one layer on four chips as bars: {said}.",
        caption="Compute, network and HBM time of one layer. Reading the weights from HBM takes longest, so "
        f"the layer is memory-bound. ({LAYER['B']} tokens on four TPU v5e chips; the activations move.)",
        parts=lambda wide: [stretches(wide, spans)],
    )


def lanes() -> Figure:
    """An AllGather and its matmul: one after the other, and in four chunks."""
    mesh = Slice.of(V5E, "2x4").mesh(X=2, Y=4)
    found = solve("A[I, J_Y] · B[J, K_Y] -> C[I, K_Y]", mesh, {"I": 4096, "J": 8192, "K": 32768})
    gather = found.named("gather A over Y")
    runs = {chunks: gather.overlapped(chunks) for chunks in (1, 4)}
    took = {chunks: si(run.total_s, "s") for chunks, run in runs.items()}
    return Figure(
        key="sharding.lanes",
        alt="Two timelines. In one piece, the matrix unit waits for the whole AllGather, and the total "
        f"is {took[1]}. In four chunks, it starts after the first chunk while later chunks arrive, "
        f"and the total is {took[4]}.",
        caption="Timeline of an AllGather and the matmul that uses its result, in one piece and in four "
        "chunks. Only the transfer of the first chunk is exposed, and the others are hidden. No "
        f"number of chunks makes the total shorter than {si(gather.lower_s, 's')}, the time of the "
        "matrix unit alone.",
        parts=lambda wide: [
            stretches(wide, _spans(run), end=runs[1].total_s, title=f"{name}: {took[chunks]}")
            for (chunks, run), name in zip(runs.items(), ("in one piece", "in four chunks"), strict=True)
        ],
    )


def _spans(run: CopyPipeline) -> list[Span]:
    """The chunks on the link, and their matmuls on the matrix unit."""
    lanes = {"network": ("link", NETWORK), "chip": ("matrix unit", MATH)}
    turns = [(lanes[turn.stage], turn) for turn in run.turns]
    return [Span(name, t.start_s, t.end_s, str(t.chunk + 1), color) for (name, color), t in turns]
