"""Is a better model worth a slower step? Work times the time of a unit of work, as areas."""

from scalingbook_lib.reader.figures.figure import Figure
from scalingbook_lib.reader.figures.shapes import MATH, Area, Shape, Words
from scalingbook_lib.reader.figures.sketch import Sketch
from scalingbook_lib.units import percent

GAIN, SLOWED = 1.2, 0.8
CASES = (("before", 1.0, 1.0), ("the change", GAIN, SLOWED), ("break-even", 1 / SLOWED, SLOWED))


def worth() -> Figure:
    """Less work, each unit slower: is the area larger or smaller?"""
    areas = [1 / (g * h) for _, g, h in CASES]
    told = ", ".join(f"{name} {area:.2f}" for (name, _, _), area in zip(CASES, areas, strict=True))
    return Figure(
        key="intro.worth",
        alt="Three rectangles. Width is the work that reaches the same quality, height the time of a unit "
        f"of work, so the area is the time of the run: {told}.",
        caption=f"Plus twenty, minus twenty: no tie. The run takes {percent(areas[1] - 1, 1)} longer; only a "
        f"gain of {percent(1 / SLOWED - 1, 2)} pays for a speed of {percent(SLOWED, 2)}.",
        parts=lambda wide: [_areas(wide)],
    )


def _areas(wide: float) -> Sketch:
    """The three rectangles on one floor."""
    unit = 110.0 if wide > 400 else 72.0
    floor, shapes = 34 + unit / SLOWED, []
    for k, (name, g, h) in enumerate(CASES):
        across, high = unit / g, unit / h
        x = wide * (k + 0.5) / len(CASES)
        left = x - unit / 2
        shapes.append(Area(x=left, y=floor - unit, wide=unit, high=unit, color=None, shade=0, dashed=True))
        shapes += _area(name, left, floor, (across, high), f"{1 / (g * h):.2f}")
        said = f"work {1 / g:.2f}\n× time {1 / h:.2f}"
        shapes.append(Words(x=x, y=floor + 18, text=said, quiet=True))
    return Sketch(wide, floor + 44, shapes)


def _area(name: str, x: float, floor: float, size: tuple[float, float], text: str) -> list[Shape]:
    across, high = size
    return [
        Area(x=x, y=floor - high, wide=across, high=high, color=MATH, text=f"run\n{text}"),
        Words(x=x + across / 2, y=16, text=name, bold=True),
    ]
