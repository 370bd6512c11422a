"""Figure of when a better model is worth a slower step: work times the time per unit of work, as areas."""

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import MATH, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.units import percent

GAIN, SLOWED = 1.2, 0.8
CASES = (("before", 1.0, 1.0), ("the change", GAIN, SLOWED), ("break-even", 1 / SLOWED, SLOWED))


def worth() -> Figure:
    """Three runs as areas: less work, but more time per unit of work."""
    areas = [1 / (g * h) for _, g, h in CASES]
    told = ", ".join(f"{name} {area:.2f}" for (name, _, _), area in zip(CASES, areas, strict=True))
    return Figure(
        key="intro.worth",
        alt="Three rectangles. The width is the work needed for the same quality, the height is the time per unit "
        f"of work, so the area is the time of the run: {told}.",
        caption="Each rectangle is a training run to the same quality: its width is the work, its height "
        "the time per unit of work, and its area the total time. With a 20% quality gain and a 20% "
        f"efficiency loss, the run takes {percent(areas[1] - 1, 1)} longer. Only a gain of "
        f"{percent(1 / SLOWED - 1, 2)} makes up for running at {percent(SLOWED, 2)} of the speed. (To scale; "
        "the dashed square is the run before the change.)",
        parts=lambda wide: [_areas(wide)],
    )


def _areas(wide: float) -> Sketch:
    """The three rectangles on one baseline."""
    unit = 110.0 if wide > 400 else 72.0
    floor, shapes = 34 + unit / SLOWED, []
    for k, (name, g, h) in enumerate(CASES):
        across, high = unit / g, unit / h
        x = wide * (k + 0.5) / len(CASES)
        left = x - unit / 2
        shapes.append(Area(x=left, y=floor - unit, wide=unit, high=unit, color=None, shade=0, dashed=True))
        shapes += _area(name, left, floor, (across, high), f"{1 / (g * h):.2f}")
        said = f"work {1 / g:.2f}\n× {1 / h:.2f} per unit"
        shapes.append(Words(x=x, y=floor + 18, text=said, quiet=True))
    return Sketch(wide, floor + 44, shapes)


def _area(name: str, x: float, floor: float, size: tuple[float, float], text: str) -> list[Shape]:
    across, high = size
    return [
        Area(x=x, y=floor - high, wide=across, high=high, color=MATH, text=f"time\n{text}"),
        Words(x=x + across / 2, y=16, text=name, bold=True),
    ]
