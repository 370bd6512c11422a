"""One panel of every kind, with whatever it can carry: for the tests of what draws them."""

from scalingbook_book.reader.explorers import layouts
from scalingbook_book.reader.explorers.view import (  # fmt: skip
    Band,
    Bars,
    Cell,
    Chart,
    Curve,
    Grid,
    Link,
    Network,
    Node,
    Points,
    RefLine,
    Regions,
    Scale,
    Series,
    Span,
    Timeline,
)

NAN, INF = float("nan"), float("inf")
XS = list(range(1, 2000, 10))
EDGES = [2.0**e for e in range(11)]

PANELS = {
    "chart": Chart(
        Scale("batch", "tokens"),
        Scale("time", "s"),
        (
            Curve("math", XS, [x * 5.7e-7 for x in XS]),
            Curve("memory", XS, [1.66e-4 + x * 3e-8 for x in XS], dashed=True),
            Band("between max and sum", XS, [1.7e-4] * len(XS), [x * 7e-7 + 1.7e-4 for x in XS]),
            Points("measured", [100, 500, 1500], [2e-4, 3e-4, 9e-4], ["small", "medium", "large"]),
            RefLine("break-even", 300, axis="x"),
            RefLine("one millisecond", 1e-3, axis="y"),
        ),
        title="Time of a matmul",
    ),
    "log": Chart(
        Scale("intensity", "FLOPs/byte", "log", 1, 1e4),
        Scale("rate", "FLOPs/s", "log", 1e12, 1e15),
        (
            Curve("leaves the box", [0.1, 10, 1e6], [1e11, 1e13, 1e16]),
            Curve("with gaps", [1, 10, 100, 1000], [1e13, INF, 1e14, NAN]),
            Points("out", [1e9, 10], [1e13, 1e14]),
            RefLine("out too", 1e7),
        ),
    ),
    "regions": Chart(
        Scale("B", "tokens", "pow2"),
        Scale("D", "", "pow2"),
        (
            Regions(("gather", "reduce"), EDGES, EDGES, [[int(i > j) for i in range(10)] for j in range(10)]),
            RefLine("B = C/W", 100),
        ),
    ),
    "ramp": Chart(
        Scale("D", "", "pow2"),
        Scale("F", "", "pow2"),
        (
            Regions(
                ("few", "some", "many"),
                EDGES,
                EDGES,
                [[None, 0, 1, 2, 2, 2, 1, 0, None, None]] * 10,
                ramp=True,
            ),
        ),
    ),
    "stacked": Bars(
        Scale("time", "s"),
        ("gather the weight, then multiply", "multiply, then reduce"),
        (Series("math", (1e-3, 1e-3)), Series("communication", (2e-3, 0.5e-3))),
        stacked=True,
        refs=(RefLine("lower bound", 1.1e-3), RefLine("no overlap", 1.2e-3)),
        title="Two strategies",
    ),
    "grouped": Bars(
        Scale("bytes a chip", "B", "log", 1e6, 1e11),
        ("weights", "optimizer"),
        (Series("before", (1.4e10, 5.6e10)), Series("after", (1.4e8, 0.0))),
    ),
    "grid": Grid(
        "A[I_X, J_Y] on 8 chips",
        ("Y0", "Y1"),
        ("X0", "X1", "X2", "X3"),
        [
            [Cell(f"chip {i + 4 * j}\n512 × 8", i, "note", (i / 4, (i + 1) / 4, j / 2, 1)) for i in range(4)]
            for j in range(2)
        ],
    ),
    "cells": Grid(
        "", (), (), [[Cell(str(i), i % 7 or None, level=0.5) for i in range(16)] for _ in range(16)]
    ),
    "timeline": Timeline(
        ("copy", "compute"),
        (Span("copy", 0, 1e-3, "chunk 0"), Span("compute", 1e-3, 1.7e-3, "a chunk with a long name", 1)),
        refs=(RefLine("without overlap", 4e-3),),
        title="Overlap",
    ),
    "ring": Network(
        [Node(str(i), *p, parts=[i % 6] * i + [None] * (8 - i)) for i, p in enumerate(layouts.ring(8))],
        [Link(i, (i + 1) % 8, 1.0, "4 MB", 0) for i in range(8)]
        + [Link(i, i - 1, 0.5, "", 1) for i in range(1, 8)],
        "AllGather",
        aspect=0.7,
    ),
    "torus": Network(
        [Node(str(i), *p) for i, p in enumerate(layouts.grid(2, 4))],
        [Link(i, i // 4 * 4 + (i + 1) % 4, wrap=i % 4 == 3, label="1 MB", color=2) for i in range(8)]
        + [Link(0, 4, bend=0.4)],
    ),
}
