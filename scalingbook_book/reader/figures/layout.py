"""Draw the parts of a whole as a strip, and a legend of swatches for their colors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalingbook_book.reader.draw.svg import measure
from scalingbook_book.reader.figures.shapes import Area, Shape, Words


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a strip: its name, its size in any unit, and its color."""

    name: str
    size: float
    color: int | None = 0


def strip(x: float, y: float, wide: float, high: float, parts: Sequence[Part]) -> list[Area]:
    """Return the parts side by side over `wide`; each carries its name if there is room."""
    whole = sum(part.size for part in parts)
    areas: list[Area] = []
    for part in parts:
        long = wide * part.size / whole
        name = part.name if measure(part.name) + 6 < long else ""
        areas.append(Area(x=x, y=y, wide=long, high=high, text=name, color=part.color))
        x += long
    return areas


def key(wide: float, y: float, names: Mapping[int, str]) -> tuple[list[Shape], float]:
    """Return a swatch and a name for each color, in rows that start at y, and the y below the last row."""
    shapes: list[Shape] = []
    x = 4.0
    for color, name in names.items():
        long = 40 + measure(name)
        if x > 4 and x + long - 18 > wide:
            x, y = 4.0, y + 20
        shapes.append(Area(x=x, y=y, wide=11, high=11, color=color, shade=0.45))
        shapes.append(Words(x=x + 17, y=y + 10, text=name, align="start"))
        x += long
    return shapes, y + 20
