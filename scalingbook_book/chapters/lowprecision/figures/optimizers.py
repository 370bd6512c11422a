"""What optimizers keep, what five iterations do to a matrix, and who holds which part of it."""

from scalingbook_book.reader.explorers.view import Bars, Chart, Curve, RefLine, Scale, Series
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import MATH, NETWORK, Cells, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.training import optimizers as library
from scalingbook_lib.training.optimizers import OPTIMIZERS, pushed
from scalingbook_lib.units import si

PARTS = {"weights": 0, "gradients": 1, "master": 3, "moments": 4, "rows and columns": 5, "sides": 2}
START = [10.0 ** (-k / 50) for k in range(150, -1, -1)]
M, N, MACHINE = 8192, 28_672, Slice.of(chips.V5P, "4x4x4")


def state() -> Figure:
    """What is kept for each parameter?"""
    states = {name: one.state(1.0) for name, one in OPTIMIZERS.items()}
    series = [Series(part, [s.get(part) for s in states.values()], color) for part, color in PARTS.items()]
    said = ", ".join(f"{name} {s.total:.4g}" for name, s in states.items())
    return Figure(
        key="lowprecision.state",
        alt=f"Stacked bars of bytes a parameter, by weights, gradients, master copy, moments and matrices of either side: {said}.",
        caption=f"Bytes a parameter, for a weight of {M:,} x {N:,}. Weights are 1 or 2 of them. The rest is what the optimizer wants to remember.",
        parts=lambda wide: [Bars(Scale("bytes a parameter"), list(states), series, stacked=True)],
    )


def singular() -> Figure:
    """What do the iterations do?"""
    curves = [
        Curve(f"after {k}" if k else "at first", START, [pushed(s, k) for s in START], color, dashed=not k)
        for color, k in enumerate((0, 1, 3, 5))
    ]
    low, high = min(pushed(s) for s in START if s > 0.01), max(pushed(s) for s in START)
    return Figure(
        key="lowprecision.singular",
        alt=f"A singular value after 0, 1, 3 and 5 iterations against what it was, from 0.001 to 1. After five, all that began above 0.01 lie between {low:.2f} and {high:.2f}.",
        caption=f"Five iterations bring every singular value above a hundredth of the largest to between {low:.2f} and {high:.2f}: the update goes equally far in all directions.",
        parts=lambda wide: [
            Chart(
                Scale("singular value at first", "", "log"),
                Scale("and then", "", "linear", 0, 1.4),
                (*curves, RefLine("1", 1, axis="y")),
            )
        ],
    )


def layouts() -> Figure:
    """Who holds what, and what does it cost?"""
    found = library.layouts(M, N, MACHINE)
    said = "; ".join(
        f"{one.name}: {si(one.math_s, 's')} of arithmetic, {si(one.network_s, 's')} of network"
        for one in found
    )
    return Figure(
        key="lowprecision.layouts",
        alt=f"Four pictures of a matrix on four of the chips: cut along the short side, along the long one, whole on each, and four matrices, one to a chip. {said}.",
        caption=f"One matrix of {M:,} x {N:,} on {MACHINE.chips} TPU v5p, five iterations. Parts are colored by their chip; pale, every chip has all. An owner does not wait for anybody between "
        "the first move and the last.",
        parts=lambda wide: [_layouts(wide, found)],
    )


HELD: dict[str, list[list[int | None]]] = {  # four chips, by colour
    "short side cut": [[c] * 12 for c in (0, 1, 2, 3)],
    "long side cut": [[c for c in (0, 1, 2, 3) for _ in range(3)]] * 4,
    "gathered by all": [[None] * 12] * 4,
    "owned by one": [[0] * 12] * 4,
}


def _layouts(wide: float, found: tuple[library.Orthogonalization, ...]) -> Sketch:
    across = 4 if wide > 400 else 2
    room = wide / across
    shapes: list[Shape] = []
    for k, one in enumerate(found):
        x, y, cell = room * (k % across), 130.0 * (k // across), (room - 16) / 12
        shapes.append(Words(x=x + room / 2, y=y + 14, text=one.name, bold=True))
        shapes.append(Cells(x=x + 8, y=y + 24, rows=HELD[one.name], wide=cell, high=11, air=1.0))
        shapes.append(Words(x=x + room / 2, y=y + 88, text=f"arithmetic {si(one.math_s, 's')}", color=MATH))
        shapes.append(
            Words(x=x + room / 2, y=y + 106, text=f"network {si(one.network_s, 's')}", color=NETWORK)
        )
    return Sketch(wide, 130.0 * len(found) / across - 14, shapes)
