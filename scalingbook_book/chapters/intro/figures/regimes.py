"""Figures of strong and weak scaling, as blocks of work and as efficiency against the number of chips."""

from scalingbook_book.reader.explorers.view import Chart, Curve, RefLine, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import MATH, MEMORY, Cells, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines import Slice
from scalingbook_lib.machines.chips import V5P
from scalingbook_lib.roofline import scaling
from scalingbook_lib.units import count, percent

P, B = 8e9, 2**21
ENOUGH, FEW = 1024, 256  # tokens of a chip, above and below C/W
POD = Slice.of(V5P, "16x20x28").chips
COUNTS = [2.0 ** (e / 8) for e in range(105)] + [float(POD)]
ONE = scaling.data_parallel(P, B, 1, V5P, axes=3)


def strong(n: float) -> float:
    """Strong-scaling efficiency on n chips, in %."""
    return 100 * scaling.strong_efficiency(scaling.data_parallel(P, B, n, V5P, axes=3), ONE)


def weak(tokens: int, n: float) -> float:
    """Weak-scaling efficiency on n chips with so many tokens per chip, in %."""
    steps = [scaling.data_parallel(P, tokens * k, k, V5P, axes=3) for k in (n, 1)]
    return 100 * scaling.weak_efficiency(*steps)


def regimes() -> Figure:
    """Strong scaling has a knee; weak scaling keeps or loses its efficiency at once."""
    last, floor = percent(strong(COUNTS[-1]) / 100, 2), percent(weak(FEW, COUNTS[-1]) / 100, 2)
    knee = count(round(scaling.knee(B, V5P, axes=3)))
    return Figure(
        key="intro.regimes",
        alt="Above: strong scaling divides one square into ever smaller parts; weak scaling adds squares of the same "
        "size. Below, efficiency over the number of chips: with a fixed batch, it is perfect up to "
        f"{knee} chips and ends at {last}; with {count(ENOUGH)} tokens per chip, it stays perfect; with "
        f"{count(FEW)}, it soon falls to {floor} and stays there.",
        caption="Efficiency against the number of chips, for strong and for weak scaling. With a fixed "
        "batch, efficiency falls beyond the knee. If the batch grows with the number of chips, "
        "there is no knee: with enough tokens per chip, efficiency stays perfect on any number of "
        "chips, and with too few, it is low almost from the start. (TPU v5p, 8 billion parameters, "
        "three torus axes, up to one pod.)",
        parts=lambda wide: [_blocks(wide), _curves()],
    )


def _blocks(wide: float) -> Sketch:
    """On the left, one square in 1, 4 and 16 parts; on the right, 1, 4 and 16 squares."""
    abreast = wide > 400
    half = wide / 2 if abreast else wide
    shapes: list[Shape] = []
    for k, (name, color, grows) in enumerate((("strong", MEMORY, False), ("weak", MATH, True))):
        x, y = (half * k, 0.0) if abreast else (0.0, 138.0 * k)
        said = f"{name}: {'same work per chip' if grows else 'same total work'}"
        shapes.append(Words(x=x + half / 2, y=y + 16, text=said, bold=True))
        for j, side in enumerate((1, 2, 4)):
            middle, part = x + half * (j + 0.5) / 3, 20.0 if grows else 80.0 / side
            corner = middle - part * side / 2, y + 70 - part * side / 2
            rows = [[color] * side for _ in range(side)]
            shapes.append(Cells(x=corner[0], y=corner[1], rows=rows, wide=part, high=part))
            chips = f"{side * side} chip{'s' * (side > 1)}"
            shapes.append(Words(x=middle, y=y + 128, text=chips, quiet=True))
    return Sketch(wide, 138.0 if abreast else 276.0, shapes)


def _curves() -> Chart:
    return Chart(
        Scale("chips n", "", "log", 1, COUNTS[-1]),
        Scale("efficiency", "%", "linear", 0, 110),
        (
            Curve("strong", COUNTS, [strong(n) for n in COUNTS], MEMORY),
            Curve(f"weak: {count(ENOUGH)} tokens per chip", COUNTS, [weak(ENOUGH, n) for n in COUNTS], MATH),
            Curve(
                f"weak: {count(FEW)} tokens per chip",
                COUNTS,
                [weak(FEW, n) for n in COUNTS],
                MATH,
                dashed=True,
            ),
            RefLine("knee", scaling.knee(B, V5P, axes=3)),
        ),
    )
