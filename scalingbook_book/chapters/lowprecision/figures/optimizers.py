"""Figures of training state by optimizer, the effect of Newton-Schulz iterations, and their four layouts."""

from scalingbook_book.chapters.lowprecision.case import LAYOUTS, PARTS
from scalingbook_book.reader.explorers.view import Bars, Chart, Curve, RefLine, Scale, Series
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import MATH, NETWORK, Cells, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.training import optimizers as library
from scalingbook_lib.training.optimizers import OPTIMIZERS, pushed
from scalingbook_lib.units import si

START = [10.0 ** (-k / 50) for k in range(150, -1, -1)]
M, N, MACHINE = 8192, 28_672, Slice.of(chips.V5P, "4x4x4")


def state() -> Figure:
    """Bytes of training state per parameter."""
    states = {name: one.state(1.0) for name, one in OPTIMIZERS.items()}
    series = [
        Series(label, [s.get(part) for s in states.values()], color) for part, (label, color) in PARTS.items()
    ]
    said = ", ".join(f"{name} {s.total:.4g}" for name, s in states.items())
    return Figure(
        key="lowprecision.state",
        alt=f"Stacked bars of bytes per parameter: weights, gradients, master copy, moments, row and column averages, and Kronecker factors. {said}.",
        caption=f"Training state in bytes per parameter, for a weight matrix of {M:,} × {N:,}. The weights "
        "themselves take only 1 or 2 bytes. The rest is gradients and optimizer state.",
        parts=lambda wide: [Bars(Scale("bytes per parameter"), list(states), series, stacked=True)],
    )


def singular() -> Figure:
    """How the iterations change a singular value."""
    curves = [
        Curve(f"after {k}" if k else "before", START, [pushed(s, k) for s in START], color, dashed=not k)
        for color, k in enumerate((0, 1, 3, 5))
    ]
    ends = [pushed(s) for s in START if s > 0.01]
    low, high = min(ends), max(ends)
    return Figure(
        key="lowprecision.singular",
        alt="A singular value after 0, 1, 3 and 5 iterations, plotted against its initial value from "
        f"0.001 to 1. After five, all values that started above 0.01 lie between {low:.2f} and "
        f"{high:.2f}.",
        caption="Singular values after Newton–Schulz iterations, against their initial values. Five "
        "iterations bring every singular value that starts above a hundredth of the largest into the "
        f"range from {low:.2f} to {high:.2f}, so the update is about equally large in all directions.",
        parts=lambda wide: [
            Chart(
                Scale("initial singular value", "", "log"),
                Scale("singular value afterwards", "", "linear", 0, 1.4),
                (*curves, RefLine("target: 1", 1, axis="y")),
            )
        ],
    )


def layouts() -> Figure:
    """Four layouts of a matrix, with the time of the iteration in each."""
    found = library.layouts(M, N, MACHINE)
    owned = next(one for one in found if one.name == "owned by one")
    said = "; ".join(
        f"{LAYOUTS[one.name]}: {si(one.math_s, 's')} of compute, {si(one.network_s, 's')} of communication"
        for one in found
    )
    return Figure(
        key="lowprecision.layouts",
        alt=f"Four drawings of a matrix on four of the chips: sharded along the short side, sharded along the long side, replicated, and owned by one chip. {said}.",
        caption=f"Four layouts for five iterations on matrices of {M:,} × {N:,}, on {MACHINE.chips} TPU "
        "v5p, with the average time per matrix. Colors stand for chips (four are shown), and a pale matrix is "
        "replicated on all of them. With one owner per matrix, a chip communicates only before the first "
        f"iteration and after the last one. An owner computes for {si(owned.math_s * MACHINE.chips, 's')} on its own "
        f"matrix, but in this time the {MACHINE.chips} chips process {MACHINE.chips} matrices.",
        parts=lambda wide: [_layouts(wide, found)],
    )


HELD: dict[str, list[list[int | None]]] = {  # four chips, by color
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
        x, y, cell = room * (k % across), 146.0 * (k // across), (room - 16) / 12
        name = (
            LAYOUTS[one.name].replace(" sharded", "\nsharded").replace(" on", "\non").replace(" per", "\nper")
        )
        shapes.append(Words(x=x + room / 2, y=y + 14, text=name, bold=True))
        shapes.append(Cells(x=x + 8, y=y + 40, rows=HELD[one.name], wide=cell, high=11, air=1.0))
        shapes.append(Words(x=x + room / 2, y=y + 104, text=f"compute {si(one.math_s, 's')}", color=MATH))
        shapes.append(
            Words(x=x + room / 2, y=y + 122, text=f"network {si(one.network_s, 's')}", color=NETWORK)
        )
    return Sketch(wide, 146.0 * len(found) / across - 14, shapes)
